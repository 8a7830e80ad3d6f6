/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/host_check.h"

#include "api/cli/kvm_probe.h"
#include "api/host/host.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define KVM_DEVICE "/dev/kvm"
#define LOAD_MODULE(name)                                                                      \
    "load the module: modprobe " name                                                          \
    "; in a container, give it the device (--device " KVM_DEVICE ")"
#define TEXT_MAX (64u * 1024u)

/* Below these a guest works but a run is dear; both are far under any real machine's. */
#define SLOW_INSTRUCTIONS_PER_S 200e6
#define SLOW_EXITS_PER_S        50e3

const char *host_check_level_name(enum host_check_level level)
{
    static const char *const names[] = {"ok", "note", "bad"};

    return names[level];
}

/* advice may be NULL. */
static struct host_check *add(struct host_check_report *report, const char *name,
                              enum host_check_level level, const char *advice,
                              const char *format, ...) __attribute__((format(printf, 5, 6)));

static struct host_check *add(struct host_check_report *report, const char *name,
                              enum host_check_level level, const char *advice,
                              const char *format, ...)
{
    size_t i = report->n < HOST_CHECKS_MAX ? report->n++ : HOST_CHECKS_MAX - 1;
    struct host_check *check = &report->checks[i];
    va_list args;

    *check = (struct host_check){.name = name, .level = level};
    va_start(args, format);
    vsnprintf(check->found, sizeof(check->found), format, args);
    va_end(args);
    snprintf(check->advice, sizeof(check->advice), "%s", advice ? advice : "");
    return check;
}

/* Without line ends at its end. False when unreadable. */
static bool read_text(const char *path, char *out, size_t size)
{
    ssize_t n = fd_read_text(path, out, size);

    if (n < 0)
        return false;
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        out[--n] = '\0';
    return true;
}

/* The value of a "key : value" line of /proc/cpuinfo but its first one, or "". */
static void cpuinfo_field(const char *text, const char *key, char *out, size_t size)
{
    char begin[64];

    snprintf(begin, sizeof(begin), "\n%s\t", key);
    const char *line = strstr(text, begin), *colon = line ? strchr(line, ':') : NULL;
    const char *value = colon ? colon + 1 + (colon[1] == ' ') : "";
    snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
}

static bool has_word(const char *words, const char *word)
{
    return text_has_word(words, " \t\n,", word);
}

struct cpu {
    char model[256];
    char flags[16 * 1024];
    bool vmx;
    bool svm;
    bool guest; /* this machine is a virtual one itself */
};

static void read_cpu(struct cpu *cpu)
{
    _cleanup_free_ char *text = malloc(TEXT_MAX);

    *cpu = (struct cpu){0};
    if (text && read_text("/proc/cpuinfo", text, TEXT_MAX)) {
        cpuinfo_field(text, "model name", cpu->model, sizeof(cpu->model));
        cpuinfo_field(text, "flags", cpu->flags, sizeof(cpu->flags));
    }
    cpu->vmx = has_word(cpu->flags, "vmx");
    cpu->svm = has_word(cpu->flags, "svm");
    cpu->guest = has_word(cpu->flags, "hypervisor");
}

static bool check_device(struct host_check_report *report, const struct cpu *cpu)
{
    struct stat st;

    if (stat(KVM_DEVICE, &st) < 0 || !S_ISCHR(st.st_mode)) {
        const char *advice = "turn on VT-x or AMD-V in the firmware, or use the software host";

        if (cpu->vmx || cpu->svm)
            advice = cpu->vmx ? LOAD_MODULE("kvm_intel") : LOAD_MODULE("kvm_amd");
        else if (cpu->guest)
            advice = "this is a virtual machine without nested virtualization: turn that on "
                     "at its host, or use the software host";
        add(report, "kvm device", HOST_CHECK_BAD, advice, "%s does not exist", KVM_DEVICE);
        return false;
    }
    add(report, "kvm device", HOST_CHECK_OK, NULL, "%s exists", KVM_DEVICE);
    if (access(KVM_DEVICE, R_OK | W_OK) < 0) {
        add(report, "permissions", HOST_CHECK_BAD,
            "add the user to its group: usermod -aG kvm USER, then log in again",
            "this user may not open %s: %s", KVM_DEVICE, strerror(errno));
        return false;
    }
    add(report, "permissions", HOST_CHECK_OK, NULL, "this user may read and write %s",
        KVM_DEVICE);
    return true;
}

/* The probe's tests by name, those that failed first. */
static void list_tests(const struct kvm_probe *probe, struct buf *out)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < probe->n; i++) {
            const char *key = probe->lines[i].key, *value = probe->lines[i].value;
            bool failed = strcmp(value, "ok") != 0;

            if (strncmp(key, "test.", 5) == 0 && failed == (pass == 0))
                (void)buf_printf(out, "%s%s %s", out->len ? ", " : "", key + 5, value);
        }
    }
}

static void check_probe(const struct cli *cli, struct host_check_report *report, bool device)
{
    struct kvm_probe probe;
    struct err err = {0};
    _cleanup_buf_ struct buf tests = buf_init(TEXT_MAX);

    if (kvm_probe_run(cli, "skillvm-vmm", &probe, &err)) {
        add(report, "kvm probe", HOST_CHECK_BAD,
            "skillvm-vmm must be next to skillvm; build or install it again", "%s",
            err.message);
        return;
    }
    report->probed = true;
    report->kvm_usable = probe.usable;
    if (probe.usable)
        add(report, "kvm probe", HOST_CHECK_OK, NULL, "a tiny guest ran");
    else
        add(report, "kvm probe", HOST_CHECK_BAD,
            device ? "KVM opens but cannot run a guest here; `skillvm up` uses the software "
                     "host. For KVM use another machine, or another host of this one"
                   : "see the device and permissions above",
            "%s", kvm_probe_reason(&probe));
    list_tests(&probe, &tests);
    if (tests.len && buf_cstr(&tests))
        add(report, "guest tests", probe.usable ? HOST_CHECK_OK : HOST_CHECK_BAD, NULL, "%s",
            buf_cstr(&tests));

    const char *instructions = kvm_probe_get(&probe, "instructions_per_second");
    const char *exits = kvm_probe_get(&probe, "exits_per_second");
    double ips = instructions ? strtod(instructions, NULL) : 0;
    double eps = exits ? strtod(exits, NULL) : 0;
    if (ips > 0 && eps > 0) {
        bool slow = ips < SLOW_INSTRUCTIONS_PER_S || eps < SLOW_EXITS_PER_S;

        add(report, "guest speed", slow ? HOST_CHECK_NOTE : HOST_CHECK_OK,
            slow ? "this is far below hardware speed: KVM is probably emulated or nested; "
                   "runs will be slow"
                 : NULL,
            "%.0f million instructions and %.0f thousand exits a second", ips / 1e6, eps / 1e3);
    }
    kvm_probe_finish(&probe);
}

/* What machines would be put into on this host, by who asks. */
static void check_isolation(const struct cli *cli, struct host_check_report *report)
{
    static const char *const layers[] = {"namespaces", "root", "users", "limits", "landlock"};
    _cleanup_buf_ struct buf missing = buf_init(TEXT_MAX);
    struct kvm_probe probe;
    struct err err = {0};

    if (kvm_probe_run(cli, "skillvm-jail", &probe, &err)) {
        add(report, "isolation", HOST_CHECK_BAD,
            "skillvm-jail must be next to skillvm; build or install it again", "%s",
            err.message);
        return;
    }
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        const char *found = kvm_probe_get(&probe, layers[i]);

        if (!found || strcmp(found, "ok") != 0)
            (void)buf_printf(&missing, "%sno %s (%s)", missing.len ? "; " : "", layers[i],
                             found ? found : "not said");
    }
    if (missing.len)
        add(report, "isolation", HOST_CHECK_NOTE,
            "with `isolation: best-effort` machines run without; docs/deploy.md says what each "
            "layer needs",
            "%s", buf_cstr(&missing));
    else
        add(report, "isolation", HOST_CHECK_OK, NULL,
            "namespaces, an empty root folder, a user id, a cgroup and Landlock for each "
            "machine");
    kvm_probe_finish(&probe);
}

static void check_cpu(struct host_check_report *report, const struct cpu *cpu)
{
    static const char *const wanted[] = {
        "ept",           "npt",          "vpid",        "flexpriority",
        "decodeassists", "constant_tsc", "nonstop_tsc", "tsc_deadline_timer",
        "xsave",         "cx16",         "popcnt"};
    _cleanup_buf_ struct buf found = buf_init(TEXT_MAX);
    bool virtualization = cpu->vmx || cpu->svm;
    const char *advice = cpu->guest ? "nested virtualization is off at this machine's host"
                                    : "turn on VT-x or AMD-V in the firmware if it has it";

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (has_word(cpu->flags, wanted[i]))
            (void)buf_printf(&found, " %s", wanted[i]);
    }
    add(report, "processor", virtualization ? HOST_CHECK_OK : HOST_CHECK_NOTE,
        virtualization ? NULL : advice, "%s; %s%s%s",
        cpu->model[0] ? cpu->model : "unknown model",
        cpu->vmx   ? "vmx"
        : cpu->svm ? "svm"
                   : "neither vmx nor svm",
        buf_cstr(&found) ? buf_cstr(&found) : "",
        cpu->guest ? "; itself a virtual machine" : "");
}

void host_check_kernel_advice(unsigned major, unsigned minor, char *out, size_t size)
{
    /* What skillvm's machines gain by themselves, from the version of kernel.org that has it.
     */
    static const struct {
        unsigned major, minor;
        const char *gain;
    } gains[] = {
        {5, 14, "a machine can be reset instead of made anew"},
        {6, 4,
         "a machine that is reset keeps its nested page table, whichever of its guest's "
         "processes ran last"},
    };
    size_t used = 0;

    out[0] = '\0';
    if (major < 5 || (major == 5 && minor < 10))
        used += (size_t)snprintf(out, size, "5.10 is the oldest that is supported");
    for (size_t i = 0; i < sizeof(gains) / sizeof(gains[0]) && used < size; i++) {
        if (major > gains[i].major || (major == gains[i].major && minor >= gains[i].minor))
            continue;
        int n = snprintf(out + used, size - used, "%sfrom %u.%u on %s", used ? "; " : "",
                         gains[i].major, gains[i].minor, gains[i].gain);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void check_kernel(struct host_check_report *report)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    if (uname(&name) < 0)
        return;
    sscanf(name.release, "%u.%u", &major, &minor);
    bool old = major < 5 || (major == 5 && minor < 10);
    struct host_check *check = add(report, "kernel", old ? HOST_CHECK_BAD : HOST_CHECK_OK, NULL,
                                   "%s %s", name.sysname, name.release);
    host_check_kernel_advice(major, minor, check->advice, sizeof(check->advice));
}

static void check_cgroups(struct host_check_report *report)
{
    struct statfs fs;
    char controllers[256];

    if (statfs("/sys/fs/cgroup", &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
        add(report, "cgroups", HOST_CHECK_NOTE,
            "boot with systemd.unified_cgroup_hierarchy=1; without it the host limits "
            "no machine's memory, processes and CPU time",
            "/sys/fs/cgroup is not cgroup v2");
        return;
    }
    read_text("/sys/fs/cgroup/cgroup.controllers", controllers, sizeof(controllers));
    bool all = has_word(controllers, "memory") && has_word(controllers, "pids") &&
               has_word(controllers, "cpu");
    add(report, "cgroups", all ? HOST_CHECK_OK : HOST_CHECK_NOTE,
        all ? NULL
            : "memory, pids and cpu are wanted; ask who runs this machine to delegate them",
        "version 2 with: %s", controllers);
}

static void check_huge_pages(struct host_check_report *report)
{
    char value[64], bug[256] = "";

    if (!read_text("/sys/module/kvm/parameters/nx_huge_pages", value, sizeof(value)))
        return;
    read_text("/sys/devices/system/cpu/vulnerabilities/itlb_multihit", bug, sizeof(bug));
    bool costs = strcmp(value, "never") != 0;
    bool safe = strcmp(bug, "Not affected") == 0;
    const char *advice = NULL;
    if (costs && safe)
        advice = "each new machine starts a kernel thread for it, and this processor does not "
                 "need it: options kvm nx_huge_pages=never in /etc/modprobe.d";
    else if (costs && strcmp(value, "N") != 0)
        advice = "it protects this processor from a guest that stops it (iTLB multihit): keep "
                 "it where guests are not trusted";
    add(report, "nx_huge_pages", costs ? HOST_CHECK_NOTE : HOST_CHECK_OK, advice, "%s%s%s",
        value, bug[0] ? "; iTLB multihit: " : "", bug);
}

static void check_soft_host(const struct cli *cli, struct host_check_report *report)
{
    char qemu[PATH_MAX];
    bool has_qemu = host_find_qemu(qemu);
    const char *missing = host_missing_file(cli->share_dir, host_images);

    report->soft_usable = has_qemu && !missing;
    enum host_check_level level = report->soft_usable  ? HOST_CHECK_OK
                                  : report->kvm_usable ? HOST_CHECK_NOTE
                                                       : HOST_CHECK_BAD;
    /* Where the package is missing, it brings QEMU too. */
    if (missing)
        add(report, "software host", level,
            "install the Debian package skillvm-softhost, run `./dev build`, or set "
            "SKILLVM_SHARE to where its files are",
            "%s is not in %s", missing, cli->share_dir);
    else if (!has_qemu)
        add(report, "software host", level, "apt-get install qemu-system-x86",
            "qemu-system-x86_64 is not installed");
    else
        add(report, "software host", level, NULL, "%s and its images are there", qemu);
}

static void check_images(const struct cli *cli, struct host_check_report *report)
{
    static const char *const images[] = {"vmlinux", "vmlinux.sha256", "python.erofs",
                                         "python.sha256", NULL};
    const char *missing = host_missing_file(cli->share_dir, images);

    if (missing)
        add(report, "guest images", HOST_CHECK_BAD,
            "run `./dev build`, or set SKILLVM_SHARE to where they are", "%s is not in %s",
            missing, cli->share_dir);
    else
        add(report, "guest images", HOST_CHECK_OK, NULL, "in %s", cli->share_dir);
}

static void summarize(struct host_check_report *report, bool device)
{
    const char *reason = "";

    for (size_t i = 0; i < report->n; i++) {
        if (strcmp(report->checks[i].name, "kvm probe") == 0)
            reason = report->checks[i].found;
    }
    const char *soft = report->soft_usable ? "`skillvm up` will use the software host."
                                           : "The software host is not usable either.";
    if (report->kvm_usable)
        snprintf(report->summary, sizeof(report->summary), "KVM is usable.");
    else if (!report->probed)
        snprintf(report->summary, sizeof(report->summary),
                 "Whether KVM is usable is not known: the probe could not be run.");
    else if (device)
        snprintf(report->summary, sizeof(report->summary),
                 "%s opens but cannot run a kernel: %.300s. %s", KVM_DEVICE, reason, soft);
    else
        snprintf(report->summary, sizeof(report->summary), "KVM is not usable here. %s", soft);
}

void host_check_examine(const struct cli *cli, struct host_check_report *ret_report)
{
    _cleanup_free_ struct cpu *cpu = malloc(sizeof(*cpu));

    *ret_report = (struct host_check_report){0};
    if (!cpu) {
        snprintf(ret_report->summary, sizeof(ret_report->summary), "out of memory");
        return;
    }
    read_cpu(cpu);
    bool device = check_device(ret_report, cpu);
    check_probe(cli, ret_report, device);
    check_isolation(cli, ret_report);
    check_cpu(ret_report, cpu);
    check_kernel(ret_report);
    check_cgroups(ret_report);
    check_huge_pages(ret_report);
    check_images(cli, ret_report);
    check_soft_host(cli, ret_report);
    summarize(ret_report, device);
}
