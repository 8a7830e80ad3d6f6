/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/harden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define POLLED_FDS 3u
#define SENT_FDS   (HARDEN_FD_SENT_3 - HARDEN_FD_SENT_1 + 1)

static int set_limit(int resource, rlim_t value, const char *name, struct err *err)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

    return setrlimit((__rlimit_resource_t)resource, &limit) == 0
               ? 0
               : err_set_errno(err, errno, "setting %s", name);
}

/* Whoever runs short of memory ends a machine before anything else. Not all hosts let it say
 * so. */
static void be_first_to_go(int proc_fd)
{
    _cleanup_fd_ int fd = openat(proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, "1000", 4) < 0)
        return;
}

int harden_process(int proc_fd, int last_fd, struct err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_set_errno(err, errno, "PR_SET_PDEATHSIG");
    /* While its files in /proc are its own. */
    be_first_to_go(proc_fd);
    /* Also keeps others of the same user out of this process's memory. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set_errno(err, errno, "PR_SET_DUMPABLE");
    /* ENOSYS before Linux 5.9: the daemon opens everything close-on-exec anyway. */
    if (close_range((unsigned)last_fd + 1, ~0u, 0) < 0 && errno != ENOSYS)
        return err_set_errno(err, errno, "closing other descriptors");
    return set_limit(RLIMIT_CORE, 0, "RLIMIT_CORE", err);
}

int harden_privileges(struct err *err)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? err_set_errno(err, errno, "PR_SET_NO_NEW_PRIVS")
               : 0;
}

int harden_capabilities(struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3];

    /* Whoever runs the daemon without any may have forbidden to change them, too. */
    if (syscall(SYS_capget, &header, now) == 0 && memcmp(now, none, sizeof(none)) == 0)
        return 0;
    return syscall(SYS_capset, &header, none) < 0
               ? err_set_errno(err, errno, "giving up capabilities")
               : 0;
}

/* As struct landlock_ruleset_attr of Linux 6.12; an earlier kernel wants what it does not know
   to be 0. Source: Documentation/userspace-api/landlock.rst. */
struct landlock_rules {
    uint64_t files, ports, scopes;
};

/* All that can be handled, and so denied, by the version of a kernel's Landlock; a later one
 * knows more. */
static struct landlock_rules landlock_all(int version)
{
    static const unsigned n[] = {0, 13, 14, 15, 15, 16};
    const int last = sizeof(n) / sizeof(n[0]) - 1;

    return (struct landlock_rules){
        .files = (UINT64_C(1) << n[version < last ? version : last]) - 1,
        /* TCP: to bind and to connect. */
        .ports = version >= 4 ? 3 : 0,
        /* Abstract sockets, and signals. */
        .scopes = version >= 6 ? 3 : 0,
    };
}

int harden_landlock_version(void)
{
    long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (version >= 0)
        return (int)version;
    return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
}

int harden_landlock(struct err *err)
{
    struct landlock_rules rules;
    _cleanup_fd_ int fd = -1;
    int version = harden_landlock_version();

    if (version < 0)
        return err_set_errno(err, -version, "looking for Landlock");
    if (version == 0)
        return 0;
    rules = landlock_all(version);
    fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        return err_set_errno(err, errno, "giving up files and others by Landlock");
    return 0;
}

/* The numbers that are free, n of them from the lowest on. */
static int find_free(int *ret, unsigned n, struct err *err)
{
    _cleanup_fd_ int fd = dup(STDERR_FILENO);

    if (fd < 0)
        return err_set_errno(err, errno, "looking for a free descriptor");
    *ret = fd;
    return n > 1 ? find_free(ret + 1, n - 1, err) : 0;
}

/*
 * A machine is sent the two of a skill's disk, and one that is reset a third, while it still
 * has them.
 */
int harden_find_free(struct harden_plan *plan, struct err *err)
{
    int *first = &plan->fds[HARDEN_FD_SENT_1];

    for (int i = 0; i < SENT_FDS; i++)
        first[i] = -1;
    return plan->scope == HARDEN_BOOT
               ? 0
               : find_free(first, plan->scope == HARDEN_ONCE ? SENT_FDS - 1 : SENT_FDS, err);
}

/* poll(2) counts its descriptors against the limit: the main loop waits for three. */
static int limit_descriptors(const struct harden_plan *plan, struct err *err)
{
    int last = plan->fds[HARDEN_FD_STREAM];

    for (int i = HARDEN_FD_SENT_1; i <= HARDEN_FD_SENT_3; i++)
        last = plan->fds[i] > last ? plan->fds[i] : last;
    return set_limit(RLIMIT_NOFILE,
                     (rlim_t)last + 1 > POLLED_FDS ? (rlim_t)last + 1 : POLLED_FDS,
                     "RLIMIT_NOFILE", err);
}

int harden_limits(const struct harden_plan *plan, struct err *err)
{
    static const struct {
        int resource;
        const char *name;
    } none[] = {{RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"},
                /* Not of one that saves or compares. */
                {RLIMIT_DATA, "RLIMIT_DATA"},
                {RLIMIT_FSIZE, "RLIMIT_FSIZE"}};
    size_t n =
        sizeof(none) / sizeof(none[0]) - (plan->scope == HARDEN_BOOT || plan->verify ? 2 : 0);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = set_limit(none[i].resource, 0, none[i].name, err);
    return r < 0 || plan->scope == HARDEN_BOOT ? r : limit_descriptors(plan, err);
}

int harden_confine(struct err *err)
{
    int r = harden_privileges(err);

    if (r < 0)
        return r;
    r = harden_capabilities(err);
    return r < 0 ? r : harden_landlock(err);
}
