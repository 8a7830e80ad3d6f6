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

#include "base/fd.h"
#include "seccomp_filters.h"
#include "vmm/verify.h"

#define POLLED_FDS 3u

struct filter {
    const struct sock_filter *code;
    size_t len;
};
#define FILTER(array) .code = (array), .len = sizeof(array) / sizeof((array)[0])

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

/* The numbers that are free, from the lowest on: *ret_last is the last of n of them. */
static int find_free(unsigned n, int *ret_last, struct err *err)
{
    _cleanup_fd_ int fd = dup(STDERR_FILENO);

    if (fd < 0)
        return err_set_errno(err, errno, "looking for a free descriptor");
    *ret_last = fd;
    return n > 1 ? find_free(n - 1, ret_last, err) : 0;
}

/*
 * poll(2) counts its descriptors against the limit: the main loop waits for three. A machine is
 * sent the two of a skill's disk, which take the lowest free numbers, and one that is reset a
 * third, while it still has them.
 */
static int limit_descriptors(enum harden_scope scope, int stream_fd, struct err *err)
{
    rlim_t limit;
    int last = -1;
    int r = find_free(scope == HARDEN_REUSABLE ? 3 : 2, &last, err);

    if (r < 0)
        return r;
    limit = (rlim_t)(last > stream_fd ? last : stream_fd) + 1;
    return set_limit(RLIMIT_NOFILE, limit > POLLED_FDS ? limit : POLLED_FDS, "RLIMIT_NOFILE",
                     err);
}

/* A copy of a filter in which the placeholder is the number of this process. */
static struct sock_fprog own_filter(const struct filter *filter,
                                    struct sock_filter copy[SECCOMP_LEN_MAX])
{
    uint32_t self = (uint32_t)getpid();

    for (size_t i = 0; i < filter->len; i++) {
        copy[i] = filter->code[i];
        if (BPF_CLASS(copy[i].code) == BPF_JMP && copy[i].k == SECCOMP_SELF)
            copy[i].k = self;
    }
    return (struct sock_fprog){.len = (unsigned short)filter->len, .filter = copy};
}

int harden_machine(enum harden_scope scope, int stream_fd, struct err *err)
{
    static const struct filter filters[] = {
        [HARDEN_ONCE] = {FILTER(filter_once)},
        [HARDEN_REUSABLE] = {FILTER(filter_reusable)},
        [HARDEN_BOOT] = {FILTER(filter_boot)},
    };
    static const struct filter verify = {FILTER(filter_verify)};
    const struct filter *filter = verify_is_on ? &verify : &filters[scope];
    struct sock_filter copy[SECCOMP_LEN_MAX];
    struct sock_fprog program = own_filter(filter, copy);
    /* A machine that can be saved is sent two descriptors for it. */
    int r = scope == HARDEN_BOOT ? 0 : limit_descriptors(scope, stream_fd, err);

    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, errno, "PR_SET_NO_NEW_PRIVS");
    /* TSYNC: the vCPU thread exists already. A positive answer is a thread that would not. */
    r = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (r != 0)
        return err_set_errno(err, r < 0 ? errno : ESRCH, "installing the system call filter");
    return 0;
}
