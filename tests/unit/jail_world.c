/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/jail_world.h"

#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

struct outside outside;

struct jail *open_jail(uint32_t layers)
{
    const struct jail_config config = {.program = JAIL, .machine = PROBE, .layers = layers};
    struct jail *jail = NULL;
    struct err err = {0};

    if (jail_open(&config, &jail, &err) < 0)
        fail_msg("%s", err.message);
    return jail;
}

static void add_text(struct jail_request *request, size_t *len, const char *text)
{
    strcpy(request->text + *len, text);
    *len += strlen(text) + 1;
}

static void read_until_done(int fd, struct probe *probe)
{
    size_t len = 0;

    while (!strstr(probe->said, "done\n")) {
        ssize_t n = read(fd, probe->said + len, sizeof(probe->said) - 1 - len);

        assert_true(n > 0);
        len += (size_t)n;
        probe->said[len] = '\0';
    }
}

/* ret_said is the pipe, and has its end when none of the probe's processes is left. */
int start_piped(struct jail *jail, const char *extra, struct probe *ret, int *ret_said,
                struct err *err)
{
    struct jail_request request = {0};
    char number[16];
    int said[2], r;
    size_t len = 0;

    *ret = (struct probe){0};
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    add_text(&request, &len, "probe");
    add_text(&request, &len, outside.socket_name);
    snprintf(number, sizeof(number), "%d", outside.bystander);
    add_text(&request, &len, number);
    snprintf(number, sizeof(number), "%d", outside.shared_memory);
    add_text(&request, &len, number);
    if (extra)
        add_text(&request, &len, extra);
    r = jail_start(jail, &request, (int[]){said[1], said[0]}, 2, &ret->jailed, err);
    close(said[1]);
    if (r == 0)
        read_until_done(said[0], ret);
    *ret_said = said[0];
    return r;
}

int start_probe(struct jail *jail, struct probe *ret, struct err *err)
{
    int said, r = start_piped(jail, NULL, ret, &said, err);

    close(said);
    return r;
}

void end_probe(struct jail *jail, struct probe *probe)
{
    assert_int_equal(kill(probe->jailed.pid, SIGKILL), 0);
    assert_int_equal(WTERMSIG(process_reap(probe->jailed.pid)), SIGKILL);
    fd_close(&probe->jailed.weight_fd);
    jail_release_cell(jail, probe->jailed.cell);
}

/* The number after a name. */
long found(const struct probe *probe, const char *name)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof(line), "\n%s=", name);
    at = strncmp(probe->said, line + 1, strlen(line) - 1) == 0 ? probe->said - 1
                                                               : strstr(probe->said, line);
    assert_non_null(at);
    return strtol(at + strlen(line), NULL, 10);
}

/* The youngest skillvm-jail that has this parent. */
pid_t find_jail(pid_t parent)
{
    char command[64];
    FILE *found;
    int pid = 0;

    (void)snprintf(command, sizeof(command), "pgrep -n -P %d -x skillvm-jail", parent);
    found = popen(command, "r");
    assert_non_null(found);
    assert_int_equal(fscanf(found, "%d", &pid), 1);
    assert_int_equal(pclose(found), 0);
    return pid;
}

/* What is in its status behind a name, as a number of a base. */
unsigned long long status_of(pid_t pid, const char *name, int base)
{
    unsigned long long found = ~0ull;
    char line[128];
    FILE *status;

    (void)snprintf(line, sizeof(line), "/proc/%d/status", pid);
    status = fopen(line, "re");
    assert_non_null(status);
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, name, strlen(name)) == 0)
            found = strtoull(line + strlen(name), NULL, base);
    (void)fclose(status);
    return found;
}

static int listen_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path + 1, outside.socket_name, strlen(outside.socket_name));
    if (bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                         strlen(outside.socket_name))) < 0)
        return -1;
    return listen(fd, 8);
}

int jail_world_begin(void **state)
{
    int id = shmget(getpid(), 1, IPC_CREAT | IPC_EXCL | 0666);

    (void)state;
    /* What a machine is not to have: addresses that all know, a group, a descriptor. */
    if (personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC) < 0)
        return -1;
    if (geteuid() == 0 && setgroups(1, (gid_t[]){1}) < 0)
        return -1;
    (void)fcntl(0, F_DUPFD, 100);
    /* Who loses its parent is this process's child. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    outside.shared_memory = getpid();
    snprintf(outside.socket_name, sizeof(outside.socket_name), "skillvm-%d", getpid());
    outside.key = syscall(SYS_add_key, "user", outside.socket_name, "key", 3,
                          KEY_SPEC_SESSION_KEYRING) >= 0;
    outside.bystander = fork();
    if (outside.bystander == 0)
        for (;;)
            pause();
    return id < 0 || outside.bystander < 0 ? -1 : listen_abstract();
}

int jail_world_end(void **state)
{
    (void)state;
    (void)kill(outside.bystander, SIGKILL);
    (void)process_reap(outside.bystander);
    /* Nothing of any jail stays: this waits for the last of them. */
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return shmctl(shmget(outside.shared_memory, 1, 0), IPC_RMID, NULL);
}
