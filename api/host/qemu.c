/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and ending QEMU. It must never put the token on a command line and never forward a
 * port on anything but 127.0.0.1, or the address that it was told to.
 */
#include "api/host/qemu.h"

#include "api/host/files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ip_address.h"
#include "base/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define QEMU_PROGRAM  "qemu-system-x86_64"
#define QEMU_ARGS_MAX 64
#define QEMU_DAEMON_TCP                                                                        \
    "10.0.2.15:1025"        /* where the daemon inside listens for callers outside */
#define QEMU_MONITOR_FD   3 /* what the child has its end of the monitor as */
#define QEMU_MEMORY_LEAST 1024u
#define QEMU_MEMORY_MOST  4096u

/* EPYC, without what TCG lacks anyway and would warn about at every start. */
#define QEMU_CPU                                                                               \
    "EPYC,-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,-nrip-save,"    \
    "-xsavec"

/*
 * mitigations=off: the emulated processor does not speculate. no_timer_check: on a busy machine
 * the kernel's test of its timer fails although the timer works, and it would panic.
 * cryptomgr.notests, acpi=noirq, noreplace-smp: two of nine seconds of a boot are the kernel's
 * tests of its ciphers, QEMU's table of interrupts, whose AML is interpreted once for each
 * device, and lock prefixes taken out of code that costs the same with them.
 * kvm.tdp_mmu=0: KVM's older MMU is as good for one processor, maps the neighbours of a page
 * that faults, and is taken down without an RCU barrier; tests and measurements keep KVM's
 * default (run.sh).
 *
 * tsc_early_khz, in args_build: TCG counts as this processor does. What the kernel would
 * measure on a busy machine can be a twentieth of that, and its clock twenty times as fast: it
 * starts a timer of 10 ms, is late to look, and takes the rest for all of it.
 */
#define QEMU_KERNEL_ARGS                                                                       \
    "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check "        \
    "random.trust_cpu=on audit=0 cryptomgr.notests acpi=noirq noreplace-smp kvm.tdp_mmu=0"

struct qemu_args {
    char *argv[QEMU_ARGS_MAX + 1]; /* owned; ends with NULL */
    size_t n;
    bool failed;
};

/* Takes the word over. */
static void args_add(struct qemu_args *args, char *word)
{
    if (word && args->n < QEMU_ARGS_MAX) {
        args->argv[args->n++] = word;
    } else {
        free(word);
        args->failed = true;
    }
}

/* An option with what it takes. */
__attribute__((format(printf, 3, 4))) static void
args_option(struct qemu_args *args, const char *option, const char *format, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        text = NULL;
    va_end(ap);
    args_add(args, strdup(option));
    args_add(args, text);
}

static void args_finish(struct qemu_args *args)
{
    for (size_t i = 0; i < args->n; i++)
        free(args->argv[i]);
}

/* QEMU splits options at commas; a doubled one stands for itself. -ENAMETOOLONG or 0. */
static int args_escape(const char *path, char *out, size_t size)
{
    size_t n = 0;

    for (; *path; path++) {
        if (n + 3 > size)
            return -ENAMETOOLONG;
        out[n++] = *path;
        if (*path == ',')
            out[n++] = ',';
    }
    out[n] = '\0';
    return 0;
}

static void args_add_machine(struct qemu_args *args)
{
    static const struct {
        const char *option, *value;
    } fixed[] = {
        {"-display", "none"},
        {"-monitor", "none"},
        {"-mon", "chardev=monitor,mode=control"},
        {"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"},
        {"-machine", "pc,usb=off,vmport=off"},
        {"-accel", "tcg,tb-size=256"},
        {"-cpu", QEMU_CPU},
        {"-smp", "1"},
        {"-rtc", "base=utc"},
        {"-serial", "stdio"},
        {"-device", "virtio-rng-pci"},
    };

    args_add(args, strdup(QEMU_PROGRAM));
    args_add(args, strdup("-nodefaults"));
    args_add(args, strdup("-no-user-config"));
    args_add(args, strdup("-no-reboot"));
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        args_option(args, fixed[i].option, "%s", fixed[i].value);
    args_option(args, "-chardev", "socket,id=monitor,fd=%d", QEMU_MONITOR_FD);
}

/* What the daemon inside is told. 0 or -ENAMETOOLONG. */
static int args_add_settings(struct qemu_args *args, const struct host_options *options)
{
    char config[FILES_PATH_MAX];

    if (options->listen)
        args_option(args, "-fw_cfg", "name=opt/skillvm/listen,string=%s", QEMU_DAEMON_TCP);
    if (!options->config)
        return 0;
    if (args_escape(options->config, config, sizeof(config)) < 0)
        return -ENAMETOOLONG;
    args_option(args, "-fw_cfg", "name=opt/skillvm/config,file=%s", config);
    return 0;
}

/*
 * The folder of images, read-only, as the daemon inside finds it. Its files are what it has
 * now: they are cached inside, so that daemon reads it once.
 */
static int args_add_images(struct qemu_args *args, const struct host_options *options)
{
    char folder[FILES_PATH_MAX];

    if (!options->images_dir || access(options->images_dir, R_OK | X_OK) < 0)
        return 0;
    if (args_escape(options->images_dir, folder, sizeof(folder)) < 0)
        return -ENAMETOOLONG;
    args_option(args, "-fsdev",
                "local,id=images,path=%s,security_model=none,readonly=on,multidevs=remap",
                folder);
    args_option(args, "-device", "virtio-9p-pci,fsdev=images,mount_tag=images");
    args_option(args, "-fw_cfg", "name=opt/skillvm/images,string=yes");
    return 0;
}

static int args_build(struct qemu_args *args, const struct host_options *options, uint16_t port)
{
    char share[FILES_PATH_MAX], data[FILES_PATH_MAX];
    const char *to = options->listen;

    if (args_escape(options->share_dir, share, sizeof(share)) < 0 ||
        args_escape(options->data_dir, data, sizeof(data)) < 0)
        return -ENAMETOOLONG;
    args_add_machine(args);
    if (options->counting) {
        args_option(args, "-icount", "shift=0,sleep=off");
        args_option(args, "-append", QEMU_KERNEL_ARGS);
    } else {
        args_option(args, "-append", QEMU_KERNEL_ARGS " tsc_early_khz=%u", clock_tsc_khz());
    }
    args_option(args, "-m", "%u",
                options->memory_mib ? options->memory_mib : qemu_default_memory_mib());
    args_option(args, "-kernel", "%s/softhost/vmlinux", options->share_dir);
    args_option(args, "-initrd", "%s/softhost/initrd.img", options->share_dir);
    args_option(args, "-drive", "file=%s/softhost/root.erofs,format=raw,if=virtio,readonly=on",
                share);
    args_option(args, "-drive",
                "file=%s/softhost/payload.erofs,format=raw,if=virtio,readonly=on", share);
    args_option(args, "-drive",
                "file=%s/softhost/disk.img,format=raw,if=virtio,cache=writeback,aio=threads,"
                "discard=unmap,detect-zeroes=unmap",
                data);
    args_option(args, "-fw_cfg", "name=opt/skillvm/token,file=%s/softhost/token", data);
    args_option(args, "-netdev",
                "user,id=net,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:%u-10.0.2.15:1024"
                "%s%s%s",
                port, to ? ",hostfwd=tcp:" : "", to ? to : "", to ? "-" QEMU_DAEMON_TCP : "");
    args_option(args, "-device", "virtio-net-pci,netdev=net,romfile=");
    if (args_add_settings(args, options) < 0 || args_add_images(args, options) < 0)
        return -ENAMETOOLONG;
    return args->failed ? -ENOMEM : 0;
}

uint32_t qemu_default_memory_mib(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t half_mib = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page >> 21 : 0;

    if (half_mib < QEMU_MEMORY_LEAST)
        return QEMU_MEMORY_LEAST;
    return half_mib > QEMU_MEMORY_MOST ? QEMU_MEMORY_MOST : (uint32_t)half_mib;
}

bool host_find_qemu(char *out)
{
    const char *path = getenv("PATH");

    path = path ? path : "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t len = strcspn(path, ":");

        if (snprintf(out, PATH_MAX, "%.*s/%s", (int)len, path, QEMU_PROGRAM) < PATH_MAX &&
            access(out, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

const char *const host_images[] = {"softhost/vmlinux", "softhost/initrd.img",
                                   "softhost/root.erofs", "softhost/payload.erofs", NULL};

const char *host_missing_file(const char *dir, const char *const *names)
{
    char path[PATH_MAX + 64];

    while (*names) {
        snprintf(path, sizeof(path), "%s/%s", dir, *names);
        if (access(path, R_OK) < 0)
            break;
        names++;
    }
    return *names;
}

/* Whether QEMU can listen there. It is free again then, and another may be faster. */
static int check_listen(const char *listen, struct err *err)
{
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    union ip_address address;
    socklen_t size = ip_address_parse(listen, &address);
    int one = 1;

    if (size == 0 || address.any.sa_family != AF_INET || address.ipv4.sin_port == 0)
        return err_set(err, EINVAL,
                       "cannot listen on %.64s: the software host takes an IPv4 address and a "
                       "port, such as 127.0.0.1:8080",
                       listen);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, &address.any, size) < 0)
        return err_set_errno(err, errno, "cannot listen on %s", listen);
    return 0;
}

int qemu_check(const struct host_options *options, struct err *err)
{
    char path[PATH_MAX];
    const char *missing = host_missing_file(options->share_dir, host_images);

    /* The package that has them brings QEMU too. */
    if (missing)
        return err_set_errno(err, errno,
                             "the software host's image %s/%s (Debian package "
                             "skillvm-softhost, or `./dev build`) cannot be read",
                             options->share_dir, missing);
    if (!host_find_qemu(path))
        return err_set(err, ENOENT,
                       "the software host needs %s, which is not installed (Debian package "
                       "qemu-system-x86)",
                       QEMU_PROGRAM);
    return options->listen ? check_listen(options->listen, err) : 0;
}

static int qemu_free_port(uint16_t *ret_port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    *ret_port = ntohs(addr.sin_port);
    return 0;
}

/* In the child: only what is safe between fork and exec. */
static _Noreturn void qemu_child(const struct qemu_args *args, int output_fd, int monitor_fd,
                                 pid_t parent)
{
    sigset_t none;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0)
        _exit(127);
    /* A descriptor that is copied onto itself would still be closed. */
    if (monitor_fd == QEMU_MONITOR_FD ? fcntl(monitor_fd, F_SETFD, 0) < 0
                                      : dup2(monitor_fd, QEMU_MONITOR_FD) < 0)
        _exit(127);
    execvp(args->argv[0], args->argv);
    _exit(127);
}

static int qemu_spawn(const struct qemu_args *args, struct qemu *ret)
{
    _cleanup_fd_ int ours = -1, theirs = -1, monitor = -1, monitors = -1;
    pid_t parent = getpid();
    int fds[2], r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    ours = fds[0];
    theirs = fds[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    monitor = fds[0];
    monitors = fds[1];
    r = fd_set_nonblock(ours, true);
    if (r < 0)
        return r;
    ret->pid = fork();
    if (ret->pid == 0)
        qemu_child(args, theirs, monitors, parent);
    if (ret->pid < 0)
        return -errno;
    ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
    if (ret->pidfd < 0) {
        r = -errno;
        kill(ret->pid, SIGKILL);
        waitpid(ret->pid, NULL, 0);
        return r;
    }
    ret->output_fd = fd_steal(&ours);
    ret->monitor.fd = fd_steal(&monitor);
    return 0;
}

static int qemu_launch(struct qemu_args *args, const struct host_options *options,
                       struct qemu *ret)
{
    int r = qemu_free_port(&ret->port);

    if (r < 0)
        return r;
    r = args_build(args, options, ret->port);
    return r < 0 ? r : qemu_spawn(args, ret);
}

int qemu_start(struct qemu *q, const struct host_options *options, struct err *err)
{
    struct qemu_args args = {.n = 0};
    struct qemu started = QEMU_NONE;
    int r = qemu_launch(&args, options, &started);

    args_finish(&args);
    if (r < 0)
        return err_set_errno(err, -r, "cannot start %s", QEMU_PROGRAM);
    *q = started;
    return 0;
}

/* The inode of the socket that listens on 127.0.0.1:port, 0 when there is none. */
static unsigned long qemu_listener_inode(uint16_t port)
{
    static const unsigned listen_state = 0x0a;
    FILE *f = fopen("/proc/net/tcp", "re");
    unsigned long found = 0;
    char line[512];

    if (!f)
        return 0;
    while (found == 0 && fgets(line, sizeof(line), f)) {
        unsigned address, local_port, state;
        unsigned long inode;

        /* sl local remote state queues timer retransmits uid timeout inode */
        if (sscanf(line, "%*u: %8X:%4X %*8X:%*4X %2X %*s %*s %*s %*u %*u %lu", &address,
                   &local_port, &state, &inode) == 4 &&
            address == htonl(INADDR_LOOPBACK) && local_port == port && state == listen_state)
            found = inode;
    }
    fclose(f);
    return found;
}

static bool qemu_holds_socket(pid_t pid, unsigned long inode)
{
    char path[64], want[64], got[64];
    struct dirent *entry;
    bool found = false;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof(want), "socket:[%lu]", inode);
    dir = opendir(path);
    if (!dir)
        return false;
    while (!found && (entry = readdir(dir)) != NULL) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, got, sizeof(got) - 1);

        if (n > 0) {
            got[n] = '\0';
            found = strcmp(got, want) == 0;
        }
    }
    closedir(dir);
    return found;
}

bool qemu_owns_port(const struct qemu *q)
{
    unsigned long inode = q->pid > 0 ? qemu_listener_inode(q->port) : 0;

    return inode != 0 && qemu_holds_socket(q->pid, inode);
}

bool qemu_alive(const struct qemu *q)
{
    return q->pid > 0 && !fd_is_readable(q->pidfd);
}

int qemu_finish(struct qemu *q)
{
    int status = 0;

    if (q->pid > 0) {
        kill(q->pid, SIGKILL);
        status = process_reap(q->pid);
    }
    fd_close(&q->pidfd);
    fd_close(&q->output_fd);
    monitor_finish(&q->monitor);
    *q = QEMU_NONE;
    return status;
}
