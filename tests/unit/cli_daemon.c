/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which daemon a command may stop, whose marks it may remove, and when one has started. This
 * program is its own daemon: called skillvmd it listens and says what the file "answer" has, or
 * ends at once where the directory is taken.
 */
#include "api/cli/daemon.h"

#include "api/cli/mark.h"
#include "api/cli/peer.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct cli cli;
static const struct daemon_settings none;

/* To whoever comes, once he has asked. */
static void answer(int listener, const char *data_dir)
{
    _cleanup_fd_ int fd = accept(listener, NULL, NULL);
    char path[PATH_MAX], text[1024];
    ssize_t n;

    snprintf(path, sizeof(path), "%s/answer", data_dir);
    _cleanup_fd_ int file = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || file < 0 || read(fd, text, sizeof(text)) <= 0)
        return;
    n = read(file, text, sizeof(text));
    if (n > 0)
        (void)!write(fd, text, (size_t)n);
}

static int be_daemon(const char *socket_path, const char *data_dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* A test that fails leaves nothing. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (flock(dir, LOCK_EX | LOCK_NB) < 0)
        return 1;
    strncpy(address.sun_path, socket_path, sizeof(address.sun_path) - 1);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0)
        return 1;
    for (;;)
        answer(fd, data_dir);
}

static pid_t start_daemon(void)
{
    char path[PATH_MAX];
    pid_t pid = fork(), found = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        execl(cli_sibling(&cli, "skillvmd", path), "skillvmd", "--socket", cli.socket_path,
              "--data", cli.data_dir, (char *)NULL);
        _exit(127);
    }
    for (unsigned i = 0; peer_find(cli.socket_path, &found) != 0 && i < 6000; i++)
        usleep(10000);
    assert_int_equal(found, pid);
    return pid;
}

static bool runs(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(cli.socket_path);
}

static char *in_data(const char *name)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", cli.data_dir, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void use_once(void)
{
    struct err err = {0};
    struct daemon_use use = {.lock_fd = daemon_lock(&cli, false, &err)};

    assert_true(use.lock_fd >= 0);
    daemon_use_end(&cli, &use);
}

static void marks(void **state)
{
    char *path = in_data("mark"), text[64];
    pid_t pid = fork();
    (void)state;

    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_int_equal(mark_read(path), 0);
    assert_int_equal(mark_write(path, pid), 0);
    assert_int_equal(mark_read(path), pid);
    assert_int_equal(mark_write(path, getpid()), -EEXIST);
    mark_remove_stale(path);
    assert_int_equal(mark_read(path), pid);

    /* The same number, but another process. */
    snprintf(text, sizeof(text), "%d 1\n", (int)pid);
    write_text(path, text);
    assert_int_equal(mark_read(path), 0);
    assert_int_equal(mark_write(path, pid), 0);

    /* Ended, and not waited for yet. */
    siginfo_t info;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(mark_read(path), 0);
    assert_int_equal(mark_write(path, pid), -ESRCH);
    waitpid(pid, NULL, 0);
    assert_int_equal(mark_read(path), 0);
    mark_remove_stale(path);
    assert_int_equal(access(path, F_OK), -1);
}

static void damaged_marks(void **state)
{
    static const char *const bad[] = {"",  "1 1\n", "x",    "-1 5\n", "99999999999 5\n",
                                      "5", "5 ",    "5 x\n"};
    char *path = in_data("mark");
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_text(path, bad[i]);
        assert_int_equal(mark_read(path), 0);
    }
    unlink(path);
}

/* A run was killed, its daemon ended, and somebody started another one to stay. */
static void stranger_stays(void **state)
{
    char text[64];
    pid_t pid = start_daemon();
    (void)state;

    write_text(in_data("one-shot"), "");
    use_once();
    assert_true(runs(pid));
    snprintf(text, sizeof(text), "%d 1\n", (int)pid);
    write_text(in_data("one-shot"), text);
    use_once();
    assert_true(runs(pid));
    stop(pid);
    unlink(in_data("one-shot"));
}

static void marked_is_stopped(void **state)
{
    pid_t pid = start_daemon();
    (void)state;

    assert_int_equal(mark_write(in_data("one-shot"), pid), 0);
    use_once();
    assert_false(runs(pid));
    assert_int_equal(access(in_data("one-shot"), F_OK), -1);
}

/* A start that fails because a daemon has the directory leaves that one's marks alone. */
static void second_start(void **state)
{
    pid_t pid = start_daemon();
    struct cli other = cli;
    struct err err = {0};
    (void)state;

    assert_int_equal(mark_write(in_data("skillvmd.pid"), pid), 0);
    assert_int_equal(mark_write(in_data("one-shot"), pid), 0);
    strcat(other.socket_path, "2");
    assert_int_equal(daemon_start(&other, &none, false, true, &err), -ECHILD);
    assert_int_equal(mark_read(in_data("skillvmd.pid")), pid);
    assert_int_equal(mark_read(in_data("one-shot")), pid);
    assert_true(runs(pid));
    assert_int_equal(daemon_stop(&cli, &err), 0);
    assert_false(runs(pid));
    assert_int_equal(access(in_data("skillvmd.pid"), F_OK), -1);
    assert_int_equal(access(in_data("one-shot"), F_OK), -1);
}

/* It goes on without its cluster, and so it is not ended, nor waited for. */
static void without_its_cluster_it_has_started(void **state)
{
    static const char body[] = "{\"status\":\"cut_off\","
                               "\"checks\":{\"snapshot\":\"ok\",\"cluster\":\"not there\"}}";
    struct err err = {0};
    char text[512];

    (void)state;
    snprintf(text, sizeof(text),
             "HTTP/1.1 503 Unavailable\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    write_text(in_data("answer"), text);
    assert_int_equal(daemon_start(&cli, &none, false, false, &err), 0);
    unlink(in_data("answer"));
    assert_int_equal(daemon_stop(&cli, &err), 0);
}

static int copy_program(const char *from, const char *to)
{
    _cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    struct stat st;

    if (in < 0 || out < 0 || fstat(in, &st) < 0)
        return -1;
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n <= 0)
            return -1;
        left -= n;
    }
    return 0;
}

static int set_up(void **state)
{
    char template[] = "/tmp/skillvm-unit.XXXXXX", self[PATH_MAX] = "", program[PATH_MAX];
    (void)state;

    if (!mkdtemp(template) || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return -1;
    snprintf(cli.data_dir, sizeof(cli.data_dir), "%s/data", template);
    snprintf(cli.socket_path, sizeof(cli.socket_path), "%s/socket", template);
    snprintf(cli.bin_dir, sizeof(cli.bin_dir), "%s", template);
    mkdir(cli.data_dir, 0700);
    return copy_program(self, cli_sibling(&cli, "skillvmd", program));
}

static int tear_down(void **state)
{
    static const char *const names[] = {"cli.lock", "skillvmd.log", "mark"};
    char program[PATH_MAX];
    (void)state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_data(names[i]));
    rmdir(cli.data_dir);
    unlink(cli_sibling(&cli, "skillvmd", program));
    return rmdir(cli.bin_dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks),          cmocka_unit_test(damaged_marks),
        cmocka_unit_test(stranger_stays), cmocka_unit_test(marked_is_stopped),
        cmocka_unit_test(second_start),   cmocka_unit_test(without_its_cluster_it_has_started),
    };

    if (argc > 4)
        return be_daemon(argv[2], argv[4]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
