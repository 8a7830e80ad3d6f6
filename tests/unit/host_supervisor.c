/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor against a fake QEMU: this program under QEMU's name, first in PATH. The fake
 * answers on the forwarded port as relay and daemon in one, and misbehaves as asked.
 */
#include "api/host/host.h"

#include "api/host/files.h"
#include "api/host/supervisor.h"
#include "api/host/wire.h"
#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/fake_qemu.h"

static char dir[64], share[96], data[96], socket_path[96], mode_path[96], path_env[160];
static struct host_options options = {.data_dir = data,
                                      .socket_path = socket_path,
                                      .share_dir = share,
                                      .memory_mib = 64,
                                      .silence_ms = 20000};

static void touch(const char *name)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static int setup(void **state)
{
    char link_path[128], target[512], old_path[64];
    ssize_t n = readlink("/proc/self/exe", target, sizeof(target) - 1);

    (void)state;
    strcpy(dir, "/tmp/skillvm-super.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_true(n > 0);
    target[n] = '\0';
    snprintf(share, sizeof(share), "%s/share", dir);
    snprintf(data, sizeof(data), "%s/data, with a comma", dir);
    snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
    snprintf(mode_path, sizeof(mode_path), "%s/port-taken", dir);
    snprintf(link_path, sizeof(link_path), "%s/share/softhost", dir);
    assert_int_equal(mkdir(share, 0700), 0);
    assert_int_equal(mkdir(link_path, 0700), 0);
    touch("share/softhost/vmlinuz");
    touch("share/softhost/initrd.img");
    touch("share/softhost/root.erofs");
    touch("share/softhost/payload.erofs");
    snprintf(link_path, sizeof(link_path), "%s/qemu-system-x86_64", dir);
    assert_int_equal(symlink(target, link_path), 0);
    snprintf(old_path, sizeof(old_path), "%s", dir);
    snprintf(path_env, sizeof(path_env), "%s:/usr/bin:/bin", old_path);
    setenv("PATH", path_env, 1);
    setenv("FAKE_QEMU_MODE", "good", 1);
    setenv("FAKE_QEMU_PORT_TAKEN", mode_path, 1);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* Runs a supervisor in a child; *ret_ready gets the end of its pipe. */
static pid_t start(int *ret_ready)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        _exit(supervisor_run(&options, fds[1], NULL) < 0 ? 1 : 0);
    }
    close(fds[1]);
    *ret_ready = fds[0];
    return pid;
}

/* The last line the supervisor told, without progress. */
static void told(int fd, char *out, size_t size)
{
    char text[4096], *rest = text, *line;
    ssize_t n = fd_read_full(fd, text, sizeof(text) - 1);

    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    out[0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line && strncmp(line, "progress", 8) != 0)
            snprintf(out, size, "%s", line);
    }
}

static int ask(const char *path, char *out, size_t size)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[128];
    ssize_t n;

    strcpy(addr.sun_path, socket_path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        close(fd);
        return -errno;
    }
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n\r\n", path);
    assert_int_equal(fd_write_full(fd, request, strlen(request)), 0);
    n = fd_read_full(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(fd);
    return (int)n;
}

static struct host_status status_now(void)
{
    struct host_status status;

    assert_int_equal(host_status_read(data, &status, NULL), 0);
    return status;
}

static void wait_for_restart(uint32_t restarts)
{
    for (int i = 0; i < 600; i++) {
        struct host_status status = status_now();

        if (status.restarts >= restarts && status.state == HOST_READY)
            return;
        usleep(50000);
    }
    fail_msg("no restart");
}

static int end(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void told_ready(int ready)
{
    char line[1024];

    told(ready, line, sizeof(line));
    assert_string_equal(line, "ready");
}

/* One that runs. */
static pid_t start_ready(void)
{
    int ready;
    pid_t pid = start(&ready);

    told_ready(ready);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGTERM);
    assert_int_equal(end(pid), 0);
}

static void test_up_relay_down(void **state)
{
    char answer[256];
    struct host_status status;
    struct stat st;
    pid_t pid = start_ready();

    (void)state;
    assert_int_equal(stat(socket_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
        assert_string_equal(answer, FAKE_QEMU_ANSWER);
    }
    status = status_now();
    assert_int_equal(status.state, HOST_READY);
    assert_int_equal(status.supervisor_pid, pid);
    assert_int_equal(status.restarts, 0);
    assert_int_equal(host_stop(data, NULL), 0);
    assert_int_equal(kill(status.qemu_pid, 0), -1);
    assert_int_equal(stat(socket_path, &st), -1);
    assert_int_equal(status_now().state, HOST_STOPPED);
    assert_int_equal(host_stop(data, NULL), -ESRCH);
}

/* What ask() gets for /who, as another user. */
static void ask_as(uid_t uid, char *out, size_t size)
{
    int pipe_fds[2], status;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        char text[64];
        int len = setresuid(uid, uid, uid) < 0 ? -1 : ask("/who", text, sizeof(text));

        _exit(len < 0 || write(pipe_fds[1], text, (size_t)len) != len);
    }
    close(pipe_fds[1]);
    n = fd_read_full(pipe_fds[0], out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(pipe_fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The supervisor's own user is root inside, and every other is who he is. */
static void test_users_stay_who_they_are(void **state)
{
    char answer[256];
    pid_t pid = start_ready();

    (void)state;
    assert_true(ask("/who", answer, sizeof(answer)) > 0);
    assert_string_equal(answer, "0");
    if (geteuid() == 0) {
        assert_int_equal(chmod(dir, 0755), 0);
        assert_int_equal(chmod(socket_path, 0666), 0);
        ask_as(65534, answer, sizeof(answer));
        assert_string_equal(answer, "65534");
    }
    stop(pid);
}

static void test_restarts_what_died(void **state)
{
    char answer[256];
    pid_t pid = start_ready();

    (void)state;
    assert_int_equal(ask("/die", answer, sizeof(answer)), 0);
    wait_for_restart(1);
    assert_string_equal(status_now().last_reason, "QEMU ended by itself");
    assert_int_equal(ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    stop(pid);
}

static void test_restarts_what_hangs_and_clients_wait(void **state)
{
    char answer[256];
    pid_t pid, qemu_pid;

    (void)state;
    options.silence_ms = 1500;
    pid = start_ready();
    options.silence_ms = 20000;
    qemu_pid = status_now().qemu_pid;
    assert_int_equal(ask("/hang", answer, sizeof(answer)), 0);
    /* This one arrives while there is no host, and is answered by the next. */
    assert_int_equal(ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    wait_for_restart(1);
    assert_non_null(strstr(status_now().last_reason, "no answer"));
    assert_int_equal(kill(qemu_pid, 0), -1);
    stop(pid);
}

int __real_statvfs(const char *path, struct statvfs *fs);
int __wrap_statvfs(const char *path, struct statvfs *fs);
int __wrap_statvfs(const char *path, struct statvfs *fs)
{
    char full[128];
    int r = __real_statvfs(path, fs);

    snprintf(full, sizeof(full), "%s/full", dir);
    if (access(full, F_OK) == 0)
        fs->f_bavail = 0;
    return r;
}

/* It is not hung: who comes is told, and it goes on when there is room. */
static void test_a_full_disk_is_told_and_waited_for(void **state)
{
    char answer[1024] = "", full[128];
    pid_t pid = start_ready(), asking;

    (void)state;
    touch("full");
    asking = fork();
    if (asking == 0)
        _exit(ask("/full", answer, sizeof(answer)) == sizeof(FAKE_QEMU_ANSWER) - 1 ? 0 : 1);
    while (ask("/x", answer, sizeof(answer)) > 0 && strcmp(answer, FAKE_QEMU_ANSWER) == 0)
        usleep(10000);
    assert_non_null(strstr(answer, "503 Service Unavailable"));
    assert_non_null(strstr(answer, "\"message\":\"" HOST_FULL_TEXT "\"}"));
    assert_true(status_now().is_full);
    snprintf(full, sizeof(full), "%s/full", dir);
    assert_int_equal(unlink(full), 0);
    assert_int_equal(end(asking), 0);
    assert_int_equal(ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    assert_false(status_now().is_full);
    assert_int_equal(status_now().restarts, 0);
    stop(pid);
}

static void test_a_taken_port_is_tried_again(void **state)
{
    pid_t pid;

    (void)state;
    touch("port-taken");
    pid = start_ready();
    assert_int_equal(status_now().restarts, 0);
    stop(pid);
}

static void test_a_stranger_on_the_port_learns_nothing(void **state)
{
    char answer[256], path[256];
    FILE *f = fopen(mode_path, "w");
    int ready, n;
    pid_t pid;

    (void)state;
    assert_non_null(f);
    assert_true(fputs("stranger", f) >= 0);
    fclose(f);
    pid = start(&ready);
    /* A client that comes while the stranger listens is served by the real one later. */
    while ((n = ask("/x", answer, sizeof(answer))) == -ENOENT || n == -ECONNREFUSED)
        usleep(20000);
    assert_int_equal(n, sizeof(FAKE_QEMU_ANSWER) - 1);
    told_ready(ready);
    snprintf(path, sizeof(path), "%s.listening", mode_path);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s.visited", mode_path);
    assert_int_equal(access(path, F_OK), -1);
    stop(pid);
}

/* Listens on the public socket's path; the descriptor. */
static int squat(int backlog)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(addr.sun_path, socket_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void test_a_busy_socket_is_not_taken(void **state)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = squat(0), waiting[8], ready;
    char line[1024];
    pid_t pid;

    (void)state;
    strcpy(addr.sun_path, socket_path);
    for (size_t i = 0; i < 8; i++) {
        waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(waiting[i], (struct sockaddr *)&addr, sizeof(addr));
    }
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "somebody already listens"));
    assert_int_equal(end(pid), 1);
    assert_int_equal(access(socket_path, F_OK), 0);
    for (size_t i = 0; i < 8; i++)
        close(waiting[i]);
    /* With nobody behind it, the name is free. */
    close(fd);
    pid = start_ready();
    stop(pid);
}

static void test_a_host_that_never_comes_up(void **state)
{
    char line[1024];
    int ready;
    pid_t pid;

    (void)state;
    setenv("FAKE_QEMU_MODE", "broken", 1);
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "error the software host did not come up"));
    assert_non_null(strstr(line, "fake: cannot open the kernel"));
    assert_int_equal(end(pid), 1);
    assert_int_equal(access(socket_path, F_OK), -1);
}

static void test_a_daemon_that_refuses_is_heard(void **state)
{
    char line[1024];
    int ready;
    pid_t pid;

    (void)state;
    setenv("FAKE_QEMU_MODE", "refuses", 1);
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_string_equal(line, "error the daemon in the software host does not start: the data "
                              "folder is a later version's");
    assert_int_equal(end(pid), 1);
}

static void test_settings_go_in(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ready;
    char line[1024], listen_at[32], want[128];
    pid_t pid;

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    snprintf(listen_at, sizeof(listen_at), "127.0.0.1:%u", ntohs(addr.sin_port));
    setenv("FAKE_QEMU_MODE", "settings", 1);
    options.listen = listen_at;
    options.config = "/some/where, with a comma.yaml";
    pid = start(&ready);
    told(ready, line, sizeof(line));
    snprintf(want, sizeof(want), "error cannot listen on %s: Address already in use",
             listen_at);
    assert_string_equal(line, want);
    assert_int_equal(end(pid), 1);

    close(fd);
    pid = start(&ready);
    told(ready, line, sizeof(line));
    snprintf(want, sizeof(want), ",hostfwd=tcp:127.0.0.1:%u-10.0.2.15:1025",
             ntohs(addr.sin_port));
    assert_non_null(strstr(line, "fake: 10.0.2.15:1025, /some/where,, with a comma.yaml, "));
    assert_non_null(strstr(line, want));
    assert_int_equal(end(pid), 1);

    options.listen = "[::1]:8080";
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "the software host takes an IPv4 address"));
    assert_int_equal(end(pid), 1);
    options.listen = options.config = NULL;
}

static void test_only_one(void **state)
{
    char line[1024];
    int ready, second;
    pid_t pid = start(&ready), other;

    (void)state;
    told(ready, line, sizeof(line));
    other = start(&second);
    told(second, line, sizeof(line));
    assert_non_null(strstr(line, "error a software host already runs on"));
    assert_int_equal(end(other), 1);
    stop(pid);
}

static void test_qemu_dies_with_its_supervisor(void **state)
{
    char line[1024];
    int ready;
    pid_t pid = start(&ready), qemu_pid;

    (void)state;
    told(ready, line, sizeof(line));
    qemu_pid = status_now().qemu_pid;
    kill(pid, SIGKILL);
    end(pid);
    for (int i = 0; i < 200; i++) {
        char path[64], state_line[256] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)qemu_pid);
        f = fopen(path, "r");
        /* Where nobody reaps orphans it stays as a zombie. */
        if (!f || !fgets(state_line, sizeof(state_line), f) || strstr(state_line, ") Z")) {
            if (f)
                fclose(f);
            return;
        }
        fclose(f);
        usleep(20000);
    }
    fail_msg("the fake QEMU outlived its supervisor");
}

static void test_what_is_missing_is_named(void **state)
{
    char path[256], line[1024];
    int ready;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof(path), "%s/share/softhost/root.erofs", dir);
    unlink(path);
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "root.erofs (Debian package skillvm-softhost, or "));
    assert_int_equal(end(pid), 1);
    touch("share/softhost/root.erofs");
    setenv("PATH", "/nonexistent", 1);
    pid = start(&ready);
    told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "Debian package qemu-system-x86"));
    assert_int_equal(end(pid), 1);
    setenv("PATH", "/usr/bin:/bin", 1);
}

static void count_texts(void *ctx, const char *text)
{
    assert_non_null(strstr(text, "booting"));
    ++*(unsigned *)ctx;
}

static bool stop_after_one(void *ctx)
{
    return *(unsigned *)ctx > 0;
}

static void test_a_start_is_given_up(void **state)
{
    unsigned texts = 0;
    const struct host_wait wait = {count_texts, stop_after_one, &texts};
    struct err err = {0};

    (void)state;
    setenv("FAKE_QEMU_MODE", "mute", 1);
    assert_int_equal(host_start(&options, &wait, &err), -EINTR);
    assert_string_equal(err.message, "interrupted; the software host is stopped again");
    assert_int_equal(texts, 1);
    assert_int_equal(files_lock_holder(data), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_up_relay_down, setup, teardown),
        cmocka_unit_test_setup_teardown(test_users_stay_who_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restarts_what_died, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restarts_what_hangs_and_clients_wait, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_full_disk_is_told_and_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_taken_port_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stranger_on_the_port_learns_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_busy_socket_is_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_host_that_never_comes_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_daemon_that_refuses_is_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settings_go_in, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_qemu_dies_with_its_supervisor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_missing_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_start_is_given_up, setup, teardown),
    };

    if (argc > 1 && strstr(argv[0], "qemu-system-x86_64"))
        return fake_qemu(argv);
    if (argc > 1 && strcmp(argv[1], "host-soft") == 0)
        return host_soft_main(argc - 1, argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
