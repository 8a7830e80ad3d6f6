/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* mseal, the last call of the guest's Linux 6.12, which the headers here need not have. */
#define LAST_CALL 462u
/* Of clone's flags the lowest byte is a signal, where unshare has one for clocks. */
#define NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
     CLONE_NEWPID | CLONE_NEWNET)

/* Calls from first to last: refused, or only where their first argument has one of flags. */
struct rule {
    uint32_t first;
    uint32_t last;
    uint32_t error;
    uint32_t flags;
};

/* In the order of their numbers. */
static const struct rule rules[] = {
    /* Namespaces of any kind. clone3 has its flags where no filter sees them: the kernel, where
     * user namespaces are left out, refuses it the same to who has no capability. */
    {SYS_clone, SYS_clone, EPERM, NAMESPACES},
    /* The kernel's own log, which says where things are. */
    {SYS_syslog, SYS_syslog, EPERM, 0},
    /* Terminals of others. */
    {SYS_vhangup, SYS_vhangup, EPERM, 0},
    /* Segments of 16-bit programs. */
    {SYS_modify_ldt, SYS_modify_ldt, ENOSYS, 0},
    /* Another root; a way out of the sandbox's mounts. */
    {SYS_pivot_root, SYS_pivot_root, EPERM, 0},
    {SYS_chroot, SYS_chroot, EPERM, 0},
    /* Accounting of a machine's users. */
    {SYS_acct, SYS_acct, ENOSYS, 0},
    /* The clock is the host's to set. */
    {SYS_settimeofday, SYS_settimeofday, EPERM, 0},
    /* File systems: what parses a stranger's disk. */
    {SYS_mount, SYS_umount2, EPERM, 0},
    /* Swapping to files. */
    {SYS_swapon, SYS_swapoff, ENOSYS, 0},
    /* The end of the machine is guest-init's. */
    {SYS_reboot, SYS_reboot, EPERM, 0},
    /* Names of the machine. */
    {SYS_sethostname, SYS_setdomainname, EPERM, 0},
    /* Ports of devices. */
    {SYS_iopl, SYS_ioperm, ENOSYS, 0},
    /* Code for the kernel. */
    {SYS_create_module, SYS_query_module, ENOSYS, 0},
    /* Quotas of a machine's users. */
    {SYS_quotactl, SYS_quotactl, ENOSYS, 0},
    /* Files read and written in the background: long full of mistakes, and hardly used. */
    {SYS_io_setup, SYS_io_cancel, ENOSYS, 0},
    {SYS_clock_settime, SYS_clock_settime, EPERM, 0},
    /* Another kernel. */
    {SYS_kexec_load, SYS_kexec_load, ENOSYS, 0},
    /* Keyrings: reference counts that were attacked often. */
    {SYS_add_key, SYS_keyctl, ENOSYS, 0},
    {SYS_unshare, SYS_unshare, EPERM, NAMESPACES | CLONE_NEWTIME},
    /* Counters of the processor: much code, which cannot be left out of the kernel. */
    {SYS_perf_event_open, SYS_perf_event_open, EACCES, 0},
    /* Who opens files of others. */
    {SYS_fanotify_init, SYS_fanotify_mark, ENOSYS, 0},
    /* Opening by number passes by the folders above a file, and their permissions. */
    {SYS_open_by_handle_at, SYS_open_by_handle_at, EPERM, 0},
    /* Namespaces of others. */
    {SYS_setns, SYS_setns, EPERM, 0},
    /* Memory of others, and what they have open; ptrace is there for one's own. */
    {SYS_process_vm_readv, SYS_process_vm_writev, ENOSYS, 0},
    {SYS_kcmp, SYS_kcmp, ENOSYS, 0},
    {SYS_finit_module, SYS_finit_module, ENOSYS, 0},
    {SYS_kexec_file_load, SYS_kexec_file_load, ENOSYS, 0},
    /* Programs in the kernel: its verifier was mistaken often. */
    {SYS_bpf, SYS_bpf, ENOSYS, 0},
    /* Holding the kernel up in a page fault makes races that can be won. */
    {SYS_userfaultfd, SYS_userfaultfd, ENOSYS, 0},
    {SYS_io_pgetevents, SYS_io_pgetevents, ENOSYS, 0},
    /* A second way to make most calls, past a filter of them. */
    {SYS_io_uring_setup, SYS_io_uring_register, ENOSYS, 0},
    /* mount, in its newer parts. */
    {SYS_open_tree, SYS_fspick, EPERM, 0},
    {SYS_mount_setattr, SYS_mount_setattr, EPERM, 0},
    {SYS_quotactl_fd, SYS_quotactl_fd, ENOSYS, 0},
    /* Memory that the kernel itself cannot read. */
    {SYS_memfd_secret, SYS_memfd_secret, ENOSYS, 0},
    /* x32's numbers, and any that a newer kernel may have. -1 alone is what a process makes of
     * a call that its tracer has it leave out. */
    {LAST_CALL + 1, UINT32_MAX - 1, ENOSYS, 0},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))
/* A jump reaches 255 instructions, which is what bounds the program. */
#define PROGRAM_MAX 255u
_Static_assert(6 * RULES + 6 <= PROGRAM_MAX, "a jump may not reach across the program");

struct program {
    struct sock_filter code[PROGRAM_MAX];
    uint16_t len;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    p->code[p->len++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void put_load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(struct program *p, uint32_t action)
{
    put(p, BPF_RET | BPF_K, action, 0, 0);
}

/* Of a number that is not below the first of the rule and below that of the next one. */
static void put_rule(struct program *p, const struct rule *rule)
{
    put(p, BPF_JMP | BPF_JGT | BPF_K, rule->last, rule->flags ? 3 : 1, 0);
    if (rule->flags) {
        put_load(p, offsetof(struct seccomp_data, args[0]));
        put(p, BPF_JMP | BPF_JSET | BPF_K, rule->flags, 0, 1);
    }
    put_return(p, SECCOMP_RET_ERRNO | rule->error);
    put_return(p, SECCOMP_RET_ALLOW);
}

/*
 * Halves them at each step. The kernel goes through it once for every call that there is, when
 * it is installed, and never again for those that are allowed whatever their arguments.
 */
static void put_rules(struct program *p, const struct rule *from, size_t n)
{
    uint16_t jump = p->len;

    if (n == 1) {
        put_rule(p, from);
        return;
    }
    put(p, BPF_JMP | BPF_JGE | BPF_K, from[n / 2].first, 0, 0);
    put_rules(p, from, n / 2);
    p->code[jump].jt = (uint8_t)(p->len - jump - 1);
    put_rules(p, from + n / 2, n - n / 2);
}

int filter_install(void)
{
    struct program p = {.len = 0};
    struct sock_fprog program;

    put_load(&p, offsetof(struct seccomp_data, arch));
    put(&p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    put_return(&p, SECCOMP_RET_KILL_PROCESS);
    put_load(&p, offsetof(struct seccomp_data, nr));
    put(&p, BPF_JMP | BPF_JGE | BPF_K, rules[0].first, 1, 0);
    put_return(&p, SECCOMP_RET_ALLOW);
    put_rules(&p, rules, RULES);
    program = (struct sock_fprog){.len = p.len, .filter = p.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
