/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager hands over and is told: descriptors, notifications; and what is looked
 * at for /ready. Descriptors are taken in a child, since taking them closes all others.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/activation.h"
#include "api/daemon/machine/starts.h"
#include "api/daemon/notify.h"
#include "api/daemon/store/watermarks.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A listening socket, or one that does not listen, at a name that is free. */
static int make_socket(int family, int type, bool listens)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(family, type | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    /* A unix address of the family alone is bound to a free abstract name. */
    if (family == AF_UNIX)
        assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
    else
        assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    if (listens)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* What a child with these descriptors at 3, 4… and these variables found. */
struct outcome {
    int result;
    int unix_fd;
    int tcp_fd;
    int flags;          /* F_GETFD of the unix socket */
    int status_flags;   /* F_GETFL of it */
    bool others_closed; /* 20 was open before */
    bool env_cleared;
    char message[ERR_MESSAGE_MAX];
};

static void take_in_child(int report, const int *fds, size_t n, const char *count,
                          const char *pid)
{
    struct activation a = activation_init();
    struct outcome o = {0};
    struct err err = {0};
    char own[16];

    snprintf(own, sizeof(own), "%d", getpid());
    setenv("LISTEN_PID", pid ? pid : own, 1);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_FDNAMES", "a:b", 1);
    report = fcntl(report, F_DUPFD, 30);
    for (size_t i = 0; i < n; i++)
        dup2(fcntl(fds[i], F_DUPFD, 40), 3 + (int)i);
    dup2(STDERR_FILENO, 20);
    /* The one descriptor besides standard error that taking does not close. */
    dup2(report, STDOUT_FILENO);
    o.result = activation_take(&a, &err);
    o.unix_fd = a.unix_fd;
    o.tcp_fd = a.tcp_fd;
    o.flags = fcntl(a.unix_fd, F_GETFD);
    o.status_flags = fcntl(a.unix_fd, F_GETFL);
    o.others_closed = fcntl(20, F_GETFD) < 0;
    o.env_cleared = !getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES");
    snprintf(o.message, sizeof(o.message), "%s", err.message);
    (void)fd_write_full(STDOUT_FILENO, &o, sizeof(o));
    activation_finish(&a);
    _exit(0);
}

static struct outcome take(const int *fds, size_t n, const char *count, const char *pid)
{
    struct outcome o;
    int ends[2];
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        take_in_child(ends[1], fds, n, count, pid);
    close(ends[1]);
    assert_int_equal(fd_read_full(ends[0], &o, sizeof(o)), sizeof(o));
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return o;
}

static void takes_both_kinds(void **state)
{
    const int fds[] = {make_socket(AF_INET, SOCK_STREAM, true),
                       make_socket(AF_UNIX, SOCK_STREAM, true)};
    struct outcome o = take(fds, 2, "2", NULL);

    (void)state;
    assert_int_equal(o.result, 0);
    assert_int_equal(o.tcp_fd, 3);
    assert_int_equal(o.unix_fd, 4);
    assert_true(o.flags & FD_CLOEXEC);
    assert_true(o.status_flags & O_NONBLOCK);
    assert_true(o.others_closed);
    assert_true(o.env_cleared);
    o = take(fds, 2, "1", NULL);
    assert_int_equal(o.result, 0);
    assert_int_equal(o.tcp_fd, 3);
    assert_int_equal(o.unix_fd, -1);
    close(fds[0]);
    close(fds[1]);
}

/* What is meant for another process, or is no number, counts as nothing. */
static void takes_nothing_that_is_not_its_own(void **state)
{
    static const struct {
        const char *count;
        const char *pid;
    } cases[] = {{"1", "1"},   {"1", ""},    {"1", "x"}, {"0", NULL},
                 {"-1", NULL}, {"1x", NULL}, {"", NULL}, {"99999999999999999999", NULL}};
    const int fd = make_socket(AF_UNIX, SOCK_STREAM, true);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct outcome o = take(&fd, 1, cases[i].count, cases[i].pid);

        assert_int_equal(o.result, 0);
        assert_int_equal(o.unix_fd, -1);
        assert_int_equal(o.tcp_fd, -1);
        assert_true(o.others_closed);
        assert_true(o.env_cleared);
    }
    close(fd);
}

static void refuses_what_is_no_listener(void **state)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int datagrams = make_socket(AF_UNIX, SOCK_DGRAM, false);
    const int silent = make_socket(AF_INET, SOCK_STREAM, false);
    const int twice[] = {make_socket(AF_UNIX, SOCK_STREAM, true),
                         make_socket(AF_UNIX, SOCK_STREAM, true)};
    struct outcome o;

    (void)state;
    o = take(&file, 1, "1", NULL);
    assert_int_equal(o.result, -EINVAL);
    assert_non_null(strstr(o.message, "descriptor 3 of $LISTEN_FDS is no listening socket"));
    assert_int_equal(take(&datagrams, 1, "1", NULL).result, -EINVAL);
    assert_int_equal(take(&silent, 1, "1", NULL).result, -EINVAL);
    o = take(twice, 2, "2", NULL);
    assert_int_equal(o.result, -EINVAL);
    assert_non_null(strstr(o.message, "two unix sockets"));
    assert_int_equal(o.unix_fd, -1);
    /* More than there are. */
    assert_int_equal(take(twice, 1, "2", NULL).result, -EINVAL);
    assert_int_equal(take(twice, 1, "65", NULL).result, -EINVAL);
    close(file);
    close(datagrams);
    close(silent);
    close(twice[0]);
    close(twice[1]);
}

/* A manager at a name of the abstract kind. */
static int open_manager(char *name, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int len = snprintf(name, size, "@skillvm-test-%d", getpid());

    assert_true(fd >= 0);
    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
                     0);
    return fd;
}

static void notifications_arrive(void **state)
{
    struct notify n;
    char name[64], text[4096], pid[16];
    int manager = open_manager(name, sizeof(name));
    ssize_t len;

    (void)state;
    snprintf(pid, sizeof(pid), "%d", getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    n = notify_open();
    assert_true(n.fd >= 0);
    assert_int_equal(n.watchdog_ms, 3000);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    notify_send(&n, "READY=1\nSTATUS=%d running", 7);
    len = recv(manager, text, sizeof(text), 0);
    assert_int_equal(len, strlen("READY=1\nSTATUS=7 running"));
    assert_memory_equal(text, "READY=1\nSTATUS=7 running", (size_t)len);
    /* Too long is cut, and a manager that does not read holds up nobody. */
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 5000; i++)
        notify_send(&n, "STATUS=%s", text);
    assert_int_equal(recv(manager, text, sizeof(text), 0), 1023);
    close(manager);
    notify_send(&n, "STATUS=nobody hears");
    notify_close(&n);
    notify_close(&n);
}

static void without_a_manager_nothing_is_sent(void **state)
{
    static const char *const names[] = {"", "@", "relative"};
    char longer[200];
    struct notify n;

    (void)state;
    memset(longer, 'a', sizeof(longer));
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        setenv("WATCHDOG_USEC", "1000000", 1);
        n = notify_open();
        assert_int_equal(n.fd, -1);
        assert_int_equal(n.watchdog_ms, 0);
        notify_send(&n, "READY=1");
    }
    setenv("NOTIFY_SOCKET", longer, 1);
    assert_int_equal(notify_open().fd, -1);
    /* A watchdog for another process is none for us. */
    setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    setenv("WATCHDOG_USEC", "1000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    n = notify_open();
    assert_true(n.fd >= 0);
    assert_int_equal(n.watchdog_ms, 0);
    notify_send(&n, "READY=1");
    notify_close(&n);
}

static void resources_are_compared(void **state)
{
    struct config_watermarks w = {0};
    struct watermarks_state s;
    struct watermarks *r;
    struct err err = {0}, disk = {0}, memory = {0};
    int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_int_equal(watermarks_create(dir, &w, &r, &err), 0);
    watermarks_look(r, &s);
    assert_false(s.disk.low || s.memory.low);
    assert_true(s.disk.free_bytes > 0 && s.memory.free_bytes > 0);
    assert_int_equal(watermarks_check(r, &err), 0);
    assert_int_equal(err.code, 0);
    w.disk_free.percent = 100;
    watermarks_set(r, &w);
    assert_int_equal(watermarks_check(r, &disk), -ENOSPC);
    assert_non_null(strstr(disk.message, "of disk space are free"));
    w = (struct config_watermarks){.memory_free.bytes = 1ull << 50};
    watermarks_set(r, &w);
    assert_int_equal(watermarks_check(r, &memory), -ENOSPC);
    assert_non_null(strstr(memory.message, "of memory are free, 1073741824 MiB are the least"));
    watermarks_look(r, &s);
    assert_false(s.disk.low);
    assert_true(s.memory.low);
    watermarks_destroy(r);
    watermarks_destroy(NULL);
    close(dir);
}

/* Of a disk with that many files free; 0: as it is. */
static fsfilcnt_t files_free;

int __real_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
    int r = __real_fstatvfs(fd, ret);

    if (r == 0 && files_free > 0) {
        ret->f_files = 1000000;
        ret->f_favail = files_free;
    }
    return r;
}

/* Small files take none of the space that counts, and yet all of a disk. */
static void files_are_counted(void **state)
{
    const struct config_watermarks w = {0};
    struct watermarks *r;
    struct err err = {0};
    int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_int_equal(watermarks_create(dir, &w, &r, &err), 0);
    files_free = 10000;
    assert_int_equal(watermarks_check(r, &err), 0);
    files_free = 9999;
    watermarks_set(r, &w);
    assert_int_equal(watermarks_check(r, &err), -ENOSPC);
    assert_string_equal(err.message,
                        "the disk has room for 9999 more files, 10000 are the least");
    assert_int_equal(watermarks_check_room(r, 1, &err), -ENOSPC);
    files_free = 0;
    watermarks_destroy(r);
    close(dir);
}

/* Where a file system cannot be looked at, nothing is refused for it. */
static void what_cannot_be_read_is_enough(void **state)
{
    const struct config_watermarks w = {.disk_free.percent = 100};
    struct watermarks_state s;
    struct watermarks *r;
    struct err err = {0};

    (void)state;
    assert_int_equal(watermarks_create(-1, &w, &r, &err), 0);
    watermarks_look(r, &s);
    assert_false(s.disk.low);
    watermarks_destroy(r);
}

static void starts_are_forgotten_in_time(void **state)
{
    const struct err no = {EIO, "no KVM"};
    struct starts s = STARTS_INIT;
    struct err why = {0}, none = {0};
    uint64_t now = 1000;

    (void)state;
    for (int i = 0; i < 2; i++) {
        starts_note(&s, now, &no);
        assert_int_equal(starts_check(&s, now, &none), 0);
    }
    starts_note(&s, now, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(starts_check(&s, now, &none), 0);
        starts_note(&s, now, &no);
    }
    assert_int_equal(starts_check(&s, now + STARTS_WHILE_NS - 1, &why), -EIO);
    assert_string_equal(why.message, "the last 3 machines did not start: no KVM");
    assert_int_equal(starts_check(&s, now + STARTS_WHILE_NS, &none), 0);
    starts_note(&s, now + 1, &no);
    why = (struct err){0};
    assert_int_equal(starts_check(&s, now + 2, &why), -EIO);
    starts_note(&s, now + 3, NULL);
    assert_int_equal(starts_check(&s, now + 4, &none), 0);
    assert_int_equal(none.code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_both_kinds),
        cmocka_unit_test(takes_nothing_that_is_not_its_own),
        cmocka_unit_test(refuses_what_is_no_listener),
        cmocka_unit_test(notifications_arrive),
        cmocka_unit_test(without_a_manager_nothing_is_sent),
        cmocka_unit_test(starts_are_forgotten_in_time),
        cmocka_unit_test(resources_are_compared),
        cmocka_unit_test(files_are_counted),
        cmocka_unit_test(what_cannot_be_read_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
