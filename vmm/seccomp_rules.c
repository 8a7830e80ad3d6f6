/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build tool: the system calls that the threads of a running machine may make, each with its
 * reason, turned into filter programs by libseccomp and printed as C. Doing it here keeps the
 * library and its time out of every start of a machine. Anything not listed kills the process.
 * With --calls it prints their names instead.
 */
#include <linux/filter.h>
#include <linux/kvm.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/harden.h"
#include "vmm/pagemap_scan.h"
#include "vmm/seccomp_numbers.h"

/* Which machines may make the call: a bit for each of enum harden_scope. */
enum scope {
    ONCE = 1,
    REUSABLE = 2,
    BOOT = 4, /* made to be saved or recorded: no user's code ever runs in it */
    PAUSED = REUSABLE | BOOT,
    ALWAYS = ONCE | REUSABLE | BOOT,
};

/* Which threads: a bit for each of enum harden_thread. */
enum thread { MAIN = 1, VCPU = 2, BOTH = MAIN | VCPU };

/* With which first argument: a bit for each of enum harden_fd; 0: with any. */
#define FD(name) (1u << HARDEN_FD_##name)

struct rule {
    int call;
    enum thread thread;
    enum scope scope;
    unsigned fds;
    const char *reason;
};

/* What libc has for poll(2); calls that this architecture does not have are negative. */
#define POLL (SCMP_SYS(poll) >= 0 ? SCMP_SYS(poll) : SCMP_SYS(ppoll))

static const struct rule rules[] = {
    {POLL, MAIN, ALWAYS, 0, "it waits"},
    {POLL, VCPU, BOOT, 0, "whether the console takes a byte"},
    {SCMP_SYS(read), MAIN, ALWAYS, FD(WAKE), "it empties its wake-up counter"},
    {SCMP_SYS(write), MAIN, ALWAYS, FD(WAKE) | FD(LOG), "the guest ended; log lines"},
    {SCMP_SYS(write), VCPU, ALWAYS, FD(WAKE), "wake-ups"},
    {SCMP_SYS(write), VCPU, BOOT, FD(CONSOLE), "the console"},
    {SCMP_SYS(sendto), VCPU, BOOT, FD(CONSOLE), "a console that is a socket"},
    {SCMP_SYS(preadv), BOTH, ALWAYS, FD(IMAGE) | FD(SENT_1) | FD(SENT_2),
     "blk reads the root image and a skill's disk"},
    {SCMP_SYS(recvmsg), MAIN, ALWAYS, FD(CONTROL) | FD(STREAM),
     "commands; bytes for the guest"},
    {SCMP_SYS(recvmsg), VCPU, ALWAYS, FD(STREAM), "bytes for the guest"},
    {SCMP_SYS(sendmsg), BOTH, ALWAYS, FD(STREAM), "bytes from the guest"},
    {SCMP_SYS(sendto), MAIN, ALWAYS, FD(CONTROL), "events to the daemon"},
    {SCMP_SYS(shutdown), BOTH, ALWAYS, FD(STREAM),
     "the guest ended its side of the connection"},
    {SCMP_SYS(futex), BOTH, ALWAYS, 0, "the machine's lock; parking the vCPU thread"},
    {SCMP_SYS(clock_gettime), MAIN, ALWAYS, 0, "times, where the vDSO cannot tell them"},
    {SCMP_SYS(restart_syscall), BOTH, ALWAYS, 0, "a wait that a signal interrupted"},
    {SCMP_SYS(rt_sigreturn), VCPU, PAUSED, 0, "returning from the interruption"},
    {SCMP_SYS(close), MAIN, ONCE | REUSABLE, FD(SENT_1) | FD(SENT_2) | FD(SENT_3),
     "a disk that goes; what came with a command"},
    {SCMP_SYS(close), MAIN, BOOT, 0, "what came with a command; releasing the machine"},
    {SCMP_SYS(exit_group), MAIN, ALWAYS, 0, "the process ends"},
    /* A reset. */
    {SCMP_SYS(pread64), MAIN, REUSABLE, FD(PAGEMAP) | FD(STATS), "which pages are private"},
    {SCMP_SYS(pread64), VCPU, REUSABLE, FD(STATS), "whether KVM flushed"},
    {SCMP_SYS(getrandom), MAIN, REUSABLE, 0, "a new generation ID"},
    /* A snapshot. */
    {SCMP_SYS(mremap), MAIN, BOOT, 0, "the state grows while it is written"},
    {SCMP_SYS(ftruncate), MAIN, BOOT, 0, "sizing the memory file"},
    {SCMP_SYS(pwrite64), MAIN, BOOT, 0, "writing the snapshot"},
    {SCMP_SYS(munmap), BOTH, BOOT, 0, "releasing the machine; a thread ends"},
    {SCMP_SYS(brk), MAIN, BOOT, 0, "the allocator gives memory back"},
    {SCMP_SYS(rt_sigprocmask), VCPU, BOOT, 0, "the vCPU thread ends"},
    {SCMP_SYS(exit), VCPU, BOOT, 0, "the same"},
};

/* The requests allowed to ioctl. */
static const struct {
    unsigned long request;
    enum thread thread;
    enum scope scope;
    unsigned fds;
} ioctls[] = {
    /* The guest runs; a device interrupts it. */
    {KVM_RUN, VCPU, ALWAYS, FD(VCPU)},
    {KVM_IRQ_LINE, BOTH, ALWAYS, FD(VM)},
    /* Which pages are private. */
    {SCAN_REQUEST, MAIN, REUSABLE, FD(PAGEMAP)},
    /* Its vCPU is put back to the snapshot. */
    {KVM_SET_REGS, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_MP_STATE, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_VCPU_EVENTS, MAIN, REUSABLE, FD(VCPU)},
#if defined(__x86_64__)
    {KVM_SET_SREGS, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_XSAVE, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_XCRS, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_DEBUGREGS, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_LAPIC, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_MSRS, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_IRQCHIP, MAIN, REUSABLE, FD(VM)},
    {KVM_SET_CLOCK, MAIN, REUSABLE, FD(VM)},
    {KVM_KVMCLOCK_CTRL, MAIN, REUSABLE, FD(VCPU)},
    /* The TSC goes on from the saved value: read, and moved by its offset. */
    {KVM_GET_DEVICE_ATTR, MAIN, REUSABLE, FD(VCPU)},
    {KVM_SET_DEVICE_ATTR, MAIN, REUSABLE, FD(VCPU)},
    {KVM_GET_MSRS, MAIN, PAUSED, FD(VCPU)},
    {KVM_CHECK_EXTENSION, MAIN, PAUSED, FD(VM)},
#endif
    /* Its state is read for a snapshot. */
    {KVM_GET_DIRTY_LOG, MAIN, BOOT, FD(VM)},
    {KVM_GET_REGS, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_MP_STATE, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_VCPU_EVENTS, MAIN, BOOT, FD(VCPU)},
#if defined(__x86_64__)
    {KVM_GET_CPUID2, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_SREGS, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_XSAVE2, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_XCRS, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_DEBUGREGS, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_LAPIC, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_TSC_KHZ, MAIN, BOOT, FD(VCPU)},
    {KVM_GET_MSR_INDEX_LIST, MAIN, BOOT, FD(KVM)},
    {KVM_GET_IRQCHIP, MAIN, BOOT, FD(VM)},
    {KVM_GET_CLOCK, MAIN, BOOT, FD(VM)},
#endif
};

/* The most calls that a thread beside a hostile guest may be left with. */
#define MAIN_CALLS_MAX 25u
#define VCPU_CALLS_MAX 20u

/* More calls than any filter has. */
#define CALLS_MAX 64u

/* A filter that is made. */
struct filter {
    scmp_filter_ctx ctx;
    enum thread thread;
    enum scope scope;
    unsigned n_calls; /* different ones */
    int calls[CALLS_MAX];
};

static void note_call(struct filter *f, int call)
{
    if (f->n_calls == CALLS_MAX)
        abort();
    f->calls[f->n_calls++] = call;
}

/* Of an argument of 32 bits: what the rest of its register holds the kernel does not look at.
 */
static struct scmp_arg_cmp equals(unsigned arg, uint64_t value)
{
    return (struct scmp_arg_cmp){
        .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX, .datum_b = value};
}

/* Allows a call with each of the descriptors, and with what args says beside it. */
static int allow(const struct filter *f, int call, unsigned fds, const struct scmp_arg_cmp *arg)
{
    struct scmp_arg_cmp args[2];
    unsigned n = 0;
    int r = 0;

    if (arg)
        args[n++] = *arg;
    if (fds == 0)
        return seccomp_rule_add_array(f->ctx, SCMP_ACT_ALLOW, call, n, args);
    for (unsigned i = 0; r == 0 && i < HARDEN_FDS; i++) {
        if (!(fds & 1u << i))
            continue;
        args[n] = equals(0, SECCOMP_FD(i));
        r = seccomp_rule_add_array(f->ctx, SCMP_ACT_ALLOW, call, n + 1, args);
    }
    return r;
}

static int add_calls(struct filter *f)
{
    int r = 0;

    note_call(f, SCMP_SYS(ioctl));
    for (size_t i = 0; r == 0 && i < sizeof(ioctls) / sizeof(ioctls[0]); i++) {
        const struct scmp_arg_cmp request = equals(1, ioctls[i].request);

        if ((ioctls[i].scope & f->scope) && (ioctls[i].thread & f->thread))
            r = allow(f, SCMP_SYS(ioctl), ioctls[i].fds, &request);
    }
    for (size_t i = 0; r == 0 && i < sizeof(rules) / sizeof(rules[0]); i++) {
        /* Calls that this architecture does not have are negative. */
        if (rules[i].call < 0 || !(rules[i].scope & f->scope) || !(rules[i].thread & f->thread))
            continue;
        note_call(f, rules[i].call);
        r = allow(f, rules[i].call, rules[i].fds, NULL);
    }
    return r;
}

/* A call of which n arguments matter. */
static int allow_only(struct filter *f, int call, unsigned n, const struct scmp_arg_cmp *args)
{
    note_call(f, call);
    return seccomp_rule_add_array(f->ctx, SCMP_ACT_ALLOW, call, n, args);
}

static int add_others(struct filter *f)
{
    /* Dropping what a guest wrote; a thread that ends gives its stack back the same way. */
    const struct scmp_arg_cmp drop[] = {equals(2, MADV_DONTNEED)};
    /* Interrupting KVM_RUN, in this process and nowhere else. A machine that runs a guest once
       signals nobody: its process ends without stopping its vCPU first. */
    const struct scmp_arg_cmp kick[] = {equals(0, SECCOMP_SELF), equals(2, SIGUSR1)};
    /* Memory for buffers of the snapshot; never code. */
    const struct scmp_arg_cmp memory[] = {equals(2, PROT_READ | PROT_WRITE),
                                          equals(3, MAP_PRIVATE | MAP_ANONYMOUS)};
    /* The new end of the stream takes the number of the old one. */
    const struct scmp_arg_cmp renew[] = {equals(1, SECCOMP_FD(HARDEN_FD_STREAM))};
    const bool main = f->thread == MAIN;
    int r = 0;

    if (main && (f->scope & REUSABLE))
        r = allow_only(f, SCMP_SYS(dup2) >= 0 ? SCMP_SYS(dup2) : SCMP_SYS(dup3), 1, renew);
    if (r == 0 && (f->scope & (main ? PAUSED : BOOT)))
        r = allow_only(f, SCMP_SYS(madvise), 1, drop);
    if (r == 0 && main && (f->scope & PAUSED))
        r = allow_only(f, SCMP_SYS(tgkill), 2, kick);
    if (r == 0 && main && (f->scope & BOOT))
        r = allow_only(f, SCMP_SYS(mmap), 2, memory);
    return r;
}

/* A verifying machine, which has all scopes together, is for tests. */
static bool has_too_many(const struct filter *f)
{
    return f->scope != PAUSED &&
           f->n_calls > (f->thread == MAIN ? MAIN_CALLS_MAX : VCPU_CALLS_MAX);
}

static int add_rules(struct filter *f)
{
    /* A tree: the kernel walks the filter for every call number when it takes it. */
    int r = seccomp_attr_set(f->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

    if (r < 0)
        return r;
    /* 32-bit and x32 calls end the process too, and not the thread alone. */
    r = seccomp_attr_set(f->ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r < 0)
        return r;
    r = add_calls(f);
    return r < 0 ? r : add_others(f);
}

static unsigned len_max; /* instructions of the longest filter */

static int print_code(const struct filter *filter, const char *scope_name)
{
    FILE *file = tmpfile();
    struct sock_filter f;
    unsigned len;

    if (!file)
        return -1;
    if (seccomp_export_bpf(filter->ctx, fileno(file)) < 0) {
        (void)fclose(file);
        return -1;
    }
    (void)printf("static const struct sock_filter %s_%s[] = {\n", scope_name,
                 filter->thread == MAIN ? "main" : "vcpu");
    rewind(file);
    for (len = 0; fread(&f, sizeof(f), 1, file) == 1; len++)
        (void)printf("    {%#x, %u, %u, %#x},\n", f.code, f.jt, f.jf, f.k);
    len_max = len > len_max ? len : len_max;
    (void)printf("};\n");
    (void)fclose(file);
    return 0;
}

/* The names of its calls, for docs/security.md. */
static int print_calls(const struct filter *filter, const char *scope_name)
{
    (void)printf("%s %s:", scope_name, filter->thread == MAIN ? "main" : "vcpu");
    for (unsigned i = 0; i < filter->n_calls; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, filter->calls[i]);

        (void)printf(" %s", name ? name : "?");
        free(name);
    }
    (void)putchar('\n');
    return 0;
}

typedef int print_fn(const struct filter *filter, const char *scope_name);

static int print_filter(const char *scope_name, enum thread thread, enum scope scope,
                        print_fn *print)
{
    struct filter filter = {
        .ctx = seccomp_init(SCMP_ACT_KILL_PROCESS), .thread = thread, .scope = scope};
    int r = -1;

    if (filter.ctx && add_rules(&filter) == 0 && !has_too_many(&filter))
        r = print(&filter, scope_name);
    if (r < 0)
        (void)fprintf(stderr, "seccomp_rules: no filter %s, of %u calls\n", scope_name,
                      filter.n_calls);
    if (filter.ctx)
        seccomp_release(filter.ctx);
    return r;
}

/* The filters of a scope, by threads, behind what declares them. */
static void print_scope(const char *declaration, const char *scope)
{
    (void)printf("%s{FILTER(%s_main), FILTER(%s_vcpu)},\n", declaration, scope, scope);
}

static const struct {
    const char *name;
    enum scope scope;
} scopes[] = {
    {"once", ONCE},
    {"reusable", REUSABLE},
    {"boot", BOOT},
    /* Of vmm/verify.c: what it compares it must read. */
    {"verify", PAUSED},
};

static int print_all(print_fn *print)
{
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
        if (print_filter(scopes[i].name, MAIN, scopes[i].scope, print) < 0 ||
            print_filter(scopes[i].name, VCPU, scopes[i].scope, print) < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--calls") == 0)
        return print_all(print_calls) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    (void)puts("/* Made by seccomp_rules.c. */");
    if (print_all(print_code) < 0)
        return EXIT_FAILURE;
    (void)printf("#define SECCOMP_LEN_MAX %uu\n", len_max);
    (void)puts("#define FILTER(array) {array, sizeof(array) / sizeof((array)[0])}\n"
               "static const struct filter filters[][HARDEN_THREADS] = {");
    print_scope("    [HARDEN_ONCE] = ", "once");
    print_scope("    [HARDEN_REUSABLE] = ", "reusable");
    print_scope("    [HARDEN_BOOT] = ", "boot");
    (void)puts("};\nstatic const struct filter filter_verify[HARDEN_THREADS] =");
    (void)puts("    {FILTER(verify_main), FILTER(verify_vcpu)};");
    return EXIT_SUCCESS;
}
