/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest can leave behind in its CPU and come back from.
 */
#include "tests/hostile/guest/guest.h"

#define CR0_EXCEPT 0x80000001ull /* PE, PG: those are for enter_mode() */
#define CR0_NE     0x20ull
#define EFER       0xc0000080u

/* Scratch for code of a user's, mapped for it: 2 MiB that hold nothing else. */
#define USER_GPA 0x800000ull

static void debug_registers(void)
{
    uint64_t dr7 = (random_next() & (gentle ? 0xffff0000 : 0xffff00ff)) | 0x400;

    /* Breakpoints on the field, so that the guest itself goes on. */
    __asm__ volatile("mov %0, %%dr0\n\tmov %1, %%dr1\n\tmov %2, %%dr2\n\tmov %3, %%dr3\n\t"
                     "mov %4, %%dr6\n\tmov %5, %%dr7"
                     :
                     : "r"(random_address()), "r"(random_address() & ~7ull),
                       "r"(random_address()), "r"(random_address() & ~7ull),
                       "r"(0xffff0ff0 | random_below(16) | random_below(2) << 14), "r"(dr7));
}

static void debug_watch(void)
{
    uint64_t at = random_address() & ~7ull;

    __asm__ volatile("mov %0, %%dr0\n\tmov %1, %%dr7"
                     :
                     : "r"(at), "r"(gentle ? 0xf0400ull : 0xf0403ull));
    for (unsigned i = 0; i < 8; i++)
        *(volatile uint64_t *)(uintptr_t)at = i;
    /* A watched stack segment holds its trap back until after the next instruction. */
    *(volatile uint64_t *)(uintptr_t)at = SEL_DATA;
    __asm__ volatile("movw (%0), %%ss\n\tint3\n\tnop" : : "r"(at) : "memory");
}

/* General detection: the next access to a debug register traps. */
static void debug_detect(void)
{
    __asm__ volatile("mov %0, %%dr7" : : "r"(0x2400ull));
}

static void load_noise(void *arg)
{
    __asm__ volatile("xrstor (%0)" : : "r"(arg), "a"(-1), "d"(-1) : "memory");
}

static void fpu(void)
{
    static uint8_t area[4096] __attribute__((aligned(64)));

    fill_random(area, sizeof(area));
    *(uint32_t *)(void *)(area + 24) = (uint32_t)random_below(1 << 16) & 0xffbf; /* MXCSR */
    memset(area + 512, 0, 64);
    *(uint64_t *)(void *)(area + 512) = random_below(8);
    (void)try_call(load_noise, area);
    *(uint64_t *)(void *)(area + 512) = random_below(4) | 3;
    (void)try_call(load_noise, area);
}

/* An unmasked exception of the x87 that nobody has taken yet. */
static void fpu_pending(void)
{
    uint16_t control = 0x0300;

    write_cr0(!gentle && random_below(2) ? read_cr0() & ~CR0_NE : read_cr0());
    __asm__ volatile("fninit\n\tfldcw %0\n\tfld1\n\tfldz\n\tfdivrp" : : "m"(control));
}

static void set_xcr0(void *arg)
{
    uint32_t *v = arg;

    __asm__ volatile("xsetbv" : : "c"(v[0]), "a"(v[1]), "d"(v[2]));
}

static void xcr0(void)
{
    for (unsigned i = 0; i < 16; i++) {
        uint32_t v[3] = {(uint32_t)(random_below(4) == 0), (uint32_t)random_below(1024), 0};

        if (gentle || random_below(4) == 0) /* one that is refused */
            v[2] = (uint32_t)random_next() | 1;
        (void)try_call(set_xcr0, v);
    }
}

static void set_cr0(void *arg)
{
    write_cr0(*(uint64_t *)arg);
}

static void cr0(void)
{
    for (unsigned i = 0; i < 32; i++) {
        uint64_t v = (random_below(4) ? read_cr0() ^ 1ull << random_below(32) : random_next()) |
                     CR0_EXCEPT | (gentle ? CR0_NE : 0);

        (void)try_call(set_cr0, &v);
    }
}

static void cr2(void)
{
    write_cr2(random_next());
}

static void set_cr4(void *arg)
{
    write_cr4(*(uint64_t *)arg);
}

static void cr4(void)
{
    for (unsigned i = 0; i < 32; i++) {
        uint64_t v = read_cr4() ^ 1ull << random_below(26);

        (void)try_call(set_cr4, &v);
    }
}

static void cr8(void)
{
    set_priority(random_below(16));
}

static void efer(void)
{
    uint64_t now = 0;

    for (unsigned i = 0; i < 32; i++) {
        if (msr_read(EFER, &now))
            (void)msr_write(EFER, now ^ 1ull << random_below(32));
    }
}

static void set_cr3(void *arg)
{
    write_cr3(*(uint64_t *)arg);
}

/* The same tables by other names: a copy of the root, and process-context identifiers. */
static void cr3(void)
{
    uint64_t copy = random_page();
    uint64_t pcide = read_cr4() | 1ull << 17;

    memcpy((void *)(uintptr_t)copy, pml4, sizeof(pml4));
    (void)try_call(set_cr4, &pcide);
    for (unsigned i = 0; i < 16; i++) {
        uint64_t v = (random_below(2) ? copy : (uint64_t)(uintptr_t)pml4) |
                     (read_cr4() & 1ull << 17 ? random_below(4096) | random_below(2) << 63
                                              : random_below(2) << 3);

        (void)try_call(set_cr3, &v);
    }
}

/* Other pages behind the addresses that are looked at first after the reset. */
static void stale_translations(void)
{
    for (unsigned i = 0; i < STALE_PAGES; i++) {
        stale_table[i] =
            (stale_table[i] & 0x8000000000000fffull) | (uint64_t)(uintptr_t)stale_pages[1][i];
        __asm__ volatile("invlpg (%0)" : : "r"(STALE_VA + i * PAGE) : "memory");
    }
    stale_directory[1] += 0x200000;
    __asm__ volatile("invlpg (%0)" : : "r"(STALE_LARGE_VA) : "memory");
    for (unsigned n = 0; n < 4; n++) {
        for (unsigned i = 0; i < STALE_PAGES; i++) {
            if (*(volatile uint64_t *)(uintptr_t)(STALE_VA + i * PAGE) != 0xb000 + i)
                lost("stale page", i);
        }
        (void)*(volatile uint64_t *)(uintptr_t)STALE_LARGE_VA;
    }
}

/* The same by another root, which stays loaded: nothing of the snapshot's tables changes. */
static void stale_root(void)
{
    uint64_t *root = (uint64_t *)(uintptr_t)0x100000;
    uint64_t *pdpt = root + 512, *directory = root + 1024, *table = root + 1536;

    memset(root, 0, 4 * PAGE);
    memcpy(root, pml4, sizeof(pml4));
    root[1] = (uint64_t)(uintptr_t)pdpt | 7;
    pdpt[0] = (uint64_t)(uintptr_t)directory | 7;
    directory[0] = (uint64_t)(uintptr_t)table | 7;
    directory[1] = (STALE_LARGE_GPA + 0x200000) | 0x183;
    for (unsigned i = 0; i < STALE_PAGES; i++)
        table[i] = (uint64_t)(uintptr_t)stale_pages[1][i] | 0x103;
    write_cr3((uint64_t)(uintptr_t)root);
    for (unsigned i = 0; i < STALE_PAGES; i++)
        (void)*(volatile uint64_t *)(uintptr_t)(STALE_VA + i * PAGE);
    (void)*(volatile uint64_t *)(uintptr_t)STALE_LARGE_VA;
}

static void segments(void)
{
    __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es\n\tmov %1, %%fs\n\tmov %1, %%gs\n\tlldt %w2"
                     :
                     : "r"(0), "r"(SEL_USER_DATA | 3), "r"(0)
                     : "memory");
    (void)msr_write(0xc0000100, random_next() & 0x7fffffffffff);
    __asm__ volatile("swapgs");
}

static void flags(void)
{
    uint64_t v = 2 | random_below(2) << 14 | random_below(4) << 12 | random_below(2) << 18 |
                 random_below(2) << 21;

    __asm__ volatile("pushq %0\n\tpopfq" : : "r"(v) : "cc", "memory");
}

static void single_step(void)
{
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                     "nop\n\tcpuid\n\tnop\n\tpushfq\n\tpopq %%rax\n\t"
                     "movl $0x1b, %%ecx\n\trdmsr\n\t"
                     "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq"
                     :
                     : "a"(0), "c"(0)
                     : "rbx", "rdx", "cc", "memory");
}

/* Random bytes as a program of a user's, ended by whatever it does wrong or by the timer. */
struct user_run {
    uint64_t rip;
};

static void run_user(void *arg)
{
    struct user_run *u = arg;

    enter_ring(SEL_USER64 | 3, SEL_USER_DATA | 3, 0x202, u->rip, u->rip + 0x100000);
}

static void random_user_code(void)
{
    uint64_t *page = trap_large_page(USER_GPA);
    struct user_run run;

    *page |= 4;
    __asm__ volatile("invlpg (%0)" : : "r"(USER_GPA) : "memory");
    trap_mood = TRAP_UNWIND;
    store32(LAPIC_GPA + 0x3e0, 11);
    for (unsigned i = 0; i < 32; i++) {
        run.rip = USER_GPA + random_below(256) * PAGE;
        if (i % 8 == 0)
            fill_random((void *)(uintptr_t)run.rip, PAGE);
        store32(LAPIC_GPA + 0x320, 0x31); /* once */
        store32(LAPIC_GPA + 0x380, 1000000);
        (void)try_call(run_user, &run);
        store32(LAPIC_GPA + 0x380, 0);
    }
    trap_mood = TRAP_RETURN;
}

/* Instructions that a hypervisor has to look at, with noise in their registers. */
static void instruction(void *arg)
{
    uint64_t *r = arg;

#define CASE(n, text)                                                                          \
    case n:                                                                                    \
        __asm__ volatile(text                                                                  \
                         : "+a"(r[1]), "+b"(r[2]), "+c"(r[3]), "+d"(r[4]), "+S"(r[5])          \
                         :                                                                     \
                         : "memory", "cc");                                                    \
        break
    switch (r[0]) {
        CASE(0, "vmcall");
        CASE(1, "vmmcall");
        CASE(2, "cpuid");
        CASE(3, "wbinvd");
        CASE(4, "invd");
        CASE(5, "monitor");
        CASE(6, "mwait");
        CASE(7, "rdpmc");
        CASE(8, "rdtscp");
        CASE(9, "vmrun");
        CASE(10, "vmload");
        CASE(11, "vmsave");
        CASE(12, "stgi");
        CASE(13, "clgi");
        CASE(14, "skinit");
        CASE(15, "invlpga");
        CASE(16, "vmxoff");
        CASE(17, "getsec");
        CASE(18, "rsm");
        CASE(19, "xgetbv");
        CASE(20, "clts");
        CASE(21, "movl $0xffffffff, %%ecx\n\trdmsr");
        CASE(22, "movl $0xffffffff, %%ecx\n\twrmsr");
        CASE(23, "int $0x80");
        CASE(24, "ud2");
        CASE(25, "wbnoinvd");
        CASE(26, "rdrand %%rax");
        CASE(27, "rdseed %%rax");
        CASE(28, "prefetchw (%%rsi)");
        CASE(29, "clflush (%%rsi)");
        CASE(30, "lmsw %%ax"); /* only sets PE, or clears TS, EM, MP */
        CASE(31, "smsw %%ax");
        CASE(32, "verr %%ax");
        CASE(33, "lar %%ax, %%bx");
        CASE(34, "int3");
    default:
        break;
    }
#undef CASE
}

static void instructions(void)
{
    for (unsigned i = 0; i < 200; i++) {
        uint64_t r[6] = {random_below(35), random_below(16), random_below(32),
                         random_below(16), random_below(16), random_address() & ~63ull};

        if (r[0] == 2)
            r[1] = random_below(2) ? random_below(32) : 0x80000000 | random_below(32);
        if (random_below(4) == 0)
            r[2] = r[3] = r[4] = random_address();
        (void)try_call(instruction, r);
    }
}

const struct attack attacks_cpu[] = {
    {"debug-registers", "r", debug_registers},
    {"debug-watch", "r", debug_watch},
    {"debug-detect", "r", debug_detect},
    {"fpu", "r", fpu},
    {"fpu-pending", "r", fpu_pending},
    {"xcr0", "r", xcr0},
    {"cr0", "r", cr0},
    {"cr2", "r", cr2},
    {"cr3", "rl", cr3},
    {"cr4", "r", cr4},
    {"cr8", "r", cr8},
    {"efer", "r", efer},
    {"stale-translations", "r", stale_translations},
    {"stale-root", "rl", stale_root},
    {"segments", "r", segments},
    {"flags", "r", flags},
    {"single-step", "r", single_step},
    {"user-code", "ra", random_user_code},
    {"instructions", "rm", instructions},
    {"msr-known", "r", msr_attack_known},
    {"msr-all", "r", msr_attack_all},
    {"msr-paravirtual", "r", msr_attack_paravirtual},
    {"msr-clock", "r", msr_attack_clock},
};
const unsigned n_attacks_cpu = ARRAY_SIZE(attacks_cpu);
