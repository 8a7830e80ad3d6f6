/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What guest-init's filter says of every call. No call is made: a filter below it refuses all
 * with an error of its own, which is what comes back for each that the one above allows.
 */
#include "guest-init/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

/* Of the filter below: no errno that a rule has. */
#define ALLOWED 98
/* The numbers that are looked at, in the order of their places. */
#define NUMBERS  1024
#define X32      0x40000000u
#define I386_NOP 20 /* getpid */

struct answer {
    int error; /* of number with first as its first argument */
    long number;
    unsigned long first;
};

static struct answer *answers;
static size_t n_answers;

static void ask(long number, unsigned long first)
{
    answers[n_answers++] = (struct answer){.number = number, .first = first};
}

/* seccomp is still to be called, and the process has to end. */
static int refuse_all(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ALLOWED),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static void find_answers(void)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (refuse_all() < 0 || filter_install() < 0)
            _exit(1);
        for (size_t i = 0; i < n_answers; i++)
            answers[i].error =
                syscall(answers[i].number, answers[i].first, 0, 0, 0, 0, 0) < 0 ? errno : 0;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int begin(void **state)
{
    (void)state;
    n_answers = 0;
    answers = mmap(NULL, NUMBERS * sizeof(*answers), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return answers == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    return munmap(answers, NUMBERS * sizeof(*answers));
}

/* As docs/syscalls.md has them; every other call of this Linux is allowed. */
static int error_of(long number)
{
    static const long denied[] = {
        SYS_syslog,       SYS_vhangup,       SYS_pivot_root,    SYS_chroot,
        SYS_settimeofday, SYS_mount,         SYS_umount2,       SYS_reboot,
        SYS_sethostname,  SYS_setdomainname, SYS_setns,         SYS_clock_settime,
        SYS_open_tree,    SYS_move_mount,    SYS_fsopen,        SYS_fsconfig,
        SYS_fsmount,      SYS_fspick,        SYS_mount_setattr, SYS_open_by_handle_at};
    static const long absent[] = {SYS_modify_ldt,
                                  SYS_acct,
                                  SYS_swapon,
                                  SYS_swapoff,
                                  SYS_iopl,
                                  SYS_ioperm,
                                  SYS_create_module,
                                  SYS_init_module,
                                  SYS_delete_module,
                                  SYS_get_kernel_syms,
                                  SYS_query_module,
                                  SYS_finit_module,
                                  SYS_quotactl,
                                  SYS_quotactl_fd,
                                  SYS_io_setup,
                                  SYS_io_destroy,
                                  SYS_io_getevents,
                                  SYS_io_submit,
                                  SYS_io_cancel,
                                  SYS_io_pgetevents,
                                  SYS_io_uring_setup,
                                  SYS_io_uring_enter,
                                  SYS_io_uring_register,
                                  SYS_kexec_load,
                                  SYS_kexec_file_load,
                                  SYS_add_key,
                                  SYS_request_key,
                                  SYS_keyctl,
                                  SYS_fanotify_init,
                                  SYS_fanotify_mark,
                                  SYS_process_vm_readv,
                                  SYS_process_vm_writev,
                                  SYS_kcmp,
                                  SYS_bpf,
                                  SYS_userfaultfd,
                                  SYS_memfd_secret};

    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        if (denied[i] == number)
            return EPERM;
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        if (absent[i] == number)
            return ENOSYS;
    if (number == SYS_perf_event_open)
        return EACCES;
    return number <= 462 ? ALLOWED : ENOSYS;
}

/* The first two are how a process gets here and away; the others, uretprobe and uprobe, are for
 * what the kernel itself wrote into a program, which it has filters leave alone. */
static bool is_left_out(long number)
{
    return number == SYS_seccomp || number == SYS_exit_group || number == 335 || number == 336;
}

static void test_every_call(void **state)
{
    (void)state;
    for (long number = 0; number < NUMBERS; number++)
        if (!is_left_out(number))
            ask(number, 0);
    find_answers();
    for (size_t i = 0; i < n_answers; i++)
        if (answers[i].error != error_of(answers[i].number))
            fail_msg("call %ld: error %d, not %d", answers[i].number, answers[i].error,
                     error_of(answers[i].number));
}

static void test_calls_of_x32(void **state)
{
    static const long numbers[] = {SYS_read, SYS_getpid, SYS_clone, SYS_unshare, 512, 547};

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        ask(numbers[i] | X32, 0);
    ask(X32 - 1, 0);
    ask(INT32_MAX, 0);
    ask(INT32_MIN, 0);
    ask(-2, 0);
    find_answers();
    for (size_t i = 0; i < n_answers; i++)
        assert_int_equal(answers[i].error, ENOSYS);
}

/* What a process makes of a call that its tracer took away: what the tracer said stands. */
static void test_a_call_that_a_tracer_took_away(void **state)
{
    (void)state;
    ask(-1, 0);
    find_answers();
    assert_int_equal(answers[0].error, ALLOWED);
}

static void test_namespaces(void **state)
{
    static const unsigned long flags[] = {
        CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
        CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, CLONE_NEWNS | CLONE_FILES};

    (void)state;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        ask(SYS_clone, flags[i] | SIGCHLD);
        ask(SYS_unshare, flags[i]);
    }
    ask(SYS_unshare, CLONE_NEWTIME);
    find_answers();
    for (size_t i = 0; i < n_answers; i++)
        if (answers[i].error != EPERM)
            fail_msg("call %ld with %#lx: error %d", answers[i].number, answers[i].first,
                     answers[i].error);
}

/* Threads, children, vfork; a signal whose number has the bit of CLONE_NEWTIME. */
static void test_what_is_no_namespace(void **state)
{
    const unsigned long thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                 CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

    (void)state;
    ask(SYS_clone, thread);
    ask(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD);
    ask(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD);
    ask(SYS_clone, 0x80);
    ask(SYS_unshare, CLONE_FILES | CLONE_FS | CLONE_SYSVSEM);
    ask(SYS_clone3, CLONE_NEWUSER);
    find_answers();
    for (size_t i = 0; i < n_answers; i++)
        assert_int_equal(answers[i].error, ALLOWED);
}

/* The status of a child that makes a call as an i386 program does. */
static int call_as_i386(int (*prepare)(void))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        long number = I386_NOP;

        if (prepare && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prepare() < 0))
            _exit(1);
        __asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_calls_of_i386_end_the_process(void **state)
{
    int status;

    (void)state;
    if (call_as_i386(NULL) != 0) {
        print_message("this kernel runs no i386 calls\n");
        skip();
    }
    status = call_as_i386(filter_install);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_call, begin, end),
        cmocka_unit_test_setup_teardown(test_calls_of_x32, begin, end),
        cmocka_unit_test_setup_teardown(test_a_call_that_a_tracer_took_away, begin, end),
        cmocka_unit_test_setup_teardown(test_namespaces, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_no_namespace, begin, end),
        cmocka_unit_test(test_calls_of_i386_end_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
