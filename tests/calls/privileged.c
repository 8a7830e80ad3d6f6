/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only root may do, and what a smaller kernel leaves out: each is one call that would work
 * on an ordinary machine, or that its root could make.
 */
#include "tests/calls/calls.h"

#include <linux/bpf.h>
#include <linux/kcmp.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What keyctl and add_key are asked for: the keyring of the process. */
#define KEY_OF_PROCESS (-2L)

static union bpf_attr bpf;
static struct perf_event_attr perf = {
    .type = PERF_TYPE_SOFTWARE, .size = sizeof(perf), .config = PERF_COUNT_SW_TASK_CLOCK};
static unsigned descriptor_16[4];
static const unsigned no_groups[1];
static const unsigned long attributes[4];

static int compare_descriptors(void)
{
    return syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, 0, 0) < 0 ? -errno : 0;
}

static int clone3_user_namespace(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    TRY(pid);
    if (pid == 0)
        _exit(0);
    return probe_child_wait((int)pid);
}

static int clone_user_namespace(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    TRY(pid);
    if (pid == 0)
        _exit(0);
    return probe_child_wait((int)pid);
}

#define TEXT(text) ((long)(text))
#define X32_BIT    0x40000000

static const struct probe probes[] = {
    {.name = "setuid to root", .number = SYS_setresuid, .args = {0, 0, 0}},
    {.name = "setgid to root", .number = SYS_setresgid, .args = {0, 0, 0}},
    {.name = "setgroups", .number = SYS_setgroups, .args = {1, (long)no_groups}},
    {.name = "chroot", .number = SYS_chroot, .args = {TEXT(".")}},
    {.name = "pivot_root", .number = SYS_pivot_root, .args = {TEXT("."), TEXT(".")}},
    {.name = "mount",
     .number = SYS_mount,
     .args = {TEXT("none"), TEXT("."), TEXT("tmpfs"), 0, 0}},
    {.name = "umount2", .number = SYS_umount2, .args = {TEXT("/proc"), MNT_DETACH}},
    {.name = "fsopen", .number = SYS_fsopen, .args = {TEXT("tmpfs"), 0}},
    {.name = "open_tree OPEN_TREE_CLONE",
     .number = SYS_open_tree,
     .args = {-100, TEXT("."), OPEN_TREE_CLONE}},
    {.name = "unshare CLONE_NEWUSER", .number = SYS_unshare, .args = {CLONE_NEWUSER}},
    PROBE("clone CLONE_NEWUSER", clone_user_namespace),
    PROBE("clone3 CLONE_NEWUSER", clone3_user_namespace),
    {.name = "unshare CLONE_NEWNS", .number = SYS_unshare, .args = {CLONE_NEWNS}},
    {.name = "unshare CLONE_NEWPID", .number = SYS_unshare, .args = {CLONE_NEWPID}},
    {.name = "unshare CLONE_NEWNET", .number = SYS_unshare, .args = {CLONE_NEWNET}},
    {.name = "unshare CLONE_FILES", .number = SYS_unshare, .args = {CLONE_FILES}},
    {.name = "setns", .number = SYS_setns, .args = {-1, 0}},
    {.name = "move_mount",
     .number = SYS_move_mount,
     .args = {-100, TEXT("."), -100, TEXT("."), 0}},
    {.name = "mount_setattr",
     .number = SYS_mount_setattr,
     .args = {-100, TEXT("."), 0, (long)attributes, sizeof(attributes)}},
    {.name = "reboot", .number = SYS_reboot},
    {.name = "sethostname", .number = SYS_sethostname, .args = {TEXT("x"), 1}},
    {.name = "settimeofday", .number = SYS_settimeofday, .args = {(long)descriptor_16, 0}},
    {.name = "vhangup", .number = SYS_vhangup},
    {.name = "syslog", .number = SYS_syslog, .args = {3, (long)descriptor_16, 16}},
    {.name = "swapon", .number = SYS_swapon, .args = {TEXT("a"), 0}},
    {.name = "acct", .number = SYS_acct},
    {.name = "quotactl", .number = SYS_quotactl, .args = {0x800001, 0, 0, 0}},
    {.name = "init_module", .number = SYS_init_module, .args = {TEXT("x"), 1, TEXT("")}},
    {.name = "finit_module", .number = SYS_finit_module, .args = {-1, TEXT(""), 0}},
    {.name = "kexec_load", .number = SYS_kexec_load},
    {.name = "calls of x32", .number = SYS_getpid | X32_BIT},
    {.name = "iopl", .number = SYS_iopl, .args = {3}},
    {.name = "ioperm", .number = SYS_ioperm, .args = {0x80, 1, 1}},
    {.name = "modify_ldt", .number = SYS_modify_ldt, .args = {0, (long)descriptor_16, 16}},
    {.name = "bpf", .number = SYS_bpf, .args = {BPF_MAP_CREATE, (long)&bpf, sizeof(bpf)}},
    {.name = "perf_event_open",
     .number = SYS_perf_event_open,
     .args = {(long)&perf, 0, -1, -1, 0}},
    {.name = "landlock_create_ruleset",
     .number = SYS_landlock_create_ruleset,
     .args = {0, 0, LANDLOCK_CREATE_RULESET_VERSION}},
    {.name = "add_key",
     .number = SYS_add_key,
     .args = {TEXT("user"), TEXT("name"), TEXT("x"), 1, KEY_OF_PROCESS}},
    {.name = "keyctl", .number = SYS_keyctl, .args = {0, KEY_OF_PROCESS, 0}},
    PROBE("kcmp", compare_descriptors),
    {.name = "prctl PR_CAPBSET_DROP", .number = SYS_prctl, .args = {PR_CAPBSET_DROP, 0}},
    {.name = "prctl PR_SET_MM", .number = SYS_prctl, .args = {PR_SET_MM, PR_SET_MM_BRK, 0}},
};

const struct probe_list calls_privileged = PROBE_LIST(probes);
