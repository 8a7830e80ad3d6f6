/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a guest that belongs to an attacker: it answers READY like skillvm-init, reads what
 * the host sends, and then breaks the rule that the first argument of the execution names, with
 * what the others say. It must behave until then, or no snapshot of it could be made.
 */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "guest-init/proto.h"

static uint8_t payload[PROTO_PAYLOAD_MAX];

void hostile_wait(void)
{
    for (;;)
        pause();
}

void hostile_send(int conn, const void *data, size_t len)
{
    if (fd_write_full(conn, data, len) < 0)
        hostile_wait();
}

int hostile_receive(int conn, struct hostile_received *ret)
{
    uint8_t header[PROTO_HEADER_SIZE] = {0};
    struct bytes_reader r = bytes_reader_init(header, sizeof(header));

    if (fd_read_full(conn, header, sizeof(header)) != (ssize_t)sizeof(header))
        return -1;
    ret->len = bytes_get_u32(&r);
    ret->type = bytes_get_u8(&r);
    ret->data = payload;
    return ret->len <= sizeof(payload) &&
                   fd_read_full(conn, payload, ret->len) == (ssize_t)ret->len
               ? 0
               : -1;
}

void hostile_header(int conn, uint32_t len, uint8_t type, uint8_t reserved8,
                    uint16_t reserved16)
{
    uint8_t header[PROTO_HEADER_SIZE];
    struct bytes_writer w = bytes_writer_init(header, sizeof(header));

    bytes_put_u32(&w, len);
    bytes_put_u8(&w, type);
    bytes_put_u8(&w, reserved8);
    bytes_put_u16(&w, reserved16);
    hostile_send(conn, header, sizeof(header));
}

void hostile_frame(int conn, uint8_t type, const void *data, size_t len)
{
    hostile_header(conn, (uint32_t)len, type, 0, 0);
    hostile_send(conn, data, len);
}

void hostile_exit(int conn, uint32_t code, uint32_t signal, uint32_t flags)
{
    uint8_t raw[PROTO_EXIT_SIZE] = {0};
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u32(&w, code);
    bytes_put_u32(&w, signal);
    bytes_put_u32(&w, flags);
    hostile_frame(conn, PROTO_EXIT, raw, sizeof(raw));
}

/* With twice, DONE comes twice at once, so that nobody can overlook the second. */
static void finish_well(int conn, bool twice)
{
    static const uint8_t done[2][PROTO_HEADER_SIZE] = {{[4] = PROTO_DONE}, {[4] = PROTO_DONE}};
    static const char zeros[1024];

    hostile_exit(conn, 0, 0, 0);
    hostile_frame(conn, PROTO_OUTPUT, NULL, 0);
    hostile_frame(conn, PROTO_FILES, zeros, sizeof(zeros));
    hostile_frame(conn, PROTO_FILES, NULL, 0);
    hostile_send(conn, done, twice ? sizeof(done) : sizeof(done[0]));
}

void hostile_say(int conn, const char *text)
{
    hostile_frame(conn, PROTO_STDOUT, text, strlen(text));
}

/* What the guest itself may open: a connection to every port of the host's it can think of. */
static void connect_out(int conn)
{
    static const unsigned ports[] = {1, 22, 1023, 1024, 1025, 5000, 65536};
    char line[128];

    for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
        struct sockaddr_vm address = {
            .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = ports[i]};
        int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = connect(fd, (struct sockaddr *)&address, sizeof(address));

        (void)snprintf(line, sizeof(line), "%u %s\n", ports[i],
                       r < 0 ? strerrorname_np(errno) : "CONNECTED");
        hostile_say(conn, line);
        (void)close(fd);
    }
}

/*
 * The kernel found a serial port while the snapshot was made. Where nobody is, a read gives
 * ones: among them that the telephone rings, which our port never says.
 */
static void look_for_serial(int conn)
{
    int fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int lines = 0;

    for (int i = 0; i < 1000 && write(fd, "flood\x1b[2J\n", 10) > 0; i++)
        continue;
    if (ioctl(fd, TIOCMGET, &lines) < 0)
        hostile_say(conn, strerrorname_np(errno));
    else
        hostile_say(conn, lines & TIOCM_RNG ? "nobody\n" : "a serial port\n");
}

static void misbehave_in_frames(int conn, const char *mode)
{
    static const char chunk[PROTO_CHUNK_MAX];

    if (strcmp(mode, "length-max") == 0)
        hostile_header(conn, UINT32_MAX, PROTO_STDOUT, 0, 0);
    else if (strcmp(mode, "length-over") == 0)
        hostile_header(conn, PROTO_PAYLOAD_MAX + 1, PROTO_STDOUT, 0, 0);
    else if (strcmp(mode, "chunk-over") == 0)
        hostile_frame(conn, PROTO_STDOUT, payload, PROTO_CHUNK_MAX + 1);
    else if (strcmp(mode, "reserved") == 0)
        hostile_header(conn, 0, PROTO_STDOUT, 1, 0);
    else if (strcmp(mode, "reserved16") == 0)
        hostile_header(conn, 0, PROTO_STDOUT, 0, 0x100);
    else if (strcmp(mode, "unknown-type") == 0)
        hostile_frame(conn, 0x99, "x", 1);
    else if (strcmp(mode, "host-type") == 0)
        hostile_frame(conn, PROTO_RUN, "x", 1);
    else if (strcmp(mode, "second-ready") == 0)
        hostile_frame(conn, PROTO_READY, "\1\0\0\0", 4);
    else if (strcmp(mode, "second-started") == 0)
        hostile_frame(conn, PROTO_STARTED, NULL, 0);
    else if (strcmp(mode, "done-first") == 0)
        hostile_frame(conn, PROTO_DONE, NULL, 0);
    else if (strcmp(mode, "output-first") == 0)
        hostile_frame(conn, PROTO_OUTPUT, "1", 1);
    else if (strcmp(mode, "exit-short") == 0)
        hostile_frame(conn, PROTO_EXIT, payload, PROTO_EXIT_SIZE - 1);
    else if (strcmp(mode, "exit-odd") == 0)
        hostile_exit(conn, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    else if (strcmp(mode, "flood-logs") == 0)
        for (;;)
            hostile_frame(conn, PROTO_STDERR, chunk, sizeof(chunk));
    else if (strcmp(mode, "empty-frames") == 0)
        for (;;)
            hostile_frame(conn, PROTO_STDOUT, NULL, 0);
    else if (strcmp(mode, "half-a-header") == 0)
        hostile_send(conn, "\1\0\0", 3);
    else if (strcmp(mode, "half-a-payload") == 0)
        hostile_header(conn, 1000, PROTO_STDOUT, 0, 0);
    else if (strcmp(mode, "fail") == 0)
        hostile_frame(conn, PROTO_FAIL, "bad\n\xff\x1b[31mtext", 12);
    else if (strcmp(mode, "fail-long") == 0)
        hostile_frame(conn, PROTO_FAIL, chunk, sizeof(chunk));
}

static void misbehave(int conn, const struct hostile_args *args)
{
    static const char chunk[PROTO_CHUNK_MAX];
    const char *mode = args->all[0];

    if (strcmp(mode, "not-started") == 0) {
        finish_well(conn, false);
        return;
    }
    hostile_frame(conn, PROTO_STARTED, NULL, 0);
    hostile_say(conn, "hostile\n");
    if (strcmp(mode, "reboot") == 0)
        (void)reboot(RB_AUTOBOOT);
    if (strcmp(mode, "halt") == 0)
        (void)reboot(RB_POWER_OFF);
    if (strcmp(mode, "panic") == 0)
        _exit(0);
    if (strcmp(mode, "silence") == 0)
        hostile_wait();
    if (strcmp(mode, "connect-out") == 0)
        connect_out(conn);
    if (strcmp(mode, "serial") == 0)
        look_for_serial(conn);
    if (strncmp(mode, "net-", 4) == 0)
        hostile_connections(conn, args);
    if (strncmp(mode, "tar-", 4) == 0) {
        hostile_exit(conn, 0, 0, 0);
        hostile_frame(conn, PROTO_OUTPUT, NULL, 0);
        if (hostile_files(conn, mode) == 0)
            hostile_frame(conn, PROTO_FILES, NULL, 0);
        hostile_frame(conn, PROTO_DONE, NULL, 0);
        return;
    }
    if (strcmp(mode, "flood-output") == 0) {
        hostile_exit(conn, 0, 0, 0);
        for (;;)
            hostile_frame(conn, PROTO_OUTPUT, chunk, sizeof(chunk));
    }
    misbehave_in_frames(conn, mode);
    finish_well(conn, strcmp(mode, "after-done") == 0);
}

/* The arguments of the execution, as far as they fit. */
static void take_run(const struct hostile_received *run, struct hostile_args *args)
{
    struct bytes_reader r = bytes_reader_init(run->data, run->len);

    while (bytes_left(&r) > 0) {
        uint16_t tag = bytes_get_u16(&r);
        uint32_t len;
        const uint8_t *field;

        (void)bytes_get_u16(&r);
        len = bytes_get_u32(&r);
        field = bytes_take(&r, len);
        if (field && tag == PROTO_F_ARG && len < HOSTILE_ARG_SIZE && args->n < HOSTILE_ARGS_MAX)
            memcpy(args->all[args->n++], field, len);
    }
}

/* Reads all that the host sends for one execution. 0, or -1 when it hung up. */
static int take_execution(int conn, struct hostile_args *args)
{
    struct hostile_received got;

    *args = (struct hostile_args){0};
    while (hostile_receive(conn, &got) == 0) {
        if (got.type == PROTO_FILES_IN && got.len == 0)
            return 0;
        if (got.type == PROTO_RUN)
            take_run(&got, args);
    }
    return -1;
}

int main(void)
{
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = PROTO_PORT};
    int listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)mount("dev", "/dev", "devtmpfs", 0, NULL);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 4) < 0)
        return 1;
    for (;;) {
        static const uint8_t version[4] = {PROTO_VERSION};
        static struct hostile_args args;
        int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (conn < 0)
            continue;
        hostile_frame(conn, PROTO_READY, version, sizeof(version));
        if (take_execution(conn, &args) == 0)
            misbehave(conn, &args);
        (void)close(conn);
    }
}
