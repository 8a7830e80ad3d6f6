/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest can leave behind in memory, and at addresses where there is none.
 */
#include "tests/hostile/guest/guest.h"

#define RAM LAYOUT_RAM_MIN_BYTES

static void fill(uint64_t from, uint64_t to, uint64_t value)
{
    uint64_t words = (to - from) / 8;

    __asm__ volatile("rep stosq" : "+D"(from), "+c"(words) : "a"(value) : "memory");
}

static void all(void)
{
    fill(0, (uint64_t)(uintptr_t)image_start, random_next());
    fill((uint64_t)(uintptr_t)image_end, RAM, random_below(2) ? 0 : random_next());
}

static void read_all(void)
{
    for (uint64_t at = 0; at < RAM; at += PAGE)
        (void)load32(at + random_below(1024) * 4);
}

/* One byte here and there, some of them what was there before. */
static void sparse(void)
{
    for (unsigned i = 0; i < 400; i++) {
        uint64_t at = random_address();

        if (random_below(4) == 0)
            store8(at, *(volatile uint8_t *)(uintptr_t)at);
        else
            store8(at, (uint8_t)random_next());
    }
}

/* One page of each 2 MiB in which nothing of the image is, and all of one. */
static void blocks(void)
{
    uint64_t block = random_below(11) << 21;

    for (uint64_t at = 0; at + 0x200000 <= (uint64_t)(uintptr_t)image_start; at += 0x200000)
        store32(at + random_below(512) * PAGE, (uint32_t)random_next());
    fill(block, block + 0x200000, random_next());
}

static void zeroes(void)
{
    fill(0, (uint64_t)(uintptr_t)image_start, 0);
    fill((uint64_t)(uintptr_t)image_end, LAYOUT_VMGENID_GPA(RAM), 0);
}

static void generation(void)
{
    fill_random((void *)(uintptr_t)LAYOUT_VMGENID_GPA(RAM), PAGE);
    fill_random((void *)(uintptr_t)(LAYOUT_VMGENID_GPA(RAM) - PAGE), PAGE);
}

/* Where no memory is: beyond RAM, around the devices, and where KVM keeps pages of its own. */
static void beyond(void)
{
    static const uint64_t places[] = {
        RAM,
        RAM + 0x100000,
        0xc0000000,
        LAYOUT_BLK_BASE - PAGE,
        LAYOUT_SERIAL_BASE + PAGE,
        IOAPIC_GPA + PAGE,
        LAPIC_GPA + PAGE,
        0xfed00000,
        0xfffff000,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        uint64_t at = places[i] + random_below(PAGE - 8);

        *(volatile uint64_t *)(uintptr_t)at = random_next();
        (void)*(volatile uint64_t *)(uintptr_t)at;
        store8(at, 1);
    }
    for (unsigned i = 0; i < KVM_PAGES; i++)
        *(volatile uint64_t *)(uintptr_t)(KVM_PAGES_GPA + i * PAGE + KVM_PAGES_OFFSET) =
            random_next();
    /* Across the end of memory and of a device's window. */
    *(volatile uint64_t *)(uintptr_t)(RAM - 4) = random_next();
    *(volatile uint64_t *)(uintptr_t)(LAYOUT_BLK_BASE + PAGE - 4) = random_next();
}

/* All but the registers that start a queue and a device, whose rules would end the machine, and
   the serial port's first ones, by which the guest speaks. */
static bool is_for_all(uint64_t at)
{
    const uint64_t offset = at % LAYOUT_DEVICE_SIZE;

    return at < LAYOUT_SERIAL_BASE ? offset / 4 != 0x44 / 4 && offset / 4 != 0x70 / 4
                                   : at >= LAYOUT_SERIAL_BASE + 8;
}

/* Each address of devices' windows, with devices or none, and of the page behind them; of one
   in so many: all of them take seconds, and there are many runs. */
#define SLICES 32u

static void windows(void)
{
    const uint64_t first = LAYOUT_DEVICE_BASE(0), end = LAYOUT_SERIAL_BASE + 2 * PAGE;

    for (uint64_t at = first + random_below(SLICES); at < end; at += SLICES) {
        (void)*(volatile uint8_t *)(uintptr_t)at;
        if (is_for_all(at))
            store8(at, (uint8_t)random_next());
        if (at % 4 != 0)
            continue;
        (void)load32(at);
        if (is_for_all(at))
            store32(at, (uint32_t)random_next());
    }
}

/* Entries of page tables that are in use, changed where nobody looks. */
static void page_tables(void)
{
    for (unsigned i = 2; i < 512; i++)
        pml4[i] = random_next();
    for (uint64_t gpa = RAM; gpa < 0xc0000000; gpa += 0x200000)
        *trap_large_page(gpa) = random_next() & 0xffe00083;
    for (unsigned i = 2; i < 512; i++)
        stale_directory[i] = random_next();
}

/* Memory used as page tables by nested paging's dirty tracking: writes, reads, writes again. */
static void again(void)
{
    for (unsigned n = 0; n < 3; n++) {
        for (unsigned i = 0; i < 64; i++)
            store32(0x200000 + i * PAGE, n);
        for (unsigned i = 0; i < 64; i++)
            (void)load32(0x200000 + i * PAGE + 8);
    }
}

const struct attack attacks_memory[] = {
    {"memory-all", "r", all},        {"memory-read", "r", read_all},
    {"memory-sparse", "r", sparse},  {"memory-blocks", "r", blocks},
    {"memory-zeroes", "r", zeroes},  {"memory-generation", "r", generation},
    {"memory-beyond", "rm", beyond}, {"memory-tables", "rl", page_tables},
    {"memory-again", "r", again},    {"memory-windows", "ra", windows},
};
const unsigned n_attacks_memory = ARRAY_SIZE(attacks_memory);
