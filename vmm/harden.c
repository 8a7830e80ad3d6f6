/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/harden.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filters.h"

/* poll(2) counts its descriptors against the limit: the main loop waits for three. */
#define RESTORED_NOFILE 3u

static int set_limit(int resource, rlim_t value, const char *name, struct err *err)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

    return setrlimit((__rlimit_resource_t)resource, &limit) == 0
               ? 0
               : err_set_errno(err, errno, "setting %s", name);
}

int harden_process(int last_fd, struct err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_set_errno(err, errno, "PR_SET_PDEATHSIG");
    /* Also keeps others of the same user out of this process's memory. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set_errno(err, errno, "PR_SET_DUMPABLE");
    /* ENOSYS before Linux 5.9: the daemon opens everything close-on-exec anyway. */
    if (close_range((unsigned)last_fd + 1, ~0u, 0) < 0 && errno != ENOSYS)
        return err_set_errno(err, errno, "closing other descriptors");
    return set_limit(RLIMIT_CORE, 0, "RLIMIT_CORE", err);
}

int harden_machine(bool can_save, struct err *err)
{
    struct sock_fprog restored = {
        .len = sizeof(filter_restored) / sizeof(filter_restored[0]),
        .filter = (struct sock_filter *)(uintptr_t)filter_restored,
    };
    struct sock_fprog boot = {
        .len = sizeof(filter_boot) / sizeof(filter_boot[0]),
        .filter = (struct sock_filter *)(uintptr_t)filter_boot,
    };
    int r;

    /* A machine that can be saved is sent two descriptors for it. */
    r = can_save ? 0 : set_limit(RLIMIT_NOFILE, RESTORED_NOFILE, "RLIMIT_NOFILE", err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, errno, "PR_SET_NO_NEW_PRIVS");
    /* TSYNC: the vCPU thread exists already. A positive answer is a thread that would not. */
    r = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                     can_save ? &boot : &restored);
    if (r != 0)
        return err_set_errno(err, r < 0 ? errno : ESRCH, "installing the system call filter");
    return 0;
}
