/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm-vmm: one process, one microVM. Reads the command line described in vmm/control.h and
 * calls what it asks for. The only file of vmm/ that logs or decides the exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "vmm/arch/arch.h"
#include "vmm/boot.h"
#include "vmm/control.h"
#include "vmm/control_loop.h"
#include "vmm/harden.h"
#include "vmm/probe.h"
#include "vmm/snapshot.h"
#include "vmm/vcpu.h"
#include "vmm/verify.h"
#include "vmm/working_set.h"

enum exit_status { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

struct options {
    long kvm_fd, proc_fd; /* of what has a name, where there is none */
    long control_fd, vsock_fd, kernel_fd, image_fd, state_fd, memory_fd, console_fd;
    long working_set_fd, record_fd;
    long memory_mib;
    long timeout_ms;
    bool reusable;
};

static const char usage[] =
    "usage: skillvm-vmm boot --control-fd N --vsock-fd N --kernel-fd N --image-fd N\n"
    "                        --memory-mib N [--console-fd N] [--kvm-fd N] [--proc-fd N]\n"
    "       skillvm-vmm restore --control-fd N --vsock-fd N --image-fd N --state-fd N\n"
    "                           --memory-fd N [--working-set-fd N] [--record-fd N]\n"
    "                           [--console-fd N] [--reusable] [--kvm-fd N] [--proc-fd N]\n"
    "       skillvm-vmm probe [--timeout-ms N]\n"
    "       skillvm-vmm fingerprint\n"
    "       skillvm-vmm --help | --version\n"
    "\n"
    "Runs one microVM for skillvmd, which starts it with open descriptors; probe and\n"
    "fingerprint are for people too: whether KVM can run a guest here, and which CPU a\n"
    "snapshot made here needs.\n";

static int parse_number(const char *text, long max, long *ret_value)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > max)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"kvm-fd", required_argument, NULL, 'K'},
        {"proc-fd", required_argument, NULL, 'P'},
        {"control-fd", required_argument, NULL, 'c'},
        {"vsock-fd", required_argument, NULL, 'v'},
        {"kernel-fd", required_argument, NULL, 'k'},
        {"image-fd", required_argument, NULL, 'i'},
        {"state-fd", required_argument, NULL, 's'},
        {"memory-fd", required_argument, NULL, 'm'},
        {"console-fd", required_argument, NULL, 'o'},
        {"working-set-fd", required_argument, NULL, 'w'},
        {"record-fd", required_argument, NULL, 'r'},
        {"memory-mib", required_argument, NULL, 'M'},
        {"timeout-ms", required_argument, NULL, 't'},
        {"reusable", no_argument, NULL, 'R'},
        {NULL, 0, NULL, 0},
    };
    const struct {
        int key;
        long max;
        long *value;
    } targets[] = {
        {'K', 1 << 20, &o->kvm_fd},         {'P', 1 << 20, &o->proc_fd},
        {'c', 1 << 20, &o->control_fd},     {'v', 1 << 20, &o->vsock_fd},
        {'k', 1 << 20, &o->kernel_fd},      {'i', 1 << 20, &o->image_fd},
        {'s', 1 << 20, &o->state_fd},       {'m', 1 << 20, &o->memory_fd},
        {'o', 1 << 20, &o->console_fd},     {'M', 1 << 20, &o->memory_mib},
        {'w', 1 << 20, &o->working_set_fd}, {'r', 1 << 20, &o->record_fd},
        {'t', 60000, &o->timeout_ms},
    };
    int key;

    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1) {
        bool known = key == 'R';

        o->reusable |= known;
        for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
            if (targets[i].key != key)
                continue;
            known = true;
            if (parse_number(optarg, targets[i].max, targets[i].value) < 0) {
                (void)fprintf(stderr, "skillvm-vmm: '%s' is not a number in range\n", optarg);
                return -EINVAL;
            }
        }
        if (!known)
            return -EINVAL;
    }
    if (optind != argc) {
        (void)fprintf(stderr, "skillvm-vmm: unexpected '%s'\n", argv[optind]);
        return -EINVAL;
    }
    return 0;
}

/* Says which of the required options is missing. */
static bool has(long value, const char *name)
{
    if (value < 0)
        (void)fprintf(stderr, "skillvm-vmm: --%s is missing\n", name);
    return value >= 0;
}

static int report(int control_fd, int r, const struct err *err)
{
    if (r >= 0)
        return STATUS_OK;
    control_send(control_fd, VMM_EVENT_FAILED, clock_monotonic_ns(), 0, err->message);
    log_error("vmm", "event=failed reason=\"%s\"", err->message);
    return STATUS_FAILED;
}

/* What stays open, and what for. */
static struct harden_plan make_plan(const struct machine *m, const struct options *o,
                                    enum harden_scope scope,
                                    const struct snapshot_origin *origin)
{
    return (struct harden_plan){
        .scope = scope,
        .verify = verify_is_on,
        .fds = {[HARDEN_FD_CONTROL] = (int)o->control_fd,
                [HARDEN_FD_STREAM] = (int)o->vsock_fd,
                [HARDEN_FD_WAKE] = m->wake_fd,
                [HARDEN_FD_LOG] = STDERR_FILENO,
                [HARDEN_FD_CONSOLE] = m->config.console_fd,
                [HARDEN_FD_KVM] = m->kvm.dev_fd,
                [HARDEN_FD_VM] = m->kvm.vm_fd,
                [HARDEN_FD_VCPU] = m->kvm.vcpu_fd,
                [HARDEN_FD_IMAGE] = (int)o->image_fd,
                [HARDEN_FD_PAGEMAP] = origin ? origin->pages.pagemap_fd : -1,
                [HARDEN_FD_STATS] = m->flush.stats_fd},
    };
}

/* The machine is ready: gives up what it needs no more and runs it to its end. */
static int run_machine(struct machine *m, const struct options *o, enum harden_scope scope,
                       struct snapshot_origin *origin, struct err *err)
{
    const struct control_machine control = {
        .machine = m,
        .control_fd = (int)o->control_fd,
        .vsock_fd = (int)o->vsock_fd,
        .can_save = o->kernel_fd >= 0,
        .origin = origin,
    };
    /* The vCPU thread reads it too. */
    static struct harden_plan plan;
    int r = harden_confine(err);

    if (r < 0)
        return r;
    plan = make_plan(m, o, scope, origin);
    r = harden_find_free(&plan, err);
    if (r < 0)
        return r;
    r = vcpu_create(m, &plan, err);
    if (r < 0)
        return r;
    r = harden_limits(&plan, err);
    if (r < 0)
        return r;
    r = harden_thread(&plan, HARDEN_MAIN, err);
    if (r < 0)
        return r;
    r = control_run(&control, err);
    if (r < 0 || o->record_fd < 0)
        return r;
    vcpu_stop(m);
    return working_set_record(&m->kvm, &m->memory, (int)o->record_fd, err);
}

/* The highest descriptor in use is the last one that stays open. */
static int start_process(const struct options *o, int proc_fd, int pagemap_fd, struct err *err)
{
    const long fds[] = {o->kvm_fd,    o->control_fd, o->vsock_fd,   o->kernel_fd,
                        o->image_fd,  o->state_fd,   o->memory_fd,  o->console_fd,
                        o->record_fd, pagemap_fd,    STDERR_FILENO, o->working_set_fd};
    long last = 0;

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        last = fds[i] > last ? fds[i] : last;
    return harden_process(proc_fd, (int)last, err);
}

/* The folder /proc, which is given up before the guest runs. The descriptor, owned, or -errno.
 */
static int open_proc(const struct options *o, struct err *err)
{
    int fd =
        o->proc_fd >= 0 ? (int)o->proc_fd : open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, errno, "/proc") : fd;
}

static int boot(struct machine *m, const struct options *o, struct err *err)
{
    struct boot_config config = {
        .kvm_fd = (int)o->kvm_fd,
        .kernel_fd = (int)o->kernel_fd,
        .image_fd = (int)o->image_fd,
        .vsock_fd = (int)o->vsock_fd,
        .console_fd = (int)o->console_fd,
        .memory_bytes = (uint64_t)o->memory_mib << 20,
    };
    _cleanup_fd_ int proc_fd = open_proc(o, err);
    int r = proc_fd < 0 ? proc_fd : start_process(o, proc_fd, -1, err);

    if (r < 0)
        return r;
    fd_close(&proc_fd);
    r = boot_machine(m, &config, err);
    fd_close(&config.kernel_fd);
    return r < 0 ? r : run_machine(m, o, HARDEN_BOOT, NULL, err);
}

static int run_boot(const struct options *o)
{
    static struct machine m;
    struct err err = {0};
    int r;

    if (!has(o->control_fd, "control-fd") || !has(o->vsock_fd, "vsock-fd") ||
        !has(o->kernel_fd, "kernel-fd") || !has(o->image_fd, "image-fd") ||
        !has(o->memory_mib, "memory-mib"))
        return STATUS_USAGE;
    r = boot(&m, o, &err);
    machine_finish(&m);
    return report((int)o->control_fd, r, &err);
}

static int restore(struct machine *m, const struct options *o, enum harden_scope scope,
                   struct err *err)
{
    _cleanup_fd_ int proc_fd = open_proc(o, err);
    struct snapshot_source source = {
        .kvm_fd = (int)o->kvm_fd,
        .state_fd = (int)o->state_fd,
        .memory_fd = (int)o->memory_fd,
        .image_fd = (int)o->image_fd,
        .vsock_fd = (int)o->vsock_fd,
        .console_fd = (int)o->console_fd,
        .working_set_fd = (int)o->working_set_fd,
        .pagemap_fd = -1,
        .log_dirty = o->record_fd >= 0,
    };
    /* Zeroed and large: what is not touched costs nothing. */
    static struct snapshot_origin origin;
    int r = proc_fd;

    if (r >= 0 && scope == HARDEN_REUSABLE)
        r = source.pagemap_fd = private_pages_open_map(proc_fd, err);
    if (r < 0)
        return r;
    r = start_process(o, proc_fd, source.pagemap_fd, err);
    if (r < 0)
        return r;
    fd_close(&proc_fd);
    r = snapshot_restore(m, &source, &origin, err);
    fd_close(&source.state_fd);
    fd_close(&source.memory_fd);
    fd_close(&source.working_set_fd);
    if (r < 0)
        return r;
    r = scope == HARDEN_ONCE ? arch_vcpu_limit(&m->kvm, err) : 0;
    if (r < 0)
        return r;
    if (!verify_is_on)
        fd_close(&m->kvm.dev_fd);
    return run_machine(m, o, scope, scope == HARDEN_REUSABLE ? &origin : NULL, err);
}

static int run_restore(const struct options *o)
{
    enum harden_scope scope = o->record_fd >= 0 ? HARDEN_BOOT
                              : o->reusable     ? HARDEN_REUSABLE
                                                : HARDEN_ONCE;
    static struct machine m;
    struct err err = {0};
    int r;

    if (!has(o->control_fd, "control-fd") || !has(o->vsock_fd, "vsock-fd") ||
        !has(o->image_fd, "image-fd") || !has(o->state_fd, "state-fd") ||
        !has(o->memory_fd, "memory-fd"))
        return STATUS_USAGE;
    if (o->console_fd >= 0 && scope != HARDEN_BOOT && !verify_is_on) {
        (void)fputs("skillvm-vmm: a console is for a machine that boots or records\n", stderr);
        return STATUS_USAGE;
    }
    r = restore(&m, o, scope, &err);
    /* One that ran a user's code releases nothing by hand: the end of the process is quicker.
     */
    if (scope == HARDEN_BOOT)
        machine_finish(&m);
    return report((int)o->control_fd, r, &err);
}

static int run_fingerprint(void)
{
    char line[ARCH_FINGERPRINT_MAX];
    struct err err = {0};

    if (arch_fingerprint(line, sizeof(line), &err) < 0) {
        log_error("vmm", "event=fingerprint reason=\"%s\"", err.message);
        return STATUS_FAILED;
    }
    (void)puts(line);
    return STATUS_OK;
}

static int run_probe(const struct options *o)
{
    static struct probe_report report;
    char reason[512];
    struct err err = {0};
    bool usable;

    if (probe_run((unsigned)o->timeout_ms, &report, &err) < 0) {
        log_error("vmm", "event=probe reason=\"%s\"", err.message);
        return STATUS_FAILED;
    }
    usable = probe_explain(&report, reason, sizeof(reason));
    (void)printf("device=%s\n", KVM_DEVICE_PATH);
    (void)printf("open=%s\n", report.open[0] ? report.open : "does not return");
    (void)printf("api_version=%d\n", report.api_version);
    (void)printf("vm=%s\n", report.vm[0] ? report.vm : "not tried");
    for (uint32_t i = 0; i < report.n_tests; i++) {
        const struct probe_test *t = &report.tests[i];

        if (t->status == PROBE_OK)
            (void)printf("test.%s=ok\n", t->name);
        else
            (void)printf("test.%s=fail (%s)\n", t->name,
                         t->status == PROBE_FAILED    ? t->text
                         : t->status == PROBE_RUNNING ? "does not return"
                                                      : "not run");
    }
    (void)printf("instructions_per_second=%llu\n",
                 (unsigned long long)report.instructions_per_second);
    (void)printf("exits_per_second=%llu\n", (unsigned long long)report.exits_per_second);
    (void)printf("cpu=%s\n", report.cpu);
    if (!usable)
        (void)printf("reason=%s\n", reason);
    (void)printf("result=%s\n", usable ? "usable" : "unusable");
    return usable ? STATUS_OK : STATUS_FAILED;
}

int main(int argc, char **argv)
{
    struct options o = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2000, false};
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "--help") == 0) {
        (void)fputs(usage, stdout);
        return STATUS_OK;
    }
    if (strcmp(mode, "--version") == 0) {
        (void)puts("skillvm-vmm " SKILLVM_VERSION);
        return STATUS_OK;
    }
    if (argc > 1 && parse_options(argc - 1, argv + 1, &o) < 0)
        return STATUS_USAGE;
    /* Whoever executed it by a descriptor gave it a number for a name. */
    (void)prctl(PR_SET_NAME, "skillvm-vmm");
    (void)signal(SIGPIPE, SIG_IGN);
    /* A log that may not grow loses a line. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (strcmp(mode, "boot") == 0)
        return run_boot(&o);
    if (strcmp(mode, "restore") == 0)
        return run_restore(&o);
    if (strcmp(mode, "fingerprint") == 0)
        return run_fingerprint();
    if (strcmp(mode, "probe") == 0)
        return run_probe(&o);
    (void)fputs(usage, stderr);
    return STATUS_USAGE;
}
