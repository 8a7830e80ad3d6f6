/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_qemu.h"

#include "api/host/files.h"
#include "api/host/wire.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where it has QEMU's monitor. */
#define FAKE_QEMU_MONITOR 3

static const char *mode_path;

static const char fake_answer[] = FAKE_QEMU_ANSWER;

static const char *fake_option(char **argv, const char *key)
{
    for (; *argv; argv++) {
        const char *at = strstr(*argv, key);

        if (at)
            return at + strlen(key);
    }
    _exit(9);
}

/* Finds no room for a write, so that it stands still. */
static void fake_stop(void)
{
    static const char lines[] =
        "{\"event\": \"BLOCK_IO_ERROR\", \"data\": {\"nospace\": true, "
        "\"operation\": \"write\", \"action\": \"stop\"}}\r\n{\"event\": \"STOP\"}\r\n";

    fd_write_full(FAKE_QEMU_MONITOR, "{\"QMP\": {}}\r\n", 13);
    fd_write_full(FAKE_QEMU_MONITOR, lines, sizeof(lines) - 1);
}

/* Stands still until it is told to go on. */
static void fake_no_room(void)
{
    char said[4096] = "";
    size_t len = 0;

    fake_stop();
    while (!strstr(said, "\"cont\"")) {
        ssize_t n = read(FAKE_QEMU_MONITOR, said + len, sizeof(said) - 1 - len);

        if (n <= 0)
            _exit(5);
        len += (size_t)n;
        said[len] = '\0';
    }
    fd_write_full(FAKE_QEMU_MONITOR, "{\"event\": \"RESUME\"}\r\n", 21);
}

/* Stands still for ever. */
static _Noreturn void fake_stuck(bool is_deaf)
{
    fake_stop();
    if (is_deaf)
        close(FAKE_QEMU_MONITOR);
    for (;;)
        pause();
}

static void fake_serve(int fd, const uint8_t *token)
{
    uint8_t preamble[WIRE_PREAMBLE_SIZE];
    struct wire_request said;
    char request[4096];

    if (fd_read_full(fd, preamble, sizeof(preamble)) != (ssize_t)sizeof(preamble) ||
        wire_decode(preamble, token, &said) < 0)
        return;
    fd_write_full(fd, "k", 1);
    if (said.op == WIRE_OP_POWEROFF) {
        fprintf(stderr, "fake: power off\n");
        exit(0);
    }
    if (said.op == WIRE_OP_CLOCK || recv(fd, request, sizeof(request), 0) <= 0)
        return;
    if (strncmp(request, "GET /die", 8) == 0)
        exit(1);
    if (strncmp(request, "GET /hang", 9) == 0) {
        for (;;)
            pause();
    }
    if (strncmp(request, "GET /stuck", 10) == 0 || strncmp(request, "GET /deaf", 9) == 0)
        fake_stuck(request[5] == 'd');
    /* Again and again: whatever room there is, it finds none. */
    for (unsigned i = strncmp(request, "GET /again", 10) == 0 ? 3 : 0; i > 0; i--)
        fake_no_room();
    if (strncmp(request, "GET /full", 9) == 0)
        fake_no_room();
    if (strncmp(request, "GET /who", 8) == 0) {
        dprintf(fd, "%u", said.uid);
        return;
    }
    fd_write_full(fd, fake_answer, sizeof(fake_answer) - 1);
}

/*
 * Another user was faster: a process that is not QEMU listens on the port, would accept any
 * preamble and counts who comes. QEMU itself fails after a while.
 */
static _Noreturn void fake_stranger(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pid_t qemu_pid = getpid(), pid = fork();
    char path[256];

    if (pid == 0) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != qemu_pid || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
            listen(fd, 16) < 0)
            _exit(1);
        snprintf(path, sizeof(path), "%s.listening", mode_path);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        client = accept(fd, NULL, NULL);
        snprintf(path, sizeof(path), "%s.visited", mode_path);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        fd_write_full(client, "k", 1);
        pause();
    }
    sleep(2);
    fprintf(stderr, "qemu: Could not set up host forwarding rule 'tcp:...'\n");
    _exit(1);
}

int fake_qemu(char **argv)
{
    const char *taken = getenv("FAKE_QEMU_PORT_TAKEN");
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *mode = getenv("FAKE_QEMU_MODE"), *token_file;
    char token_path[FILES_PATH_MAX];
    uint8_t token[WIRE_TOKEN_SIZE];
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *f;

    mode_path = taken ? taken : "";
    if (strcmp(mode, "full") == 0)
        fake_no_room();
    if (strcmp(mode, "refuses") == 0) {
        fprintf(stderr, "softhost: something\r\n"
                        "error skillvmd the data folder is a later version's\r\n"
                        "softhost: skillvmd ended, starting it again\r\n");
        pause();
    }
    if (strcmp(mode, "settings") == 0) {
        /* What it was told, for the test to see. */
        fprintf(stderr, "fake: tsc %s, %s, %s, %s\n", fake_option(argv, "tsc_early_khz="),
                fake_option(argv, "opt/skillvm/listen,string="),
                fake_option(argv, "opt/skillvm/config,file="),
                fake_option(argv, ",hostfwd=tcp:127.0.0.1:"));
        return 1;
    }
    if (strcmp(mode, "broken") == 0) {
        fprintf(stderr, "fake: cannot open the kernel\n");
        return 1;
    }
    f = fopen(mode_path, "r");
    if (f) {
        bool stranger = fgetc(f) == 's';

        /* Only the first start fails so. */
        fclose(f);
        unlink(mode_path);
        if (stranger)
            fake_stranger(
                (uint16_t)strtoul(fake_option(argv, "hostfwd=tcp:127.0.0.1:"), NULL, 10));
        fprintf(stderr, "qemu: Could not set up host forwarding rule 'tcp:...'\n");
        return 1;
    }
    token_file = fake_option(argv, "name=opt/skillvm/token,file=");
    for (size_t i = 0; *token_file && i + 1 < sizeof(token_path); i++) {
        /* A doubled comma is one. */
        token_file += token_file[0] == ',';
        token_path[i] = *token_file++;
        token_path[i + 1] = '\0';
    }
    if (wire_token_read(token_path, token) < 0)
        return 8;
    addr.sin_port =
        htons((uint16_t)strtoul(fake_option(argv, "hostfwd=tcp:127.0.0.1:"), NULL, 10));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 16) < 0)
        return 7;
    if (strcmp(mode, "mute") == 0)
        pause();
    for (;;) {
        int client = accept(fd, NULL, NULL);

        if (client < 0)
            return 6;
        fake_serve(client, token);
        close(client);
    }
}
