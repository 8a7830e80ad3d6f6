/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine's process that was taken over writes to its standard error, what it tells the
   daemon in place of what that waits for, and what is said of one that memory ended. */
#include "api/daemon/machine/vm.h"

#include "api/daemon/machine/jail.h"
#include "base/clock.h"
#include "base/fd.h"
#include "vmm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#define PIPE 4096 /* bytes that wait for the daemon */

/* What the stand-in reads to know what it does, and nothing else. */
static int file_of(const char *text)
{
    _cleanup_fd_ int fd = memfd_create("file", MFD_CLOEXEC);
    int reader;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    reader = fd_reopen(fd, O_RDONLY);
    assert_true(reader >= 0);
    return reader;
}

/* This process's standard error, from here on. */
static int catch_log(int *ret_old)
{
    int log = memfd_create("log", MFD_CLOEXEC);

    *ret_old = dup(STDERR_FILENO);
    assert_true(log >= 0 && *ret_old >= 0);
    assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
    return log;
}

static void test_flood(void **state)
{
    const struct jail_config config = {
        .program = JAIL, .machine = FAKE_VMM, .layers = JAIL_ALL};
    struct vm_boot boot = {.memory_mib = 1};
    struct vm vm = vm_init();
    struct err err = {0};
    char said[16384];
    siginfo_t ended = {0};
    unsigned lines = 0;
    ssize_t n;
    int log, old;

    (void)state;
    boot.kernel_fd = boot.image_fd = boot.console_fd = file_of("boot=flood");
    assert_int_equal(jail_open(&config, &boot.jail, &err), 0);
    log = catch_log(&old);
    assert_int_equal(vm_start_boot(&boot, &vm, &err), 0);
    /* Until no further line has room. */
    assert_int_equal(fcntl(vm.log_fd, F_GETPIPE_SZ), PIPE);
    for (int held = 0; held < PIPE - 64;) {
        assert_int_equal(ioctl(vm.log_fd, FIONREAD, &held), 0);
        assert_int_equal(waitid(P_PID, (id_t)vm.pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        assert_int_equal(ended.si_pid, 0);
    }
    vm_finish(&vm);
    assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
    close(old);
    n = fd_pread_full(log, said, sizeof(said) - 1, 0);
    close(log);
    assert_true(n > 0);
    said[n] = '\0';
    assert_non_null(strstr(said, " said=\"error \\\"engine\\\" ?[31m??forged\"\n"));
    for (char *rest = said, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        assert_int_equal(strncmp(line, "warn vmm process=", 17), 0);
        for (const char *c = line; *c; c++)
            assert_in_range(*c, 0x20, 0x7e);
    }
    assert_int_equal(lines, 16);
    assert_int_equal(vm.log_fd, -1);
    jail_close(boot.jail);
    close(boot.kernel_fd);
}

/* Beyond the first of all, one a second, whoever says them. */
static void test_many_floods(void **state)
{
    const struct jail_config config = {
        .program = JAIL, .machine = FAKE_VMM, .layers = JAIL_ALL};
    const uint64_t begin = clock_monotonic_ns();
    struct vm_boot boot = {.memory_mib = 1};
    struct err err = {0};
    static char said[65536];
    uint64_t lines = 0;
    int log, old;

    (void)state;
    boot.kernel_fd = boot.image_fd = boot.console_fd = file_of("boot=flood");
    assert_int_equal(jail_open(&config, &boot.jail, &err), 0);
    log = catch_log(&old);
    for (int i = 0; i < 6; i++) {
        struct vm vm = vm_init();

        assert_int_equal(vm_start_boot(&boot, &vm, &err), 0);
        for (int held = 0; held < PIPE - 64;)
            assert_int_equal(ioctl(vm.log_fd, FIONREAD, &held), 0);
        vm_finish(&vm);
    }
    assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
    close(old);
    assert_true(fd_pread_full(log, said, sizeof(said) - 1, 0) > 0);
    close(log);
    for (const char *at = said; (at = strstr(at, "warn vmm process=")); at++)
        lines++;
    /* Six of 16 each would be 96. */
    assert_in_range(lines, 16, 64 + (clock_monotonic_ns() - begin) / NS_PER_SECOND);
    jail_close(boot.jail);
    close(boot.kernel_fd);
}

/* Who reads no commands is not waited for: what he was given before is all that he holds. */
static void test_commands_that_nobody_reads(void **state)
{
    const struct jail_config config = {
        .program = JAIL, .machine = FAKE_VMM, .layers = JAIL_ALL};
    const uint64_t bytes[2] = {512, 512};
    struct vm_boot boot = {.memory_mib = 1};
    struct vm vm = vm_init();
    struct err err = {0};

    (void)state;
    boot.kernel_fd = boot.image_fd = boot.console_fd = file_of("boot=silent");
    assert_int_equal(jail_open(&config, &boot.jail, &err), 0);
    assert_int_equal(vm_start_boot(&boot, &vm, &err), 0);
    (void)alarm(60);
    while (vm_send_disk(&vm, (int[]){boot.kernel_fd, boot.image_fd}, bytes, &err) == 0)
        ;
    (void)alarm(0);
    assert_int_equal(err.code, EAGAIN);
    vm_finish(&vm);
    jail_close(boot.jail);
    close(boot.kernel_fd);
}

static void send_event(int fd, enum vmm_event_type type)
{
    const struct vmm_event event = {.version = VMM_CONTROL_VERSION, .type = type};

    assert_int_equal(send(fd, &event, sizeof(event), 0), sizeof(event));
}

/* Events that nobody waits for make nobody wait beyond the time that there is. */
static void test_events_in_place_of_another(void **state)
{
    struct vm vm = vm_init();
    struct vmm_event event;
    struct err err = {0};
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    vm.control_fd = ends[0];
    send_event(ends[1], VMM_EVENT_RESUMED);
    send_event(ends[1], VMM_EVENT_DISK);
    assert_int_equal(vm_wait_event(&vm, VMM_EVENT_DISK, 0, &event, &err), -ETIMEDOUT);
    /* What came in time is there, and so is what came after it. */
    assert_int_equal(vm_wait_event(&vm, VMM_EVENT_DISK, 0, &event, &err), 0);
    send_event(ends[1], VMM_EVENT_RESUMED);
    send_event(ends[1], VMM_EVENT_DISK);
    assert_int_equal(vm_wait_event(&vm, VMM_EVENT_DISK,
                                   clock_monotonic_ns() + 60 * NS_PER_SECOND, &event, &err),
                     0);
    close(ends[0]);
    close(ends[1]);
}

/* A process that has given up its socket and stays: who waits for its end waits no longer. */
static void test_end_that_does_not_come(void **state)
{
    struct vm vm = vm_init();
    struct err err = {0};
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    vm.control_fd = ends[0];
    vm.pid = fork();
    assert_true(vm.pid >= 0);
    if (vm.pid == 0) {
        char command[sizeof(struct vmm_command)];

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        (void)!recv(ends[1], command, sizeof(command), 0);
        close(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    (void)alarm(60);
    assert_int_equal(vm_quit(&vm, clock_monotonic_ns() + 500 * NS_PER_MS, &err), -ETIMEDOUT);
    (void)alarm(0);
    assert_string_equal(err.message, "the microVM did not end in time");
    assert_int_equal(kill(vm.pid, SIGKILL), 0);
    assert_int_equal(waitpid(vm.pid, NULL, 0), vm.pid);
    close(ends[0]);
}

static enum jail_memory answer_of_jail;
static unsigned looks;

/* What the jail says of a cell, which needs a cgroup to be seen. */
enum jail_memory __wrap_jail_look(struct jail *jail, uint32_t cell);
enum jail_memory __wrap_jail_look(struct jail *jail, uint32_t cell)
{
    (void)jail;
    (void)cell;
    looks++;
    return answer_of_jail;
}

/* Starts a machine that waits, and ends it as memory does, or not at all. */
static struct vm end_one(bool killed, enum jail_memory answer, struct err *err)
{
    const struct jail_config config = {
        .program = JAIL, .machine = FAKE_VMM, .layers = JAIL_ALL};
    struct vm_boot boot = {.memory_mib = 32};
    struct vm vm = vm_init();
    struct vmm_event event;

    boot.kernel_fd = boot.image_fd = boot.console_fd = file_of("boot");
    assert_int_equal(jail_open(&config, &boot.jail, NULL), 0);
    assert_int_equal(vm_start_boot(&boot, &vm, NULL), 0);
    answer_of_jail = answer;
    looks = 0;
    if (killed) {
        assert_int_equal(kill(vm.pid, SIGKILL), 0);
        assert_int_equal(vm_wait_event(&vm, VMM_EVENT_SNAPSHOT, UINT64_MAX, &event, err),
                         -EPIPE);
    }
    /* From here on it may still be on its way out. */
    vm_finish(&vm);
    jail_close(boot.jail);
    close(boot.kernel_fd);
    return vm;
}

static void test_ended_for_memory(void **state)
{
    struct err over = {0}, is_short = {0}, other = {0};
    struct vm vm = end_one(true, JAIL_MEMORY_OVER, &over);

    (void)state;
    assert_int_equal(looks, 1);
    assert_int_equal(vm_death(&vm), VM_DEATH_MEMORY_OVER);
    vm_explain_end(&vm, &over);
    /* Twice the guest's where its file is in memory, and the overhead. */
    assert_string_equal(over.message,
                        "the machine took more of the host's memory than the 128 MiB that it "
                        "may have: the microVM's process ended");
    vm = end_one(true, JAIL_MEMORY_SHORT, &is_short);
    assert_int_equal(vm_death(&vm), VM_DEATH_MEMORY_SHORT);
    vm_explain_end(&vm, &is_short);
    assert_string_equal(is_short.message, "the host was short of memory and ended the machine: "
                                          "the microVM's process ended");
    vm = end_one(true, JAIL_MEMORY_ENOUGH, &other);
    assert_int_equal(vm_death(&vm), VM_DEATH_SIGKILL);
    vm_explain_end(&vm, &other);
    assert_string_equal(other.message, "the microVM's process ended");
}

/* The ordinary end costs no question. */
static void test_ended_by_the_daemon(void **state)
{
    struct err err = {0};
    struct vm vm = end_one(false, JAIL_MEMORY_OVER, &err);

    (void)state;
    assert_int_equal(looks, 0);
    assert_int_equal(vm_death(&vm), VM_DEATH_KILLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ended_for_memory),
        cmocka_unit_test(test_ended_by_the_daemon),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_many_floods),
        cmocka_unit_test(test_commands_that_nobody_reads),
        cmocka_unit_test(test_events_in_place_of_another),
        cmocka_unit_test(test_end_that_does_not_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
