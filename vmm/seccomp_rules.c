/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build tool: the system calls that a running machine may make, each with its reason, turned
 * into filter programs by libseccomp and printed as C. Doing it here keeps the library and its
 * time out of every start of a machine. Anything not listed kills the process.
 */
#include <linux/filter.h>
#include <linux/kvm.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/pagemap_scan.h"

/* Which machines may make the call: a bit for each of enum harden_scope. */
enum scope {
    ONCE = 1,
    REUSABLE = 2,
    BOOT = 4, /* made to be saved or recorded: no user's code ever runs in it */
    PAUSED = REUSABLE | BOOT,
    ALWAYS = ONCE | REUSABLE | BOOT,
};

/* Stands for the number of the process, which is put in its place when the filter is taken. */
#define SELF 0x7f5e1f00u

struct rule {
    int call;
    enum scope scope;
    const char *reason;
};

static const struct rule rules[] = {
    {SCMP_SYS(poll), ALWAYS, "the main thread waits"},
    {SCMP_SYS(ppoll), ALWAYS, "the same on architectures without poll"},
    {SCMP_SYS(read), ALWAYS, "the main thread empties its wake-up counter"},
    {SCMP_SYS(write), ALWAYS, "wake-ups, the console, log lines"},
    {SCMP_SYS(preadv), ALWAYS, "blk reads the root image and a skill's disk"},
    {SCMP_SYS(recvmsg), ALWAYS, "commands; bytes for the guest"},
    {SCMP_SYS(sendmsg), ALWAYS, "bytes from the guest"},
    {SCMP_SYS(sendto), ALWAYS, "events to the daemon"},
    {SCMP_SYS(shutdown), ALWAYS, "the guest ended its side of the connection"},
    {SCMP_SYS(futex), ALWAYS, "the machine's lock; parking and joining the vCPU thread"},
    {SCMP_SYS(clock_gettime), ALWAYS, "times of events, where the vDSO cannot tell them"},
    {SCMP_SYS(gettid), ALWAYS, "the vCPU thread may still be starting"},
    {SCMP_SYS(rt_sigprocmask), ALWAYS, "part of thread exit"},
    {SCMP_SYS(rt_sigreturn), ALWAYS, "returning from the interruption"},
    {SCMP_SYS(restart_syscall), ALWAYS, "a wait that a signal interrupted"},
    {SCMP_SYS(set_robust_list), ALWAYS, "the same"},
    {SCMP_SYS(rseq), ALWAYS, "the same"},
    {SCMP_SYS(munmap), ALWAYS, "releasing the machine"},
    {SCMP_SYS(close), ALWAYS, "releasing the machine"},
    {SCMP_SYS(brk), ALWAYS, "the allocator gives memory back"},
    {SCMP_SYS(exit), ALWAYS, "the vCPU thread ends"},
    {SCMP_SYS(exit_group), ALWAYS, "the process ends"},
    {SCMP_SYS(pread64), REUSABLE, "which pages are private; whether KVM flushed"},
    {SCMP_SYS(dup2), REUSABLE, "the new end of the stream takes the old one's number"},
    {SCMP_SYS(dup3), REUSABLE, "the same on architectures without dup2"},
    {SCMP_SYS(getrandom), REUSABLE, "a new generation ID"},
    {SCMP_SYS(mremap), BOOT, "the state grows while it is written"},
    {SCMP_SYS(ftruncate), BOOT, "sizing the memory file"},
    {SCMP_SYS(pwrite64), BOOT, "writing the snapshot"},
};

/* The requests allowed to ioctl. */
static const struct {
    unsigned long request;
    enum scope scope;
} ioctls[] = {
    /* The guest runs; a device interrupts it. */
    {KVM_RUN, ALWAYS},
    {KVM_IRQ_LINE, ALWAYS},
    /* Which pages are private. */
    {SCAN_REQUEST, REUSABLE},
    /* Its vCPU is put back to the snapshot. */
    {KVM_SET_REGS, REUSABLE},
    {KVM_SET_MP_STATE, REUSABLE},
    {KVM_SET_VCPU_EVENTS, REUSABLE},
#if defined(__x86_64__)
    {KVM_SET_SREGS, REUSABLE},
    {KVM_SET_XSAVE, REUSABLE},
    {KVM_SET_XCRS, REUSABLE},
    {KVM_SET_DEBUGREGS, REUSABLE},
    {KVM_SET_LAPIC, REUSABLE},
    {KVM_SET_MSRS, REUSABLE},
    {KVM_SET_IRQCHIP, REUSABLE},
    {KVM_SET_CLOCK, REUSABLE},
    {KVM_KVMCLOCK_CTRL, REUSABLE},
    /* The TSC goes on from the saved value: read, and moved by its offset. */
    {KVM_GET_DEVICE_ATTR, REUSABLE},
    {KVM_SET_DEVICE_ATTR, REUSABLE},
    {KVM_GET_MSRS, PAUSED},
    {KVM_CHECK_EXTENSION, PAUSED},
#endif
    /* Its state is read for a snapshot. */
    {KVM_GET_DIRTY_LOG, BOOT},
    {KVM_GET_REGS, BOOT},
    {KVM_GET_MP_STATE, BOOT},
    {KVM_GET_VCPU_EVENTS, BOOT},
#if defined(__x86_64__)
    {KVM_GET_CPUID2, BOOT},
    {KVM_GET_SREGS, BOOT},
    {KVM_GET_XSAVE2, BOOT},
    {KVM_GET_XCRS, BOOT},
    {KVM_GET_DEBUGREGS, BOOT},
    {KVM_GET_LAPIC, BOOT},
    {KVM_GET_TSC_KHZ, BOOT},
    {KVM_GET_MSR_INDEX_LIST, BOOT},
    {KVM_GET_IRQCHIP, BOOT},
    {KVM_GET_CLOCK, BOOT},
#endif
};

static struct scmp_arg_cmp equals(unsigned arg, uint64_t value)
{
    return (struct scmp_arg_cmp){.arg = arg, .op = SCMP_CMP_EQ, .datum_a = value};
}

static int add_rules(scmp_filter_ctx ctx, enum scope scope)
{
    /* A tree: the kernel walks the filter for every call number when it takes it. */
    int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

    for (size_t i = 0; r == 0 && i < sizeof(ioctls) / sizeof(ioctls[0]); i++) {
        if (ioctls[i].scope & scope)
            r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                 equals(1, ioctls[i].request));
    }
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < sizeof(rules) / sizeof(rules[0]); i++) {
        /* Calls that this architecture does not have are negative. */
        if (rules[i].call >= 0 && (rules[i].scope & scope))
            r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, rules[i].call, 0);
    }
    if (r < 0)
        return r;
    /* Dropping what a guest wrote; a thread that ends gives its stack back the same way. */
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1, equals(2, MADV_DONTNEED));
    if (r < 0)
        return r;
    /* Interrupting KVM_RUN, in this process and nowhere else. A machine that runs a guest once
       signals nobody: its process ends without stopping its vCPU first. */
    if (scope & PAUSED)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2, equals(0, SELF),
                             equals(2, SIGUSR1));
    if (r < 0)
        return r;
    /* Memory for buffers of the snapshot; never code. */
    if (scope & BOOT)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                             equals(2, PROT_READ | PROT_WRITE),
                             equals(3, MAP_PRIVATE | MAP_ANONYMOUS));
    return r;
}

static unsigned len_max; /* instructions of the longest filter */

static int print_filter(const char *name, enum scope scope)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    FILE *file = tmpfile();
    struct sock_filter f;
    unsigned len;
    int r = -1;

    if (ctx && file && add_rules(ctx, scope) == 0 &&
        seccomp_export_bpf(ctx, fileno(file)) == 0) {
        (void)printf("static const struct sock_filter %s[] = {\n", name);
        rewind(file);
        for (len = 0; fread(&f, sizeof(f), 1, file) == 1; len++)
            (void)printf("    {%#x, %u, %u, %#x},\n", f.code, f.jt, f.jf, f.k);
        len_max = len > len_max ? len : len_max;
        (void)printf("};\n");
        r = 0;
    }
    if (file)
        (void)fclose(file);
    if (ctx)
        seccomp_release(ctx);
    return r;
}

int main(void)
{
    (void)printf("/* Made by seccomp_rules.c. */\n#define SECCOMP_SELF %#xu\n", SELF);
    if (print_filter("filter_once", ONCE) < 0 ||
        print_filter("filter_reusable", REUSABLE) < 0 ||
        print_filter("filter_boot", BOOT) < 0 ||
        /* Of vmm/verify.c: what it compares it must read. */
        print_filter("filter_verify", PAUSED) < 0)
        return EXIT_FAILURE;
    (void)printf("#define SECCOMP_LEN_MAX %uu\n", len_max);
    return EXIT_SUCCESS;
}
