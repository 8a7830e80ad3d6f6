/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor against a fake QEMU: this program under QEMU's name, first in PATH. The fake
 * answers on the forwarded port as relay and daemon in one, and misbehaves as asked.
 */
#include "api/host/host.h"

#include "api/host/files.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/fake_qemu.h"

static void test_up_relay_down(void **state)
{
    char answer[256];
    struct host_status status;
    struct stat st;
    pid_t pid = fake_host_start_ready();

    (void)state;
    assert_int_equal(stat(fake_host_socket_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(fake_host_ask("/x", answer, sizeof(answer)),
                         sizeof(FAKE_QEMU_ANSWER) - 1);
        assert_string_equal(answer, FAKE_QEMU_ANSWER);
    }
    status = fake_host_status_now();
    assert_int_equal(status.state, HOST_READY);
    assert_int_equal(status.supervisor_pid, pid);
    assert_int_equal(status.restarts, 0);
    assert_int_equal(host_stop(fake_host_data, NULL), 0);
    assert_int_equal(kill(status.qemu_pid, 0), -1);
    assert_int_equal(stat(fake_host_socket_path, &st), -1);
    assert_int_equal(fake_host_status_now().state, HOST_STOPPED);
    assert_int_equal(host_stop(fake_host_data, NULL), -ESRCH);
}

/* What asking gets for /who, as another user. */
static void ask_as(uid_t uid, char *out, size_t size)
{
    int pipe_fds[2], status;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        char text[64];
        int len = setresuid(uid, uid, uid) < 0 ? -1 : fake_host_ask("/who", text, sizeof(text));

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
    pid_t pid = fake_host_start_ready();

    (void)state;
    assert_true(fake_host_ask("/who", answer, sizeof(answer)) > 0);
    assert_string_equal(answer, "0");
    if (geteuid() == 0) {
        assert_int_equal(chmod(fake_host_dir, 0755), 0);
        assert_int_equal(chmod(fake_host_socket_path, 0666), 0);
        ask_as(65534, answer, sizeof(answer));
        assert_string_equal(answer, "65534");
    }
    fake_host_stop(pid);
}

static void test_restarts_what_died(void **state)
{
    char answer[256];
    pid_t pid = fake_host_start_ready();

    (void)state;
    assert_int_equal(fake_host_ask("/die", answer, sizeof(answer)), 0);
    fake_host_wait_for_restart(1);
    assert_string_equal(fake_host_status_now().last_reason, "QEMU ended by itself");
    assert_int_equal(fake_host_ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    fake_host_stop(pid);
}

static void test_restarts_what_hangs_and_clients_wait(void **state)
{
    char answer[256];
    pid_t pid, qemu_pid;

    (void)state;
    fake_host_options.silence_ms = 8000;
    pid = fake_host_start_ready();
    fake_host_options.silence_ms = 20000;
    qemu_pid = fake_host_status_now().qemu_pid;
    assert_int_equal(fake_host_ask("/hang", answer, sizeof(answer)), 0);
    /* This one arrives while there is no host, and is answered by the next. */
    assert_int_equal(fake_host_ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    fake_host_wait_for_restart(1);
    assert_non_null(strstr(fake_host_status_now().last_reason, "no answer"));
    assert_int_equal(kill(qemu_pid, 0), -1);
    fake_host_stop(pid);
}

static void test_a_taken_port_is_tried_again(void **state)
{
    pid_t pid;

    (void)state;
    fake_host_touch("port-taken");
    pid = fake_host_start_ready();
    assert_int_equal(fake_host_status_now().restarts, 0);
    fake_host_stop(pid);
}

static void test_a_stranger_on_the_port_learns_nothing(void **state)
{
    char answer[256], path[256];
    FILE *f = fopen(fake_host_mode_path, "w");
    int ready, n;
    pid_t pid;

    (void)state;
    assert_non_null(f);
    assert_true(fputs("stranger", f) >= 0);
    fclose(f);
    pid = fake_host_start(&ready);
    /* A client that comes while the stranger listens is served by the real one later. */
    while ((n = fake_host_ask("/x", answer, sizeof(answer))) == -ENOENT || n == -ECONNREFUSED)
        usleep(20000);
    assert_int_equal(n, sizeof(FAKE_QEMU_ANSWER) - 1);
    fake_host_told_ready(ready);
    snprintf(path, sizeof(path), "%s.listening", fake_host_mode_path);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s.visited", fake_host_mode_path);
    assert_int_equal(access(path, F_OK), -1);
    fake_host_stop(pid);
}

/* Listens on the public socket's path; the descriptor. */
static int squat(int backlog)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(addr.sun_path, fake_host_socket_path);
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
    strcpy(addr.sun_path, fake_host_socket_path);
    for (size_t i = 0; i < 8; i++) {
        waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(waiting[i], (struct sockaddr *)&addr, sizeof(addr));
    }
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "somebody already listens"));
    assert_int_equal(fake_host_end(pid), 1);
    assert_int_equal(access(fake_host_socket_path, F_OK), 0);
    for (size_t i = 0; i < 8; i++)
        close(waiting[i]);
    /* With nobody behind it, the name is free. */
    close(fd);
    pid = fake_host_start_ready();
    fake_host_stop(pid);
}

static void test_a_host_that_never_comes_up(void **state)
{
    char line[1024];
    int ready;
    pid_t pid;

    (void)state;
    setenv("FAKE_QEMU_MODE", "broken", 1);
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "error the software host did not come up"));
    assert_non_null(strstr(line, "fake: cannot open the kernel"));
    assert_int_equal(fake_host_end(pid), 1);
    assert_int_equal(access(fake_host_socket_path, F_OK), -1);
}

static void test_a_daemon_that_refuses_is_heard(void **state)
{
    char line[1024];
    int ready;
    pid_t pid;

    (void)state;
    setenv("FAKE_QEMU_MODE", "refuses", 1);
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_string_equal(line, "error the daemon in the software host does not start: the data "
                              "folder is a later version's");
    assert_int_equal(fake_host_end(pid), 1);
}

static void test_settings_go_in(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ready;
    char line[1024], listen_at[32], want[128];
    unsigned khz = 0;
    pid_t pid;

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    snprintf(listen_at, sizeof(listen_at), "127.0.0.1:%u", ntohs(addr.sin_port));
    setenv("FAKE_QEMU_MODE", "settings", 1);
    fake_host_options.listen = listen_at;
    fake_host_options.config = "/some/where, with a comma.yaml";
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    snprintf(want, sizeof(want), "error cannot listen on %s: Address already in use",
             listen_at);
    assert_string_equal(line, want);
    assert_int_equal(fake_host_end(pid), 1);

    close(fd);
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    snprintf(want, sizeof(want), ",hostfwd=tcp:127.0.0.1:%u-10.0.2.15:1025",
             ntohs(addr.sin_port));
    assert_non_null(strstr(line, ", 10.0.2.15:1025, /some/where,, with a comma.yaml, "));
    assert_non_null(strstr(line, want));
    /* Its kernel does not measure by what clock it goes. */
    assert_int_equal(sscanf(strstr(line, "fake: "), "fake: tsc %u, ", &khz), 1);
    assert_true(khz > 100000);
    assert_int_equal(fake_host_end(pid), 1);

    fake_host_options.listen = "[::1]:8080";
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "the software host takes an IPv4 address"));
    assert_int_equal(fake_host_end(pid), 1);
    fake_host_options.listen = fake_host_options.config = NULL;
}

static void test_only_one(void **state)
{
    char line[1024];
    int ready, second;
    pid_t pid = fake_host_start(&ready), other;

    (void)state;
    fake_host_told(ready, line, sizeof(line));
    other = fake_host_start(&second);
    fake_host_told(second, line, sizeof(line));
    assert_non_null(strstr(line, "error a software host already runs on"));
    assert_int_equal(fake_host_end(other), 1);
    fake_host_stop(pid);
}

static void test_qemu_dies_with_its_supervisor(void **state)
{
    char line[1024];
    int ready;
    pid_t pid = fake_host_start(&ready), qemu_pid;

    (void)state;
    fake_host_told(ready, line, sizeof(line));
    qemu_pid = fake_host_status_now().qemu_pid;
    kill(pid, SIGKILL);
    fake_host_end(pid);
    for (int i = 0; i < 3000; i++) {
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
    snprintf(path, sizeof(path), "%s/share/softhost/root.erofs", fake_host_dir);
    unlink(path);
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "root.erofs (Debian package skillvm-softhost, or "));
    assert_int_equal(fake_host_end(pid), 1);
    fake_host_touch("share/softhost/root.erofs");
    setenv("PATH", "/nonexistent", 1);
    pid = fake_host_start(&ready);
    fake_host_told(ready, line, sizeof(line));
    assert_non_null(strstr(line, "Debian package qemu-system-x86"));
    assert_int_equal(fake_host_end(pid), 1);
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
    assert_int_equal(host_start(&fake_host_options, &wait, &err), -EINTR);
    assert_string_equal(err.message, "interrupted; the software host is stopped again");
    assert_int_equal(texts, 1);
    assert_int_equal(files_lock_holder(fake_host_data), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_up_relay_down, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_users_stay_who_they_are, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_restarts_what_died, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_restarts_what_hangs_and_clients_wait,
                                        fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_taken_port_is_tried_again, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_stranger_on_the_port_learns_nothing,
                                        fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_busy_socket_is_not_taken, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_host_that_never_comes_up, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_daemon_that_refuses_is_heard, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_settings_go_in, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_only_one, fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_qemu_dies_with_its_supervisor, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_missing_is_named, fake_host_setup,
                                        fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_start_is_given_up, fake_host_setup,
                                        fake_host_teardown),
    };

    if (argc > 1 && strstr(argv[0], "qemu-system-x86_64"))
        return fake_qemu(argv);
    if (argc > 1 && strcmp(argv[1], "host-soft") == 0)
        return host_soft_main(argc - 1, argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
