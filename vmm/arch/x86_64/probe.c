/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the tests of probe_guest.S. Each starts from the same registers; after one that did not
 * end well the machine is thrown away, because nothing says what state it is in.
 */
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "base/clock.h"
#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/cpuid.h"
#include "vmm/arch/x86_64/probe_guest.h"

#define GUEST_BYTES 0x200000u

#define CR0_LONG  0x80050033ull /* PG, AM, WP, NE, ET, MP, PE */
#define CR4_LONG  0x620ull      /* PAE, OSFXSR, OSXMMEXCPT */
#define CR4_XSAVE 0x40000ull
#define EFER_LONG 0x501ull /* SCE, LME, LMA */

#define SPEED_SHORT 20000u
#define SPEED_LONG  10000000u
#define EXITS       200u

extern const uint8_t probe_guest_start[], probe_guest_end[];
extern const uint8_t probe_ring0[], probe_ring3[], probe_syscall[], probe_cmpxchg16b[];
extern const uint8_t probe_xsave[], probe_popcnt[], probe_int3[], probe_speed[], probe_exits[];
extern const uint8_t probe_general_protection[], probe_breakpoint[], probe_fault_stubs[];

/* A tiny machine. */
struct guest {
    struct kvm kvm;
    uint8_t *memory;
    bool has_xsave;
    bool usable;
};

static struct kvm_run *volatile alarm_run;

/* A KVM_RUN that goes on for too long comes back with EINTR. */
static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (alarm_run)
        alarm_run->immediate_exit = 1;
}

static uint64_t guest_address(const uint8_t *symbol)
{
    return PROBE_CODE + (uint64_t)(symbol - probe_guest_start);
}

static void put_u64(uint8_t *memory, uint64_t gpa, uint64_t value)
{
    memcpy(memory + gpa, &value, sizeof(value));
}

static void put_gate(uint8_t *memory, unsigned vector, const uint8_t *handler, unsigned dpl)
{
    uint64_t address = guest_address(handler);

    put_u64(memory, PROBE_IDT + 16ull * vector,
            (address & 0xffff) | (uint64_t)KERNEL_CODE << 16 |
                (uint64_t)(0x8e00 | dpl << 13) << 32 | (address >> 16 & 0xffff) << 48);
    put_u64(memory, PROBE_IDT + 16ull * vector + 8, address >> 32);
}

/* Page tables, GDT, TSS and IDT. */
static void put_tables(uint8_t *memory)
{
    const uint64_t tss = PROBE_TSS;

    memset(memory, 0, PROBE_CODE);
    put_u64(memory, PROBE_PML4, PROBE_PDPT | 7);
    put_u64(memory, PROBE_PDPT, PROBE_PD | 7);
    put_u64(memory, PROBE_PD, 0x87);
    put_u64(memory, PROBE_GDT + KERNEL_CODE, 0x00af9b000000ffff);
    put_u64(memory, PROBE_GDT + KERNEL_DATA, 0x00cf93000000ffff);
    put_u64(memory, PROBE_GDT + USER_CODE32, 0x00cffb000000ffff);
    put_u64(memory, PROBE_GDT + USER_DATA, 0x00cff3000000ffff);
    put_u64(memory, PROBE_GDT + USER_CODE, 0x00affb000000ffff);
    put_u64(memory, PROBE_GDT + TSS_SELECTOR,
            0x67 | tss << 16 | 0x8bull << 40 | (tss >> 24 & 0xff) << 56);
    put_u64(memory, PROBE_TSS + 4, KERNEL_STACK);
    for (unsigned v = 0; v < 32; v++)
        put_gate(memory, v, probe_fault_stubs + v * PROBE_STUB_SIZE, 0);
    put_gate(memory, 3, probe_breakpoint, 3);
    put_gate(memory, 13, probe_general_protection, 0);
    memcpy(memory + PROBE_CODE, probe_guest_start,
           (size_t)(probe_guest_end - probe_guest_start));
}

static void close_guest(struct guest *g)
{
    alarm_run = NULL;
    kvm_finish(&g->kvm);
    if (g->memory)
        (void)munmap(g->memory, GUEST_BYTES);
    g->memory = NULL;
    g->usable = false;
}

static int open_guest(struct guest *g, struct err *err)
{
    static struct x86_cpuid cpuid;
    void *memory =
        mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int r;

    if (memory == MAP_FAILED)
        return err_set_errno(err, errno, "mmap");
    g->memory = memory;
    r = kvm_make(&g->kvm, -1, memory, GUEST_BYTES, false, err);
    if (r < 0)
        return r;
    r = x86_cpuid_host(g->kvm.dev_fd, &cpuid, err);
    if (r < 0)
        return r;
    r = kvm_ioctl(g->kvm.vcpu_fd, KVM_SET_CPUID2, &cpuid, "KVM_SET_CPUID2", err);
    if (r < 0)
        return r;
    g->has_xsave = x86_cpuid_xcr0(&cpuid) != 0;
    g->usable = true;
    alarm_run = g->kvm.run;
    return 0;
}

static struct kvm_segment segment(uint16_t selector, uint8_t type, bool code)
{
    return (struct kvm_segment){.limit = 0xffffffff,
                                .selector = selector,
                                .type = type,
                                .present = 1,
                                .l = code,
                                .db = !code,
                                .s = 1,
                                .g = 1};
}

/* Ring 0 of long mode at entry, with RSI = argument. */
static int set_state(const struct guest *g, const uint8_t *entry, uint64_t argument,
                     struct err *err)
{
    struct kvm_regs regs = {
        .rip = guest_address(entry), .rsp = KERNEL_STACK, .rsi = argument, .rflags = 2};
    struct kvm_sregs s;
    int r = kvm_ioctl(g->kvm.vcpu_fd, KVM_GET_SREGS, &s, "KVM_GET_SREGS", err);

    if (r < 0)
        return r;
    put_tables(g->memory);
    s.cs = segment(KERNEL_CODE, 11, true);
    s.ds = s.es = s.fs = s.gs = s.ss = segment(KERNEL_DATA, 3, false);
    s.tr = (struct kvm_segment){
        .base = PROBE_TSS, .limit = 0x67, .selector = TSS_SELECTOR, .type = 11, .present = 1};
    s.gdt = (struct kvm_dtable){.base = PROBE_GDT, .limit = TSS_SELECTOR + 15};
    s.idt = (struct kvm_dtable){.base = PROBE_IDT, .limit = 16 * 32 - 1};
    s.cr0 = CR0_LONG;
    s.cr3 = PROBE_PML4;
    s.cr4 = CR4_LONG | (g->has_xsave ? CR4_XSAVE : 0);
    s.efer = EFER_LONG;
    r = kvm_ioctl(g->kvm.vcpu_fd, KVM_SET_SREGS, &s, "KVM_SET_SREGS", err);
    return r < 0 ? r : kvm_ioctl(g->kvm.vcpu_fd, KVM_SET_REGS, &regs, "KVM_SET_REGS", err);
}

/* Arms the alarm for timeout_ms and then every millisecond, or disarms it with 0. */
static void set_alarm(unsigned timeout_ms)
{
    struct itimerval timer = {
        .it_value = {.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000},
        .it_interval = {.tv_usec = timeout_ms > 0 ? 1000 : 0},
    };

    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

static const uint8_t *exit_byte(const struct kvm_run *run, size_t run_bytes)
{
    return run->io.data_offset < run_bytes ? (const uint8_t *)run + run->io.data_offset : NULL;
}

/* One exit of a test. True when it is over, with the failure in text ("" for none). */
static bool is_over(const struct guest *g, char *text, size_t cap)
{
    const struct kvm_run *run = g->kvm.run;
    const uint8_t *byte;

    switch (run->exit_reason) {
    case KVM_EXIT_IO:
        byte = exit_byte(run, g->kvm.run_bytes);
        if (run->io.direction == KVM_EXIT_IO_OUT && run->io.port == PORT_COUNT)
            return false;
        if (byte && run->io.direction == KVM_EXIT_IO_OUT && run->io.port == PORT_RESULT)
            (void)snprintf(text, cap, "%s",
                           *byte == RESULT_OK     ? ""
                           : *byte == RESULT_RING ? "does not enter ring 0"
                                                  : "gives wrong results");
        else if (byte && run->io.direction == KVM_EXIT_IO_OUT && run->io.port == PORT_FAULT)
            (void)snprintf(text, cap, "faults (vector %u)", *byte);
        else
            (void)snprintf(text, cap, "goes astray (port %#x)", run->io.port);
        return true;
    case KVM_EXIT_INTERNAL_ERROR:
        (void)snprintf(text, cap, "stops KVM (internal error %u)", run->internal.suberror);
        return true;
    case KVM_EXIT_SHUTDOWN:
        (void)snprintf(text, cap, "shuts the machine down");
        return true;
    case KVM_EXIT_FAIL_ENTRY:
        (void)snprintf(text, cap, "cannot be entered");
        return true;
    default:
        (void)snprintf(text, cap, "goes astray (KVM exit %u)", run->exit_reason);
        return true;
    }
}

/* Runs one test to its end. An empty text means that it passed. */
static void run_guest(struct guest *g, const uint8_t *entry, uint64_t argument,
                      unsigned timeout_ms, char *text, size_t cap)
{
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ms * 1000000ull;
    struct err err = {0};

    if (!g->usable && open_guest(g, &err) < 0) {
        (void)snprintf(text, cap, "cannot start");
        return;
    }
    if (set_state(g, entry, argument, &err) < 0) {
        (void)snprintf(text, cap, "cannot start");
        close_guest(g);
        return;
    }
    set_alarm(timeout_ms);
    for (;;) {
        int r = ioctl(g->kvm.vcpu_fd, KVM_RUN, NULL);

        if ((r < 0 && errno != EINTR && errno != EAGAIN)) {
            (void)snprintf(text, cap, "stops KVM (%s)", strerror(errno));
            break;
        }
        if (r >= 0 && is_over(g, text, cap))
            break;
        if (clock_monotonic_ns() >= deadline_ns) {
            (void)snprintf(text, cap, "does not come to an end");
            break;
        }
    }
    set_alarm(0);
    if (text[0])
        close_guest(g);
}

/* argument times per instructions or exits per second; 0 when it does not work. */
static uint64_t measure(struct guest *g, const uint8_t *entry, uint64_t argument,
                        unsigned timeout_ms, uint64_t *ret_ns)
{
    char text[64] = "";
    uint64_t start = clock_monotonic_ns();

    run_guest(g, entry, argument, timeout_ms, text, sizeof(text));
    *ret_ns = clock_monotonic_ns() - start;
    if (text[0] || *ret_ns == 0)
        return 0;
    return argument * 1000000000ull / *ret_ns;
}

void arch_probe(struct probe_report *report, unsigned test_ms)
{
    static const struct {
        const char *name;
        const char *label;
        const uint8_t *entry;
    } tests[] = {
        {"ring0", "ring 0 code", probe_ring0}, {"ring3", "ring 3 code", probe_ring3},
        {"syscall", "SYSCALL", probe_syscall}, {"cmpxchg16b", "CMPXCHG16B", probe_cmpxchg16b},
        {"xsave", "XSAVE", probe_xsave},       {"popcnt", "POPCNT", probe_popcnt},
        {"int3", "INT3", probe_int3},
    };
    struct sigaction action = {.sa_handler = on_alarm};
    struct guest g = {.kvm = kvm_init()};
    uint64_t ns = 0;

    (void)sigaction(SIGALRM, &action, NULL);
    report->n_tests = sizeof(tests) / sizeof(tests[0]);
    for (uint32_t i = 0; i < report->n_tests; i++) {
        report->tests[i].name = tests[i].name;
        report->tests[i].label = tests[i].label;
    }
    for (uint32_t i = 0; i < report->n_tests; i++) {
        struct probe_test *t = &report->tests[i];
        char text[sizeof(t->text)] = "";

        t->status = PROBE_RUNNING;
        run_guest(&g, tests[i].entry, 0, test_ms, text, sizeof(text));
        memcpy(t->text, text, sizeof(text));
        t->status = text[0] ? PROBE_FAILED : PROBE_OK;
    }
    report->exits_per_second = measure(&g, probe_exits, EXITS, test_ms, &ns);
    report->instructions_per_second = 2 * measure(&g, probe_speed, SPEED_SHORT, test_ms, &ns);
    /* The short loop shows a slow guest; on a fast one it measures only its start. */
    if (report->instructions_per_second > 0 && ns < 5000000)
        report->instructions_per_second =
            2 * measure(&g, probe_speed, SPEED_LONG, test_ms, &ns);
    close_guest(&g);
}

void arch_cpu_model(char *out, size_t cap)
{
    unsigned regs[12] = {0};
    const char *text = (const char *)regs;
    size_t skip = 0, len;

    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) {
        (void)snprintf(out, cap, "unknown");
        return;
    }
    for (unsigned i = 0; i < 3; i++)
        __cpuid(0x80000002u + i, regs[4 * i], regs[4 * i + 1], regs[4 * i + 2],
                regs[4 * i + 3]);
    len = strnlen(text, sizeof(regs));
    while (skip < len && text[skip] == ' ')
        skip++;
    while (len > skip && text[len - 1] == ' ')
        len--;
    (void)snprintf(out, cap, "%.*s", (int)(len - skip), text + skip);
}
