/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/fd: whole reads and writes, and descriptors that arrive in numbers nobody asked for are
 * closed, not leaked.
 */
#include "base/fd.h"
#include "base/process_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static void make_pair(int type, int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static void test_close_and_steal(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int empty = -1;
    int taken;

    (void)state;
    assert_true(fd >= 0);
    taken = fd_steal(&fd);
    assert_int_equal(fd, -1);
    errno = EXDEV;
    fd_close(&taken);
    assert_int_equal(taken, -1);
    fd_close(&taken);
    fd_close(&empty);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(fd_steal(&empty), -1);
}

static void *write_slowly(void *arg)
{
    const int *fd = arg;

    for (int i = 0; i < 10; i++) {
        usleep(1000);
        (void)fd_write_full(*fd, "0123456789", 10);
    }
    return NULL;
}

static void test_read_full_over_short_reads(void **state)
{
    int pipe_fds[2];
    pthread_t thread;
    char text[101] = {0};

    (void)state;
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &pipe_fds[1]), 0);
    assert_int_equal(fd_read_full(pipe_fds[0], text, 100), 100);
    assert_memory_equal(text + 90, "0123456789", 10);
    pthread_join(thread, NULL);
    assert_int_equal(fd_write_full(pipe_fds[1], "end", 3), 0);
    fd_close(&pipe_fds[1]);
    assert_int_equal(fd_read_full(pipe_fds[0], text, 100), 3);
    assert_int_equal(fd_read_full(pipe_fds[0], text, 100), 0);
    fd_close(&pipe_fds[0]);
}

static void test_write_to_closed_socket_is_no_signal(void **state)
{
    int pair[2];

    (void)state;
    make_pair(SOCK_STREAM, pair);
    fd_close(&pair[1]);
    assert_int_equal(fd_write_full(pair[0], "x", 1), -EPIPE);
    fd_close(&pair[0]);
    assert_int_equal(fd_write_full(-1, "x", 1), -EBADF);
    assert_int_equal(fd_read_full(-1, pair, 1), -EBADF);
}

static void test_at_offsets(void **state)
{
    char text[8];
    int fd = memfd_create("test", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fd_pwrite_full(fd, "hello", 5, 4096), 0);
    assert_int_equal(fd_pread_full(fd, text, 5, 4096), 5);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(fd_pread_full(fd, text, 8, 4098), 3);
    assert_int_equal(fd_pread_full(fd, text, 8, 1u << 20), 0);
    fd_close(&fd);
}

static void test_nonblock(void **state)
{
    int pair[2];
    char c;

    (void)state;
    make_pair(SOCK_STREAM, pair);
    assert_int_equal(fd_set_nonblock(pair[0], true), 0);
    assert_int_equal(fd_read_full(pair[0], &c, 1), -EAGAIN);
    assert_int_equal(fd_set_nonblock(pair[0], false), 0);
    assert_int_equal(fcntl(pair[0], F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

static void test_descriptors_travel(void **state)
{
    int pair[2];
    int fds[2] = {-1, -1};
    size_t n_fds = 99;
    char text[8] = {0};
    int sent[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC), memfd_create("m", MFD_CLOEXEC)};

    (void)state;
    make_pair(SOCK_SEQPACKET, pair);
    assert_int_equal(fd_send(pair[0], "ping", 4, sent, 2), 0);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), fds, 2, &n_fds), 4);
    assert_string_equal(text, "ping");
    assert_int_equal(n_fds, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        fd_close(&fds[i]);
        fd_close(&sent[i]);
    }
    assert_int_equal(fd_send(pair[0], "none", 4, NULL, 0), 0);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), NULL, 0, &n_fds), 4);
    assert_int_equal(n_fds, 0);
    fd_close(&pair[0]);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), NULL, 0, &n_fds), 0);
    fd_close(&pair[1]);
}

static void test_too_many_descriptors_are_all_closed(void **state)
{
    int pair[2];
    int sent[8];
    int fds[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    size_t n_fds = 99;
    char c;
    uint64_t before;

    (void)state;
    make_pair(SOCK_SEQPACKET, pair);
    for (size_t i = 0; i < 8; i++) {
        sent[i] = dup(pair[0]);
        assert_true(sent[i] >= 0);
    }
    before = process_open_fds();
    assert_int_equal(fd_send(pair[0], "x", 1, sent, 8), 0);
    assert_int_equal(fd_receive(pair[1], &c, 1, fds, 7, &n_fds), -EMSGSIZE);
    assert_int_equal(fds[0], -1);
    assert_int_equal(fd_send(pair[0], "x", 1, sent, 1), 0);
    assert_int_equal(fd_receive(pair[1], &c, 1, NULL, 0, NULL), -EMSGSIZE);
    assert_int_equal(process_open_fds(), before);
    assert_int_equal(fd_send(pair[0], "x", 1, sent, 9), -EINVAL);
    for (size_t i = 0; i < 8; i++)
        fd_close(&sent[i]);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

/* More than fd_send allows, as a peer with its own sendmsg could try. */
static void send_many(int sock, int fd, size_t count)
{
    union {
        char raw[CMSG_SPACE(sizeof(int) * 64)];
        struct cmsghdr align;
    } control = {0};
    char byte = 'x';
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.raw,
                         .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    int fds[64];

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        fds[i] = fd;
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), 1);
}

static void test_control_overflow_is_refused(void **state)
{
    int pair[2];
    int fds[8];
    size_t n_fds = 0;
    char c;
    uint64_t before;

    (void)state;
    make_pair(SOCK_SEQPACKET, pair);
    before = process_open_fds();
    send_many(pair[0], pair[0], 64);
    assert_int_equal(fd_receive(pair[1], &c, 1, fds, 8, &n_fds), -EMSGSIZE);
    assert_int_equal(process_open_fds(), before);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

static void test_long_message_is_refused(void **state)
{
    int pair[2];
    char text[4];
    size_t n_fds = 0;

    (void)state;
    make_pair(SOCK_SEQPACKET, pair);
    assert_int_equal(fd_send(pair[0], "too long", 8, NULL, 0), 0);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), NULL, 0, &n_fds), -EMSGSIZE);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

static void test_folders_on_the_way(void **state)
{
    char top[] = "/tmp/skillvm-fd.XXXXXX", path[64];
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(top));
    for (int again = 0; again < 2; again++) {
        snprintf(path, sizeof(path), "%s/above/last", top);
        assert_int_equal(fd_make_folders(path, 0755, 0700), 0);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof(path), "%s/above", top);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(top), 0);

    snprintf(path, sizeof(path), "/dev/null/last/one");
    assert_int_equal(fd_make_folders(path, 0755, 0700), -ENOTDIR);
    assert_string_equal(path, "/dev/null/last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_and_steal),
        cmocka_unit_test(test_read_full_over_short_reads),
        cmocka_unit_test(test_write_to_closed_socket_is_no_signal),
        cmocka_unit_test(test_at_offsets),
        cmocka_unit_test(test_nonblock),
        cmocka_unit_test(test_folders_on_the_way),
        cmocka_unit_test(test_descriptors_travel),
        cmocka_unit_test(test_too_many_descriptors_are_all_closed),
        cmocka_unit_test(test_control_overflow_is_refused),
        cmocka_unit_test(test_long_message_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
