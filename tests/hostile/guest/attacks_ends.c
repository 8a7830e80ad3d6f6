/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States that a guest does not come back from: what the vCPU is in when the reset arrives.
 */
#include "tests/hostile/guest/guest.h"

#define ICR      (LAPIC_GPA + 0x300)
#define ICR_SELF 0x40000u
#define USER_GPA 0x800000ull

static void say_end(void)
{
    print("end\n");
}

static void halt(void)
{
    say_end();
    for (;;)
        __asm__ volatile("cli\n\thlt");
}

/* Woken and sent back by its timer. */
static void halt_woken(void)
{
    set_priority(0);
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    store32(LAPIC_GPA + 0x320, 0x20031);
    store32(LAPIC_GPA + 0x380, 100000);
    say_end();
    for (;;)
        __asm__ volatile("sti\n\thlt");
}

/* Interrupts on, nobody who sends one. */
static void halt_forever(void)
{
    store32(LAPIC_GPA + 0x320, 0x10031);
    say_end();
    for (;;)
        __asm__ volatile("sti\n\thlt");
}

static void in_interrupt(void)
{
    set_priority(0);
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    trap_mood = TRAP_STAY;
    store32(ICR, ICR_SELF | 0x77);
    __asm__ volatile("sti\n\tnop\n\tnop");
    /* Earlier attacks took the local APIC away. */
    end_spinning();
}

/* In an NMI's handler, with the next one pending behind it: the handler never returns. */
static void in_nmi(void)
{
    trap_mood = TRAP_STAY;
    store32(ICR, ICR_SELF | 0x400);
    store32(ICR, ICR_SELF | 0x400);
    store32(ICR, ICR_SELF | 0x400);
    end_spinning();
}

static void interrupt_shadow(void)
{
    uint64_t selector = SEL_DATA;

    say_end();
    for (;;)
        __asm__ volatile("cli\n\tsti\n\tcli\n\tmov %w0, %%ss\n\tmov %w0, %%ss"
                         :
                         : "r"(selector));
}

/* An interrupt that waits for its window, again and again. */
static void interrupt_window(void)
{
    set_priority(0);
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    say_end();
    for (;;) {
        store32(ICR, ICR_SELF | 0x55);
        store32(ICR, ICR_SELF | 0xaa);
        __asm__ volatile("sti\n\tnop\n\tcli");
    }
}

static void stepping(void)
{
    say_end();
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n"
                     "1:\tnop\n\tcpuid\n\tjmp 1b"
                     :
                     :
                     : "rax", "rbx", "rcx", "rdx", "cc", "memory");
}

/* The same exception for ever: by its handler, which returns to what caused it. */
static void fault_page(void)
{
    trap_mood = TRAP_AGAIN;
    say_end();
    (void)*(volatile uint64_t *)(uintptr_t)0x700000000000;
}

static void fault_opcode(void)
{
    trap_mood = TRAP_AGAIN;
    say_end();
    __asm__ volatile("ud2");
}

static void fault_protection(void)
{
    trap_mood = TRAP_AGAIN;
    say_end();
    __asm__ volatile("movl $0x7fffffff, %%ecx\n\trdmsr" : : : "rax", "rcx", "rdx");
}

/* A debug exception in the delivery of which the next one is met: by the stack it pushes to. */
static void fault_debug(void)
{
    static uint64_t watched;

    __asm__ volatile("mov %0, %%dr0\n\tmov %1, %%dr7"
                     :
                     : "r"(&watched), "r"(gentle ? 0xd0400ull : 0xd0403ull));
    say_end();
    for (;;)
        *(volatile uint64_t *)&watched = 1;
}

static void loop_mmio(void)
{
    say_end();
    for (;;)
        (void)load32(LAYOUT_VSOCK_BASE);
}

/* Accesses that KVM takes apart: each piece is an exit of its own. */
static void loop_mmio_split(void)
{
    say_end();
    for (;;) {
        *(volatile uint64_t *)(uintptr_t)(LAYOUT_BLK_BASE + PAGE - 3) = 0;
        (void)*(volatile uint64_t *)(uintptr_t)(LAYOUT_BLK_BASE + PAGE - 5);
        *(volatile uint64_t *)(uintptr_t)(LAYOUT_BLK_BASE - 4) = 0;
        *(volatile uint64_t *)(uintptr_t)(LAYOUT_SERIAL_BASE + PAGE - 1) = 0;
    }
}

static void loop_mmio_string(void)
{
    say_end();
    for (;;) {
        uint64_t from = LAYOUT_BLK_BASE, to = random_page(), n = PAGE / 4;

        __asm__ volatile("rep movsl" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
        from = random_page();
        to = LAYOUT_SERIAL_BASE + PAGE;
        n = PAGE;
        __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
    }
}

static void loop_port(void)
{
    say_end();
    for (;;)
        (void)in8(0x81);
}

static void loop_port_string(void)
{
    say_end();
    for (;;) {
        uint64_t at = random_page(), n = 3000;

        __asm__ volatile("rep insb" : "+D"(at), "+c"(n) : "d"(0x3f0) : "memory");
        at = random_page();
        n = 3000;
        __asm__ volatile("rep outsb" : "+S"(at), "+c"(n) : "d"(0x3f0) : "memory");
    }
}

static void loop_chips(void)
{
    say_end();
    for (;;) {
        (void)load32(LAPIC_GPA + 0x390);
        store32(IOAPIC_GPA, 0x18);
        store32(IOAPIC_GPA + 0x10, 0x10000 | (uint32_t)random_below(256));
        out8(0x20, (uint8_t)random_below(32));
    }
}

static void loop_memory(void)
{
    say_end();
    for (;;)
        store32(random_address() & ~3ull, (uint32_t)random_next());
}

static void loop_stale(void)
{
    stale_directory[1] += 0x200000;
    say_end();
    for (;;) {
        for (unsigned i = 0; i < STALE_PAGES; i++) {
            stale_table[i] = (stale_table[i] & 0x8000000000000fffull) |
                             (uint64_t)(uintptr_t)stale_pages[1][i];
            __asm__ volatile("invlpg (%0)" : : "r"(STALE_VA + i * PAGE) : "memory");
            (void)*(volatile uint64_t *)(uintptr_t)(STALE_VA + i * PAGE);
        }
        (void)*(volatile uint64_t *)(uintptr_t)STALE_LARGE_VA;
        __asm__ volatile("pause"); /* see spin_here in start.S */
    }
}

/* Each page of memory, the guest's own by what is there, and both threads of the machine's
 * process. */
static void take_all(void)
{
    for (unsigned n = 0;; n++) {
        for (uint64_t at = 0; at < LAYOUT_RAM_MIN_BYTES; at += PAGE) {
            if (at + PAGE > (uint64_t)(uintptr_t)image_start &&
                at < (uint64_t)(uintptr_t)image_end)
                store32(at, load32(at));
            else
                store32(at, (uint32_t)random_next());
        }
        if (n == 1)
            say_end();
        virtio_attack_blk();
        for (unsigned i = 0; i < 2000; i++)
            vsock_echo();
    }
}

/* The console's line is half said. */
static void half_a_line(void)
{
    say_end();
    print("half a line");
    spin();
}

static void to_mode(unsigned mode)
{
    uint64_t cr4 = read_cr4();

    memcpy((void *)(uintptr_t)LOW_GPA, low_code, (size_t)(low_code_end - low_code));
    /* Leaving long mode with process-context identifiers is not possible. */
    if (cr4 & 1ull << 17)
        write_cr4(cr4 & ~(1ull << 17));
    enter_mode(mode);
}

static void mode_compat(void)
{
    to_mode(MODE_COMPAT);
}

static void mode_protected(void)
{
    to_mode(MODE_PROTECTED);
}

static void mode_pae(void)
{
    to_mode(MODE_PAE);
}

static void mode_pse(void)
{
    to_mode(MODE_PSE);
}

static void mode_protected16(void)
{
    to_mode(MODE_PROTECTED16);
}

static void mode_real(void)
{
    to_mode(MODE_REAL);
}

static void mode_v86(void)
{
    to_mode(MODE_V86);
}

static void ring(uint64_t cs, uint64_t ss, bool user)
{
    memcpy((void *)(uintptr_t)USER_GPA, user_spin, 64);
    if (user) {
        *trap_large_page(USER_GPA) |= 4;
        __asm__ volatile("invlpg (%0)" : : "r"(USER_GPA) : "memory");
    }
    say_end();
    enter_ring(cs, ss, 0x3202, USER_GPA, USER_GPA + 0x1000);
}

static void ring1(void)
{
    ring(SEL_RING1 | 1, SEL_RING1DATA | 1, false);
}

static void ring3(void)
{
    ring(SEL_USER64 | 3, SEL_USER_DATA | 3, true);
}

static void ring3_compat(void)
{
    ring(SEL_USER32 | 3, SEL_USER_DATA | 3, true);
}

struct table {
    uint16_t limit;
    uint64_t base;
} __attribute__((packed));

static void tables(void)
{
    struct table t = {(uint16_t)random_next(), random_next() >> 17};

    for (unsigned i = 1; i < GDT_ENTRIES; i++) {
        if (i != SEL_TSS / 8 && i != SEL_TSS / 8 + 1)
            gdt[i] = random_next();
    }
    say_end();
    __asm__ volatile("lidt %0\n\tlgdt %0" : : "m"(t));
    spin();
}

/* Without tables, and then an NMI: the reset may come before or after it ends the machine. */
static void tables_nmi(void)
{
    struct table t = {0, 0};

    store32(LAPIC_GPA + 0x320, 0x10031);
    say_end();
    __asm__ volatile("lidt %0" : : "m"(t));
    store32(ICR, ICR_SELF | 0x400);
    spin();
}

static void init_self(void)
{
    say_end();
    store32(ICR, ICR_SELF | 0x500);
    store32(ICR, 0xc4500);
    store32(LAPIC_GPA + 0x310, 0);
    store32(ICR, 0x4500);
    spin();
}

static void startup_self(void)
{
    store32(LAPIC_GPA + 0x310, 0);
    store32(ICR, 0x4602);
    say_end();
    spin();
}

static void smi_self(void)
{
    say_end();
    store32(LAPIC_GPA + 0x310, 0);
    store32(ICR, 0x4200);
    spin();
}

/* Noise as code in ring 0. */
static void random_code(void)
{
    uint64_t at = 0x300000;

    fill_random((void *)(uintptr_t)at, 16 * PAGE);
    say_end();
    __asm__ volatile("movq %0, %%rsp\n\tjmp *%1" : : "r"(at + 0x8000), "r"(at) : "memory");
    __builtin_unreachable();
}

static void triple_fault(void)
{
    struct table t = {0, 0};

    __asm__ volatile("lidt %0\n\tud2" : : "m"(t));
}

static void bad_root(void)
{
    write_cr3(random_page() & ~0xfffull);
}

/*
 * All of memory, the guest itself too: by a copy of a few instructions and three pages of
 * tables, at one of two places so that both together leave nothing out.
 */
static void wipe(void)
{
    bool low = random_below(2);
    uint64_t at = low ? 0x100000 : LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES) - 16 * PAGE;
    uint64_t *root = (uint64_t *)(uintptr_t)at, *pdpt = root + 512, *directory = root + 1024;
    uint64_t end = at + 8 * PAGE;
    uint64_t cr4 = read_cr4();

    memset(root, 0, 3 * PAGE);
    root[0] = (uint64_t)(uintptr_t)pdpt | 3;
    pdpt[0] = (uint64_t)(uintptr_t)directory | 3;
    for (unsigned i = 0; i < 16; i++)
        directory[i] = (uint64_t)i << 21 | 0x83;
    /* The serial port and the rest of the devices, by the tables that are there. */
    pdpt[3] = 0;
    directory[511] = (LAYOUT_SERIAL_BASE & ~0x1fffffull) | 0x83;
    memcpy((void *)(uintptr_t)(at + 4 * PAGE), wipe_code, (size_t)(wipe_code_end - wipe_code));
    if (cr4 & 1ull << 17)
        write_cr4(cr4 & ~(1ull << 17));
    write_cr3(at);
    {
        uint64_t from = 0, words = at / 8, noise = random_next();
        register uint64_t next __asm__("rdx") = end;
        register uint64_t next_words __asm__("rsi") = (LAYOUT_RAM_MIN_BYTES - end) / 8;
        register uint64_t port __asm__("r8") = (511ull << 21) + LAYOUT_SERIAL_BASE % 0x200000;

        __asm__ volatile("jmp *%0"
                         :
                         : "r"(at + 4 * PAGE), "D"(from), "c"(words), "a"(noise), "r"(next),
                           "r"(next_words), "r"(port)
                         : "memory");
    }
    __builtin_unreachable();
}

const struct attack attacks_ends[] = {
    {"spin", "f", end_spinning},
    {"halt", "f", halt},
    {"halt-woken", "f", halt_woken},
    {"halt-forever", "f", halt_forever},
    {"in-interrupt", "f", in_interrupt},
    {"in-nmi", "f", in_nmi},
    {"interrupt-shadow", "f", interrupt_shadow},
    {"interrupt-window", "f", interrupt_window},
    {"stepping", "f", stepping},
    {"fault-page", "f", fault_page},
    {"fault-opcode", "f", fault_opcode},
    {"fault-protection", "f", fault_protection},
    {"fault-debug", "f", fault_debug},
    {"loop-mmio", "f", loop_mmio},
    {"loop-mmio-split", "f", loop_mmio_split},
    {"loop-mmio-string", "f", loop_mmio_string},
    {"loop-port", "f", loop_port},
    {"loop-port-string", "f", loop_port_string},
    {"loop-chips", "f", loop_chips},
    {"loop-memory", "f", loop_memory},
    {"loop-stale", "f", loop_stale},
    {"take-all", "f", take_all},
    {"half-a-line", "f", half_a_line},
    {"mode-compat", "f", mode_compat},
    {"mode-protected", "f", mode_protected},
    {"mode-pae", "f", mode_pae},
    {"mode-pse", "f", mode_pse},
    {"mode-protected16", "f", mode_protected16},
    {"mode-real", "f", mode_real},
    {"mode-v86", "f", mode_v86},
    {"ring1", "f", ring1},
    {"ring3", "f", ring3},
    {"ring3-compat", "f", ring3_compat},
    {"tables", "f", tables},
    {"tables-nmi", "fm", tables_nmi},
    {"init-self", "fm", init_self},
    {"startup-self", "fm", startup_self},
    {"smi-self", "fm", smi_self},
    {"random-code", "fm", random_code},
    {"wipe", "f", wipe},
    {"triple-fault", "x", triple_fault},
    {"bad-root", "xm", bad_root},
};
const unsigned n_attacks_ends = ARRAY_SIZE(attacks_ends);
