/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model-specific registers: which a guest can read and write, and attacks by them.
 */
#include "tests/hostile/guest/guest.h"

#define MSR_TSC       0x10u
#define MSR_APIC_BASE 0x1bu
/* x2APIC: interrupt command and self-IPI. What they do is for attacks of their own. */
#define MSR_X2APIC_FIRST    0x800u
#define MSR_X2APIC_LAST     0x8ffu
#define MSR_X2APIC_ICR      0x830u
#define MSR_X2APIC_SELF_IPI 0x83fu

#define APIC_ENABLED 0x800ull
#define APIC_X2APIC  0x400ull

struct access {
    uint32_t index;
    uint64_t value;
};

static void do_read(void *arg)
{
    struct access *a = arg;
    uint32_t low, high;

    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(a->index));
    a->value = (uint64_t)high << 32 | low;
}

static void do_write(void *arg)
{
    const struct access *a = arg;

    __asm__ volatile("wrmsr"
                     :
                     : "c"(a->index), "a"((uint32_t)a->value), "d"((uint32_t)(a->value >> 32))
                     : "memory");
}

bool msr_read(uint32_t index, uint64_t *ret_value)
{
    struct access a = {index, 0};

    if (try_call(do_read, &a) != 0)
        return false;
    *ret_value = a.value;
    return true;
}

bool msr_write(uint32_t index, uint64_t value)
{
    struct access a = {index, value};

    return try_call(do_write, &a) == 0;
}

void msr_each(void (*f)(uint32_t index))
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0, 0x1fff},
        {0x40000000, 0x400001ff},
        {0x4b564d00, 0x4b564d0f},
        {0xc0000000, 0xc0001fff},
        {0xc0010000, 0xc001ffff},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(ranges); i++) {
        for (uint32_t index = ranges[i].first; index <= ranges[i].last; index++)
            f(index);
    }
}

/* Bits that a write changed and a read showed, tried one by one and all together. */
static uint64_t find_changeable(uint32_t index, uint64_t old, bool *ret_accepted)
{
    uint64_t changeable = 0;

    *ret_accepted = false;
    for (unsigned i = 0; i < 68; i++) {
        uint64_t value = i < 64
                             ? old ^ 1ull << i
                             : (const uint64_t[]){0, ~0ull, 0x0606060606060606, ~old}[i - 64];
        uint64_t now = old;

        if (index == MSR_APIC_BASE && (value & APIC_X2APIC))
            continue;
        if (!msr_write(index, value))
            continue;
        *ret_accepted = true;
        if (msr_read(index, &now))
            changeable |= now ^ old;
        (void)msr_write(index, old);
    }
    return changeable;
}

static void report_one(uint32_t index)
{
    uint64_t old = 0, again = 0, changeable;
    bool accepted = false;

    if (index == MSR_X2APIC_ICR || index == MSR_X2APIC_SELF_IPI)
        return;
    if (!msr_read(index, &old)) {
        static const uint64_t values[] = {0, 1, ~0ull, 0x20};

        for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
            if (!msr_write(index, values[i]))
                continue;
            print("msr ");
            print_hex(index, 8);
            print_value(" write-only takes ", values[i]);
        }
        return;
    }
    (void)msr_read(index, &again);
    changeable = find_changeable(index, old, &accepted);
    print("msr ");
    print_hex(index, 8);
    print(" old ");
    print_hex(old, 16);
    print(" changeable ");
    print_hex(changeable, 16);
    print(changeable ? "" : accepted ? " ignored" : " read-only");
    print(again != old ? " varies" : "");
    (void)msr_read(index, &again);
    if (again != old)
        print_value(" left ", again);
    else
        print("\n");
}

void msr_report(void)
{
    uint64_t base;

    msr_each(report_one);
    if (!msr_read(MSR_APIC_BASE, &base) || !msr_write(MSR_APIC_BASE, base | APIC_X2APIC)) {
        print("msr no x2apic\n");
        return;
    }
    print("msr x2apic mode\n");
    for (uint32_t index = MSR_X2APIC_FIRST; index <= MSR_X2APIC_LAST; index++)
        report_one(index);
    (void)msr_write(MSR_APIC_BASE, base & ~APIC_ENABLED);
    (void)msr_write(MSR_APIC_BASE, base);
}

/* Attacks. */

#define KVM_WALL_CLOCK_OLD  0x11u
#define KVM_SYSTEM_TIME_OLD 0x12u
#define KVM_WALL_CLOCK      0x4b564d00u
#define KVM_SYSTEM_TIME     0x4b564d01u
#define KVM_ASYNC_PF        0x4b564d02u
#define KVM_STEAL_TIME      0x4b564d03u
#define KVM_PV_EOI          0x4b564d04u
#define KVM_ASYNC_PF_INT    0x4b564d06u
#define MSR_TSC_DEADLINE    0x6e0u

/* One that makes KVM write guest memory must not make it write the guest itself. */
static bool points_at_memory(uint32_t index)
{
    return index == KVM_WALL_CLOCK_OLD || index == KVM_SYSTEM_TIME_OLD ||
           (index >= KVM_WALL_CLOCK && index <= KVM_PV_EOI);
}

static uint64_t random_value(uint32_t index)
{
    uint64_t old = 0;

    if (points_at_memory(index))
        return random_address() | random_below(16);
    (void)msr_read(index, &old);
    switch (random_below(6)) {
    case 0:
        return 0;
    case 1:
        return ~0ull;
    case 2:
        return random_next();
    case 3:
        return 0x0101010101010101ull * random_below(8);
    default:
        return old ^ 1ull << random_below(64);
    }
}

/* One in so many indices: all of them take seconds, and there are many runs. */
#define SLICES 16u
static uint64_t slice;

void msr_attack_one(uint32_t index)
{
    if (index != MSR_X2APIC_ICR && index != MSR_X2APIC_SELF_IPI)
        (void)msr_write(index, random_value(index));
}

static void attack_slice(uint32_t index)
{
    if (index % SLICES == slice)
        msr_attack_one(index);
}

void msr_attack_all(void)
{
    slice = random_below(SLICES);
    msr_each(attack_slice);
}

/* Those that something is known to be behind, many times. */
void msr_attack_known(void)
{
    static const struct {
        uint32_t first, last;
    } known[] = {
        {0x10, 0x12},
        {0x1b, 0x1b},
        {0x3a, 0x3b},
        {0x48, 0x49},
        {0x79, 0x79},
        {0x8b, 0x8b},
        {0x9e, 0x9e},
        {0xc1, 0xc8},
        {0xce, 0xce},
        {0xe1, 0xe1},
        {0x10a, 0x10b},
        {0x122, 0x122},
        {0x140, 0x140},
        {0x174, 0x17b},
        {0x186, 0x18d},
        {0x1a0, 0x1a1},
        {0x1c4, 0x1c5},
        {0x1d9, 0x1dd},
        {0x1fc, 0x1fc},
        {0x200, 0x20f},
        {0x250, 0x26f},
        {0x277, 0x277},
        {0x2ff, 0x2ff},
        {0x309, 0x30c},
        {0x345, 0x345},
        {0x38d, 0x390},
        {0x3f1, 0x3f2},
        {0x400, 0x47f},
        {0x480, 0x491},
        {0x4c1, 0x4c8},
        {0x4d0, 0x4d0},
        {0x560, 0x587},
        {0x600, 0x600},
        {0x6a0, 0x6a8},
        {0x6e0, 0x6e1},
        {0xd90, 0xd90},
        {0xda0, 0xda0},
        {0x40000000, 0x40000003},
        {0x40000010, 0x40000023},
        {0x40000070, 0x400000b7},
        {0x40000100, 0x40000108},
        {0x4b564d00, 0x4b564d07},
        {0xc0000080, 0xc0000084},
        {0xc0000100, 0xc0000104},
        {0xc0000300, 0xc0000302},
        {0xc0010000, 0xc001001f},
        {0xc0010030, 0xc0010035},
        {0xc0010055, 0xc0010064},
        {0xc0010110, 0xc0010120},
        {0xc0010130, 0xc0010131},
        {0xc0010140, 0xc0010141},
        {0xc0010200, 0xc001020b},
        {0xc0010230, 0xc001023b},
        {0xc0011004, 0xc0011005},
        {0xc0011019, 0xc001103d},
    };

    /* Machine checks can be written freely once this bit of HWCR is set. */
    if (random_below(2))
        (void)msr_write(0xc0010015, 1 << 18);
    for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
        for (uint32_t index = known[i].first; index <= known[i].last; index++)
            msr_attack_one(index);
    }
}

static void self_interrupt(void)
{
    for (unsigned i = 0; i < 4; i++) {
        store32(LAPIC_GPA + 0x300, 0x40000 | (uint32_t)(0x30 + random_below(0xc0)));
        __asm__ volatile("sti\n\tnop\n\tcli" : : : "memory");
    }
}

/* KVM remembers a write of the second, and no reset takes that back. */
static void expect_refusal(uint32_t index)
{
    if (msr_write(index, random_address() | 1))
        lost("writable MSR", index);
}

/* What KVM writes to the guest's memory by itself, at odd places. */
void msr_attack_paravirtual(void)
{
    expect_refusal(KVM_WALL_CLOCK_OLD);
    expect_refusal(KVM_SYSTEM_TIME_OLD);
    for (unsigned i = 0; i < 4; i++) {
        (void)msr_write(KVM_WALL_CLOCK, random_address());
        (void)msr_write(KVM_SYSTEM_TIME, random_address() | 1);
        (void)msr_write(KVM_STEAL_TIME, (random_address() & ~63ull) | 1);
        (void)msr_write(KVM_ASYNC_PF_INT, 0x20 + random_below(0xe0));
        (void)msr_write(KVM_ASYNC_PF, (random_address() & ~63ull) | 1 | random_below(16));
        (void)msr_write(KVM_PV_EOI, (random_address() & ~3ull) | 1);
        self_interrupt();
    }
    /* A page that crosses into the next, and the last one of memory. */
    (void)msr_write(KVM_SYSTEM_TIME, (random_page() + PAGE - 16) | 1);
    (void)msr_write(KVM_STEAL_TIME, (LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES) + 0xfc0) | 1);
}

void msr_attack_clock(void)
{
    (void)msr_write(MSR_TSC, random_next() >> random_below(64));
    (void)msr_write(0x3b, random_next() >> random_below(64));
    (void)msr_write(MSR_TSC, 0);
    store32(LAPIC_GPA + 0x320, 0x40000 | 0x31);
    (void)msr_write(MSR_TSC_DEADLINE, rdtsc() + random_below(1 << 24));
    (void)msr_write(MSR_TSC, rdtsc() + (1ull << 40));
}
