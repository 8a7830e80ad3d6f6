/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay as a process: no byte before the token, an echo daemon behind it, half-close.
 */
#include "api/host/host.h"

#include "api/host/wire.h"
#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static const uint8_t token[WIRE_TOKEN_SIZE] = "the token of this test, 32 bytes";
static char dir[64], socket_path[96], token_path[96];
static uint16_t port;
static pid_t relay_pid;

static uint16_t free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static int dial_relay(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 20};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    for (int i = 0; i < 500; i++) {
        if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
            return fd;
        usleep(20000);
    }
    fail();
    return -1;
}

/* The clock that this relay would set is that of the machine with all its other tests. */
static void leave_clock_alone(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, caps) < 0)
        _exit(1);
    caps[0].effective &= ~(1u << CAP_SYS_TIME);
    caps[0].permitted &= ~(1u << CAP_SYS_TIME);
    if (syscall(SYS_capset, &header, caps) < 0)
        _exit(1);
}

static int setup(void **state)
{
    int fd;

    (void)state;
    strcpy(dir, "/tmp/skillvm-relay.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
    snprintf(token_path, sizeof(token_path), "%s/token", dir);
    fd = open(token_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, token, sizeof(token)), sizeof(token));
    close(fd);
    port = free_port();
    relay_pid = fork();
    if (relay_pid == 0) {
        char text[8];
        char *argv[] = {
            (char[]){"relay"}, (char[]){"--port"},       text,       (char[]){"--socket"},
            socket_path,       (char[]){"--token-file"}, token_path, NULL};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        leave_clock_alone();
        snprintf(text, sizeof(text), "%u", port);
        _exit(host_relay_main(7, argv));
    }
    return 0;
}

static int teardown(void **state)
{
    int status;

    (void)state;
    kill(relay_pid, SIGKILL);
    waitpid(relay_pid, &status, 0);
    unlink(socket_path);
    unlink(token_path);
    return rmdir(dir);
}

static int daemon_listen(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(addr.sun_path, socket_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static void say_for(int fd, enum wire_op op, uid_t uid, const uint8_t *with)
{
    const struct wire_request request = {op, clock_realtime_ns(), uid};
    uint8_t preamble[WIRE_PREAMBLE_SIZE];

    wire_encode(preamble, &request, with);
    assert_int_equal(fd_write_full(fd, preamble, sizeof(preamble)), 0);
}

static void say(int fd, enum wire_op op, const uint8_t *with)
{
    say_for(fd, op, geteuid(), with);
}

static void test_wrong_token_gets_nothing(void **state)
{
    uint8_t wrong[WIRE_TOKEN_SIZE];
    int listening = daemon_listen(), fd = dial_relay();
    char byte;

    (void)state;
    memcpy(wrong, token, sizeof(wrong));
    wrong[31] ^= 1;
    say(fd, WIRE_OP_CONNECT, wrong);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
    assert_int_equal(fd_set_nonblock(listening, true), 0);
    assert_int_equal(accept(listening, NULL, NULL), -1);
    close(listening);
}

static void test_no_daemon_is_told(void **state)
{
    int fd = dial_relay();
    char byte = 0;

    (void)state;
    say(fd, WIRE_OP_CONNECT, token);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, WIRE_NO_DAEMON);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

static void test_connects_with_half_close(void **state)
{
    int listening = daemon_listen(), fd = dial_relay(), inner;
    char text[16];

    (void)state;
    say(fd, WIRE_OP_CONNECT, token);
    inner = accept(listening, NULL, NULL);
    assert_true(inner >= 0);
    assert_int_equal(fd_read_full(fd, text, 1), 1);
    assert_int_equal(text[0], WIRE_OK);
    assert_int_equal(fd_write_full(fd, "question", 8), 0);
    shutdown(fd, SHUT_WR);
    assert_int_equal(fd_read_full(inner, text, sizeof(text)), 8);
    assert_memory_equal(text, "question", 8);
    assert_int_equal(fd_write_full(inner, "answer", 6), 0);
    close(inner);
    assert_int_equal(fd_read_full(fd, text, sizeof(text)), 6);
    assert_memory_equal(text, "answer", 6);
    close(fd);
    close(listening);
}

/* The daemon sees the user that a connection is for, and the next one's is its own again. */
static void test_the_daemon_sees_who_it_is_for(void **state)
{
    const uid_t users[] = {65534, 0, 1, 4000000000u, 0};
    const struct timeval patience = {.tv_sec = 20};
    int listening = daemon_listen();

    (void)state;
    if (geteuid() != 0) {
        close(listening);
        print_message("SKIP: only root may be another user\n");
        skip();
    }
    /* Who may open it was decided outside. */
    assert_int_equal(chmod(socket_path, 0600), 0);
    setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        int fd = dial_relay(), inner;
        struct ucred peer = {0};
        socklen_t len = sizeof(peer);
        char byte;

        say_for(fd, WIRE_OP_CONNECT, users[i], token);
        inner = accept(listening, NULL, NULL);
        assert_true(inner >= 0);
        assert_int_equal(getsockopt(inner, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
        assert_int_equal(peer.uid, users[i]);
        assert_int_equal(recv(fd, &byte, 1, 0), 1);
        assert_int_equal(byte, WIRE_OK);
        close(inner);
        close(fd);
    }
    close(listening);
}

/* A user that is none reaches nothing. */
static void test_nobody_is_not_somebody(void **state)
{
    int listening = daemon_listen(), fd = dial_relay();
    char byte = 0;

    (void)state;
    say_for(fd, WIRE_OP_CONNECT, (uid_t)-1, token);
    assert_true(recv(fd, &byte, 1, 0) <= 0 || byte != WIRE_OK);
    assert_int_equal(fd_set_nonblock(listening, true), 0);
    assert_int_equal(accept(listening, NULL, NULL), -1);
    close(fd);
    close(listening);
}

static void test_clock_that_agrees_is_accepted(void **state)
{
    int fd = dial_relay();
    char byte = 0;

    (void)state;
    say(fd, WIRE_OP_CLOCK, token);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, WIRE_OK);
    close(fd);
}

static void test_strangers_do_not_keep_the_owner_out(void **state)
{
    static int silent[400];
    const size_t n = sizeof(silent) / sizeof(silent[0]);
    char byte = 0;
    int fd;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        silent[i] = dial_relay();
        /* The relay may have dropped it already. */
        send(silent[i], "svr2", 4, MSG_NOSIGNAL);
    }
    fd = dial_relay();
    say(fd, WIRE_OP_CLOCK, token);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, WIRE_OK);
    close(fd);
    /* The oldest was dropped for the newer ones. */
    assert_true(recv(silent[0], &byte, 1, 0) <= 0);
    for (size_t i = 0; i < n; i++)
        close(silent[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wrong_token_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_daemon_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_connects_with_half_close, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_daemon_sees_who_it_is_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_is_not_somebody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock_that_agrees_is_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strangers_do_not_keep_the_owner_out, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
