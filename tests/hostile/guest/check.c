/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's own look at its state: what it set and read before the quiet point, against what
 * it reads when it wakes. It sees what no interface of KVM shows, such as stale translations,
 * and it does not trust the VMM's own comparison.
 */
#include "tests/hostile/guest/guest.h"

#define MSRS_MAX    512u
#define XSAVE_BYTES 4096u
#define LINES_MAX   40u

#define IOAPIC_ENTRIES  24u
#define IOAPIC_REGS     (16u + 2u * IOAPIC_ENTRIES)
#define CR4_OSFXSR      0x200ull
#define CR4_OSXSAVE     0x40000ull
#define DR_COUNT        6u
#define MSR_TSC         0x10u
#define KVM_SYSTEM_TIME 0x4b564d01u
#define KVM_PV_EOI      0x4b564d04u

enum control {
    CR0,
    CR2,
    CR3,
    CR4,
    CR8,
    RFLAGS,
    CS,
    SS,
    DS,
    ES,
    FS,
    GS,
    TR,
    LDTR,
    XCR0,
    N_CONTROL
};
static const char *const control_names[N_CONTROL] = {"CR0",    "CR2", "CR3", "CR4",  "CR8",
                                                     "RFLAGS", "CS",  "SS",  "DS",   "ES",
                                                     "FS",     "GS",  "TR",  "LDTR", "XCR0"};

/* Not the pending interrupts: there are those of the reset itself. Nor the counter, which runs.
 */
static const uint16_t lapic_registers[] = {
    0x020, 0x030, 0x080, 0x0d0, 0x0e0, 0x0f0, 0x100, 0x110, 0x120, 0x130, 0x140,
    0x150, 0x160, 0x170, 0x180, 0x190, 0x1a0, 0x1b0, 0x1c0, 0x1d0, 0x1e0, 0x1f0,
    0x280, 0x300, 0x310, 0x320, 0x330, 0x340, 0x350, 0x360, 0x370, 0x380, 0x3e0};
static const uint32_t devices[] = {LAYOUT_BLK_BASE, LAYOUT_VSOCK_BASE, LAYOUT_DISK_BASE};
#define REG_STATUS      0x70u
#define REG_QUEUE_READY 0x44u

static struct {
    uint64_t control[N_CONTROL];
    uint8_t gdtr[10], idtr[10];
    uint64_t debug[DR_COUNT];
    uint8_t xsave[XSAVE_BYTES] __attribute__((aligned(64)));
    uint32_t lapic[ARRAY_SIZE(lapic_registers)];
    uint32_t ioapic[IOAPIC_REGS];
    uint8_t pic[4];
    uint32_t devices[ARRAY_SIZE(devices)][2];
    uint8_t serial[4];
    uint64_t kvm_pages[KVM_PAGES];
    uint32_t n_msrs;
    uint32_t msr_index[MSRS_MAX];
    uint64_t msr_value[MSRS_MAX];
    uint64_t tsc;
} saved, now;
static uint64_t memory_sum;
static uint8_t kvmclock[64] __attribute__((aligned(64)));
static uint32_t pv_eoi;
static unsigned n_lines;
/* Code to the start of what the guest itself changes. */
extern uint8_t constant_end[];

static void read_debug(void *arg)
{
    uint64_t *d = arg;

    __asm__ volatile("mov %%dr0, %0\n\tmov %%dr1, %1\n\tmov %%dr2, %2\n\t"
                     "mov %%dr3, %3\n\tmov %%dr6, %4\n\tmov %%dr7, %5"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]));
}

static void read_control(uint64_t *c)
{
    uint32_t low = 0, high = 0;

    c[CR0] = read_cr0();
    c[CR2] = read_cr2();
    c[CR3] = read_cr3();
    c[CR4] = read_cr4();
    c[CR8] = read_cr8();
    /* The arithmetic flags are whatever the code before left. */
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(c[RFLAGS]));
    c[RFLAGS] &= ~0x8d5ull;
    __asm__ volatile("mov %%cs, %0" : "=r"(c[CS]));
    __asm__ volatile("mov %%ss, %0" : "=r"(c[SS]));
    __asm__ volatile("mov %%ds, %0" : "=r"(c[DS]));
    __asm__ volatile("mov %%es, %0" : "=r"(c[ES]));
    __asm__ volatile("mov %%fs, %0" : "=r"(c[FS]));
    __asm__ volatile("mov %%gs, %0" : "=r"(c[GS]));
    __asm__ volatile("str %0" : "=r"(c[TR]));
    __asm__ volatile("sldt %0" : "=r"(c[LDTR]));
    if (c[CR4] & CR4_OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    c[XCR0] = (uint64_t)high << 32 | low;
}

static void save_vectors(uint8_t *area)
{
    memset(area, 0, XSAVE_BYTES);
    if (read_cr4() & CR4_OSXSAVE)
        __asm__ volatile("xsave (%0)" : : "r"(area), "a"(-1), "d"(-1) : "memory");
    else
        __asm__ volatile("fxsave (%0)" : : "r"(area) : "memory");
}

/* Registers of the chips that keep what was written. */
static void read_chips(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(lapic_registers); i++)
        now.lapic[i] = load32(LAPIC_GPA + lapic_registers[i]);
    for (unsigned i = 0; i < IOAPIC_REGS; i++) {
        if (i > 2 && i < 16)
            continue;
        store32(IOAPIC_GPA, i);
        now.ioapic[i] = load32(IOAPIC_GPA + 0x10);
    }
    now.pic[0] = in8(0x21);
    now.pic[1] = in8(0xa1);
    now.pic[2] = in8(0x4d0);
    now.pic[3] = in8(0x4d1);
}

static void read_devices(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(devices); i++) {
        now.devices[i][0] = load32(devices[i] + REG_STATUS);
        now.devices[i][1] = load32(devices[i] + REG_QUEUE_READY);
    }
    now.serial[0] = *(volatile uint8_t *)(uintptr_t)(LAYOUT_SERIAL_BASE + 1);
    now.serial[1] = *(volatile uint8_t *)(uintptr_t)(LAYOUT_SERIAL_BASE + 3);
    now.serial[2] = *(volatile uint8_t *)(uintptr_t)(LAYOUT_SERIAL_BASE + 4);
    now.serial[3] = *(volatile uint8_t *)(uintptr_t)(LAYOUT_SERIAL_BASE + 7);
}

static void read_kvm_pages(void)
{
    for (unsigned i = 0; i < KVM_PAGES; i++)
        now.kvm_pages[i] =
            *(volatile uint64_t *)(uintptr_t)(KVM_PAGES_GPA + i * PAGE + KVM_PAGES_OFFSET);
}

static void read_all(void)
{
    save_vectors(now.xsave);
    read_control(now.control);
    if (try_call(read_debug, now.debug) != 0)
        lost("debug registers", 0);
    __asm__ volatile("sgdt %0" : "=m"(now.gdtr));
    __asm__ volatile("sidt %0" : "=m"(now.idtr));
    read_chips();
    read_devices();
    read_kvm_pages();
}

static uint64_t sum(uint64_t from, uint64_t to, uint64_t seed)
{
    for (uint64_t at = from; at < to; at += 8) {
        uint64_t word;

        __asm__ volatile("movq (%1), %0" : "=r"(word) : "r"(at) : "memory");
        seed = (seed << 7 | seed >> 57) + word;
    }
    return seed;
}

/* All of memory but what the guest changes between the quiet point and here. */
static uint64_t sum_memory(void)
{
    uint64_t s = sum(0, (uint64_t)(uintptr_t)constant_end, 1);

    return sum((uint64_t)(uintptr_t)image_end, LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES), s);
}

static void differs(const char *what, uint64_t index, uint64_t was, uint64_t is)
{
    if (n_lines++ >= LINES_MAX)
        return;
    print("differs ");
    print(what);
    print(" ");
    print_hex(index, 8);
    print(" was ");
    print_hex(was, 16);
    print_value(" is ", is);
}

static uint64_t stale_value(unsigned i)
{
    return *(volatile uint64_t *)(uintptr_t)(STALE_VA + i * PAGE);
}

static void compare_translations(void)
{
    for (unsigned i = 0; i < STALE_PAGES; i++) {
        if (stale_value(i) != 0xa000 + i)
            differs("translation", i, 0xa000 + i, stale_value(i));
    }
    if (*(volatile uint64_t *)(uintptr_t)STALE_LARGE_VA != 0xaaaa)
        differs("translation", STALE_PAGES, 0xaaaa,
                *(volatile uint64_t *)(uintptr_t)STALE_LARGE_VA);
}

/* Values that no fresh machine has, where they do no harm. */
static void set_odd_values(void)
{
    static const struct {
        uint32_t index;
        uint64_t value;
    } msrs[] = {
        {0x174, 0x8},
        {0x175, 0x80001750},
        {0x176, 0x80001760},
        {0x277, 0x0007010600070406},
        {0xc0000081, 0x0023001000000000},
        {0xc0000082, 0xffff800000000082},
        {0xc0000083, 0xffff800000000083},
        {0xc0000084, 0x47700},
        {0xc0000100, 0x7f0000000100},
        {0xc0000101, 0xffff800000000101},
        {0xc0000102, 0x7f0000000102},
        {0xc0000103, 0x1234},
    };
    uint32_t features[4];
    uint64_t cr4 = read_cr4() | CR4_OSFXSR | 0x400 | 0x80; /* OSXMMEXCPT, PGE */

    for (unsigned i = 0; i < ARRAY_SIZE(msrs); i++)
        (void)msr_write(msrs[i].index, msrs[i].value);
    (void)msr_write(KVM_SYSTEM_TIME, (uint64_t)(uintptr_t)kvmclock | 1);
    (void)msr_write(KVM_PV_EOI, (uint64_t)(uintptr_t)&pv_eoi | 1);
    cpuid(1, 0, features);
    if (features[2] & 1u << 26)
        cr4 |= CR4_OSXSAVE;
    if (features[2] & 1u << 17)
        cr4 |= 1u << 17; /* PCIDE */
    cpuid(7, 0, features);
    cr4 |= (features[1] & 1u << 7 ? 1u << 20 : 0) | (features[1] & 1 ? 1u << 16 : 0);
    write_cr4(cr4); /* with SMEP and FSGSBASE */
    write_cr2(0xffff8000deadb000);
    __asm__ volatile("mov %0, %%dr0\n\tmov %1, %%dr1\n\tmov %2, %%dr2\n\tmov %3, %%dr3"
                     :
                     : "r"(0x111000ull), "r"(0x222000ull), "r"(0x333000ull), "r"(0x444000ull));
    __asm__ volatile("mov %0, %%dr6\n\tmov %1, %%dr7" : : "r"(0xffff0ff5ull), "r"(0x400ull));

    set_priority(3);
    store32(LAPIC_GPA + 0xd0, 0x01000000);
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    store32(LAPIC_GPA + 0x3e0, 3);
    store32(LAPIC_GPA + 0x350, 0x10700);
    store32(LAPIC_GPA + 0x320, 0x40000 | 0x31);
    (void)msr_write(0x6e0, 1ull << 60);
    for (uint32_t pin = 3; pin <= 6; pin++) {
        store32(IOAPIC_GPA, 16 + 2 * pin + 1);
        store32(IOAPIC_GPA + 0x10, 0);
        store32(IOAPIC_GPA, 16 + 2 * pin);
        store32(IOAPIC_GPA + 0x10, 0x40 + pin);
    }
    out8(0x21, 0xfb);
    out8(0xa1, 0xff);
}

static void set_vectors(void)
{
    uint8_t *area = now.xsave;

    save_vectors(area);
    for (unsigned i = 0; i < 256; i += 8) /* XMM0 … XMM15 */
        *(uint64_t *)(void *)(area + 160 + i) = 0x0101010101010101 * (i / 8 + 1);
    for (unsigned i = 0; i < 128; i += 16) /* ST0 … ST7 */
        *(uint64_t *)(void *)(area + 32 + i) = 0x8000000000000000 + i;
    area[0] = 0x7f; /* control word: double precision */
    area[1] = 0x02;
    area[4] = 0xff; /* all registers in use */
    area[512] = 7;
    if (saved.control[XCR0] & 4) {
        for (unsigned i = 0; i < 256; i += 8) /* upper halves */
            *(uint64_t *)(void *)(area + 576 + i) = 0x1010101010101010 + i;
        __asm__ volatile("xrstor (%0)" : : "r"(area), "a"(-1), "d"(-1) : "memory");
    } else {
        __asm__ volatile("fxrstor (%0)" : : "r"(area) : "memory");
    }
}

static void record_msr(uint32_t index)
{
    if (index != MSR_TSC && saved.n_msrs < MSRS_MAX &&
        msr_read(index, &saved.msr_value[saved.n_msrs]))
        saved.msr_index[saved.n_msrs++] = index;
}

void check_record(void)
{
    for (unsigned i = 0; i < STALE_PAGES; i++) {
        *(uint64_t *)(void *)stale_pages[0][i] = 0xa000 + i;
        *(uint64_t *)(void *)stale_pages[1][i] = 0xb000 + i;
    }
    for (uint64_t gpa = 0x8000; gpa < LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES);
         gpa += 3 * PAGE) {
        if (gpa + PAGE <= (uint64_t)(uintptr_t)image_start ||
            gpa >= (uint64_t)(uintptr_t)image_end)
            *(volatile uint64_t *)(uintptr_t)(gpa + gpa / PAGE % 512 * 8) = gpa;
    }
    *(volatile uint64_t *)(uintptr_t)STALE_LARGE_GPA = 0xaaaa;
    *(volatile uint64_t *)(uintptr_t)(STALE_LARGE_GPA + 0x200000) = 0xbbbb;
    set_odd_values();
    msr_each(record_msr);
    /* Those that run by themselves are none of ours. */
    for (unsigned i = 0; i < saved.n_msrs; i++) {
        uint64_t value = 0;

        (void)msr_read(saved.msr_index[i], &value);
        if (value != saved.msr_value[i])
            saved.msr_index[i] = MSR_TSC;
    }
    memory_sum = sum_memory();
    read_control(saved.control);
    set_vectors();
    read_all();
    /* Not the odd values that the functions above needed registers for. */
    now.n_msrs = saved.n_msrs;
    memcpy(now.msr_index, saved.msr_index, sizeof(now.msr_index));
    memcpy(now.msr_value, saved.msr_value, sizeof(now.msr_value));
    now.tsc = rdtsc();
    memcpy(&saved, &now, sizeof(saved));
}

static void compare_bytes(const char *what, const void *was, const void *is, uint32_t n)
{
    const uint8_t *a = was, *b = is;

    for (uint32_t i = 0; i < n; i++) {
        if (a[i] != b[i])
            differs(what, i, a[i], b[i]);
    }
}

static void compare_words(const char *what, const uint32_t *was, const uint32_t *is, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (was[i] != is[i])
            differs(what, i, was[i], is[i]);
    }
}

static void compare_msrs(void)
{
    for (unsigned i = 0; i < saved.n_msrs; i++) {
        uint64_t value = 0;

        if (saved.msr_index[i] == MSR_TSC)
            continue;
        if (!msr_read(saved.msr_index[i], &value))
            differs("unreadable MSR", saved.msr_index[i], saved.msr_value[i], 0);
        else if (value != saved.msr_value[i])
            differs("MSR", saved.msr_index[i], saved.msr_value[i], value);
    }
}

void check_compare(bool all)
{
    uint64_t tsc = rdtsc();

    n_lines = 0;
    /* First: nothing here flushes a translation. */
    compare_translations();
    if (all) {
        if (sum_memory() != memory_sum)
            differs("memory", 0, memory_sum, sum_memory());
    } else {
        read_all();
        for (unsigned i = 0; i < N_CONTROL; i++) {
            if (saved.control[i] != now.control[i])
                differs(control_names[i], i, saved.control[i], now.control[i]);
        }
        compare_bytes("GDTR", saved.gdtr, now.gdtr, sizeof(now.gdtr));
        compare_bytes("IDTR", saved.idtr, now.idtr, sizeof(now.idtr));
        for (unsigned i = 0; i < DR_COUNT; i++) {
            if (saved.debug[i] != now.debug[i])
                differs("debug register", i, saved.debug[i], now.debug[i]);
        }
        compare_bytes("XSAVE", saved.xsave, now.xsave, XSAVE_BYTES);
        for (unsigned i = 0; i < ARRAY_SIZE(lapic_registers); i++) {
            if (saved.lapic[i] != now.lapic[i])
                differs("LAPIC", lapic_registers[i], saved.lapic[i], now.lapic[i]);
        }
        compare_words("IOAPIC", saved.ioapic, now.ioapic, IOAPIC_REGS);
        compare_bytes("PIC", saved.pic, now.pic, sizeof(now.pic));
        compare_words("device", saved.devices[0], now.devices[0], 2 * ARRAY_SIZE(devices));
        compare_bytes("serial", saved.serial, now.serial, sizeof(now.serial));
        compare_bytes("page of KVM's", saved.kvm_pages, now.kvm_pages, sizeof(now.kvm_pages));
        compare_msrs();
        if (tsc < saved.tsc || tsc - saved.tsc > 1ull << 38)
            differs("TSC", 0, saved.tsc, tsc);
    }
    print_value("checked ", n_lines);
}
