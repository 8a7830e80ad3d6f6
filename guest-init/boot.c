/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

/* A request of syslog(2), and the level that shows warnings and what is worse. */
#define KLOG_CONSOLE_LEVEL 8
#define KLOG_WARNINGS      5

static int mount_kernel_filesystems(struct err *err)
{
    static const struct {
        const char *type;
        const char *path;
        unsigned long flags;
        const char *options;
    } mounts[] = {
        {"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=invisible"},
        {"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL},
        {"cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
        {"tmpfs", "/dev", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k"},
        {"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755,size=1m"},
    };

    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
        if (mount(mounts[i].type, mounts[i].path, mounts[i].type, mounts[i].flags,
                  mounts[i].options) < 0)
            return err_set_errno(err, errno, "cannot mount %s", mounts[i].path);
    return 0;
}

static int make_devices(struct err *err)
{
    static const struct {
        const char *path;
        mode_t mode;
        unsigned major;
        unsigned minor;
    } nodes[] = {
        {"/dev/null", 0666, 1, 3},    {"/dev/zero", 0666, 1, 5},    {"/dev/full", 0666, 1, 7},
        {"/dev/random", 0666, 1, 8},  {"/dev/urandom", 0666, 1, 9}, {"/dev/tty", 0666, 5, 0},
        {"/dev/console", 0600, 5, 1},
    };
    static const struct {
        const char *target;
        const char *path;
    } links[] = {
        {"/proc/self/fd", "/dev/fd"},       {"/proc/self/fd/0", "/dev/stdin"},
        {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
        {"pts/ptmx", "/dev/ptmx"},
    };

    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        if (mknod(nodes[i].path, S_IFCHR | nodes[i].mode,
                  makedev(nodes[i].major, nodes[i].minor)) < 0 ||
            chmod(nodes[i].path, nodes[i].mode) < 0)
            return err_set_errno(err, errno, "cannot make %s", nodes[i].path);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if (symlink(links[i].target, links[i].path) < 0)
            return err_set_errno(err, errno, "cannot make %s", links[i].path);
    if (mkdir("/dev/shm", 01777) < 0 || mkdir("/dev/pts", 0755) < 0)
        return err_set_errno(err, errno, "cannot make directories in /dev");
    /* A kernel without pseudo-terminals is fine: only a skill that wants one misses it. */
    (void)mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                "mode=0620,ptmxmode=0666");
    return 0;
}

/* The kernel may start init without a console: descriptors 0 to 2 must not become something
 * else. */
static int open_standard_streams(struct err *err)
{
    int fd = open("/dev/console", O_RDWR | O_NOCTTY);

    if (fd < 0)
        fd = open("/dev/null", O_RDWR);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open a console");
    for (int i = 0; i < 3; i++)
        if (fd != i && dup2(fd, i) < 0)
            return err_set_errno(err, errno, "cannot open standard streams");
    if (fd > 2)
        fd_close(&fd);
    return 0;
}

static void bring_loopback_up(void)
{
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};

    memcpy(request.ifr_name, "lo", sizeof("lo"));
    if (fd >= 0)
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
}

/*
 * Only warnings and worse reach the console from now on: every byte there is an exit to the
 * VMM, and a restored or reset kernel would begin with a notice about its new generation ID.
 */
static void quieten_kernel(void)
{
    (void)klogctl(KLOG_CONSOLE_LEVEL, NULL, KLOG_WARNINGS);
}

/*
 * No program that is ever started, as whoever it runs, has a capability. PID 1 keeps those that
 * it has, since it becomes no other program.
 */
static int empty_bounding_set(struct err *err)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return err_set_errno(err, errno, "cannot give up capability %lu", cap);
    return 0;
}

int boot_machine(struct err *err)
{
    int r;

    umask(022);
    r = mount_kernel_filesystems(err);
    if (r < 0)
        return r;
    r = make_devices(err);
    if (r < 0)
        return r;
    r = open_standard_streams(err);
    if (r < 0)
        return r;
    bring_loopback_up();
    quieten_kernel();
    return empty_bounding_set(err);
}
