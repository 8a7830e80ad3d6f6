/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of a host that stands still, as its disk found no room, against the fake QEMU
 * of host_supervisor.c.
 */
#include "api/host/host.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/fake_qemu.h"

int __real_statvfs(const char *path, struct statvfs *fs);
int __wrap_statvfs(const char *path, struct statvfs *fs);
int __wrap_statvfs(const char *path, struct statvfs *fs)
{
    char full[128];
    int r = __real_statvfs(path, fs);

    snprintf(full, sizeof(full), "%s/full", fake_host_dir);
    if (access(full, F_OK) == 0)
        fs->f_bavail = fs->f_bfree = (8u << 20) / fs->f_frsize;
    return r;
}

/* In the supervisor's log, how often. */
static unsigned logged(const char *text)
{
    char path[256], line[1024];
    unsigned n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/softhost/log", fake_host_data);
    f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

static void make_room(void)
{
    char full[128];

    snprintf(full, sizeof(full), "%s/full", fake_host_dir);
    assert_int_equal(unlink(full), 0);
}

/* Has the host's disk find no room. Who asked for it, whose request is answered when there is.
 */
static pid_t fill(void)
{
    char answer[1024] = "";
    pid_t asking;

    fake_host_touch("full");
    asking = fork();
    if (asking == 0)
        _exit(fake_host_ask("/full", answer, sizeof(answer)) == sizeof(FAKE_QEMU_ANSWER) - 1
                  ? 0
                  : 1);
    for (int i = 0; i < 3000; i++) {
        /* Who was asking when it stopped is told nothing. */
        (void)fake_host_ask("/x", answer, sizeof(answer));
        if (strstr(answer, "503 "))
            break;
        usleep(10000);
    }
    assert_non_null(strstr(answer, "503 Service Unavailable"));
    assert_non_null(strstr(answer, "\"message\":\"" HOST_FULL_TEXT "\"}"));
    assert_true(fake_host_status_now().is_full);
    return asking;
}

/* It is not hung: who comes is told, and it goes on when there is room. */
static void test_a_full_disk_is_told_and_waited_for(void **state)
{
    char answer[1024] = "";
    pid_t pid = fake_host_start_ready(), asking = fill();

    (void)state;
    make_room();
    assert_int_equal(fake_host_end(asking), 0);
    assert_int_equal(fake_host_ask("/x", answer, sizeof(answer)), sizeof(FAKE_QEMU_ANSWER) - 1);
    assert_false(fake_host_status_now().is_full);
    assert_int_equal(fake_host_status_now().restarts, 0);
    fake_host_stop(pid);
}

static void test_one_that_stops_again_is_spoken_of_once(void **state)
{
    char answer[256];
    pid_t pid = fake_host_start_ready();
    uint64_t began_ns = clock_monotonic_ns();

    (void)state;
    assert_int_equal(fake_host_ask("/again", answer, sizeof(answer)),
                     sizeof(FAKE_QEMU_ANSWER) - 1);
    assert_true(clock_monotonic_ns() - began_ns >= 2 * NS_PER_SECOND);
    assert_int_equal(logged("event=stopped"), 1);
    assert_int_equal(fake_host_status_now().restarts, 0);
    fake_host_stop(pid);
}

static void test_one_that_does_not_go_on_is_restarted(void **state)
{
    char answer[256];
    pid_t pid;

    (void)state;
    fake_host_options.silence_ms = 8000;
    pid = fake_host_start_ready();
    fake_host_options.silence_ms = 20000;
    assert_int_equal(fake_host_ask("/stuck", answer, sizeof(answer)), 0);
    fake_host_wait_for_restart(1);
    assert_non_null(strstr(fake_host_status_now().last_reason, "stood still"));
    assert_false(fake_host_status_now().is_full);
    /* Nor is it known to, where nobody can tell it to. */
    assert_int_equal(fake_host_ask("/deaf", answer, sizeof(answer)), 0);
    fake_host_wait_for_restart(2);
    assert_non_null(strstr(fake_host_status_now().last_reason, "stood still"));
    fake_host_stop(pid);
}

/* What stands still, and can go on, powers off; what cannot is not waited for. */
static void test_a_stop_while_the_disk_is_full(void **state)
{
    pid_t pid = fake_host_start_ready(), asking = fill();
    int status;

    (void)state;
    /* So that it sees the signal together with the room. */
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    make_room();
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
    assert_int_equal(fake_host_end(pid), 0);
    assert_int_equal(fake_host_end(asking), 0);
    assert_int_equal(logged("fake: power off"), 1);
    assert_int_equal(logged("killing it"), 0);

    pid = fake_host_start_ready();
    asking = fill();
    fake_host_stop(pid);
    assert_int_equal(fake_host_end(asking), 1);
    assert_int_equal(logged("fake: power off"), 1);
    assert_int_equal(logged("killing it"), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_full_disk_is_told_and_waited_for,
                                        fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_stops_again_is_spoken_of_once,
                                        fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_does_not_go_on_is_restarted,
                                        fake_host_setup, fake_host_teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_while_the_disk_is_full, fake_host_setup,
                                        fake_host_teardown),
    };

    if (argc > 1 && strstr(argv[0], "qemu-system-x86_64"))
        return fake_qemu(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
