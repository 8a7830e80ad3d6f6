/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest/guest.h"

#define PRESENT  1ull
#define WRITE    2ull
#define USER     4ull
#define LARGE    0x80ull
#define GLOBAL   0x100ull
#define NO_EXEC  (1ull << 63)
#define EFER     0xc0000080u
#define EFER_NXE 0x800ull

#define STACK_BYTES 8192u
/* Interrupt stacks: exceptions, NMI, interrupts, debug, double fault. */
#define N_STACKS 5u

#define STUB_BYTES 16u

struct gate {
    uint16_t offset_low, selector;
    uint8_t stack, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
};
struct tss {
    uint32_t reserved0;
    uint64_t rsp[3], reserved1, ist[7], reserved2;
    uint16_t reserved3, io_map;
} __attribute__((packed));
struct table {
    uint16_t limit;
    uint64_t base;
} __attribute__((packed));

uint64_t gdt[GDT_ENTRIES];
static struct gate idt[256];
static struct tss tss;
static uint8_t stacks[N_STACKS][STACK_BYTES] __attribute__((aligned(16)));
uint64_t pml4[512] __attribute__((aligned(4096)));
static uint64_t pdpt[512] __attribute__((aligned(4096)));
static uint64_t pd[4][512] __attribute__((aligned(4096)));
static uint64_t stale_pdpt[512] __attribute__((aligned(4096)));
uint64_t stale_directory[512] __attribute__((aligned(4096)));
uint64_t stale_table[512] __attribute__((aligned(4096)));
uint8_t stale_pages[2][STALE_PAGES][4096] __attribute__((aligned(4096)));
/* For enter_mode(). */
uint64_t pae_pointers[4] __attribute__((aligned(4096)));
uint32_t pse_directory[1024] __attribute__((aligned(4096)));

volatile enum trap_mood trap_mood;
volatile uint64_t trap_counts[256];
extern uint64_t try_stack;
extern uint8_t try_return[];
void trap(struct trap_frame *f);

static uint64_t gpa_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* Back to where try_call() was called. */
static void unwind(struct trap_frame *f)
{
    if (f->vector >= 32)
        store32(LAPIC_GPA + 0xb0, 0);
    f->rsp = try_stack;
    f->rip = gpa_of(try_return);
    f->rax = f->vector + 1;
    f->cs = SEL_CODE64;
    f->ss = SEL_DATA;
    f->rflags = 2;
}

void trap(struct trap_frame *f)
{
    unsigned vector = (unsigned)f->vector;

    trap_counts[vector]++;
    if (vector >= 32 || vector == 2) {
        if (trap_mood == TRAP_UNWIND && try_stack != 0) {
            unwind(f);
            return;
        }
        if (trap_mood == TRAP_STAY)
            end_spinning();
        if (vector >= 32 && trap_mood != TRAP_KEEP)
            store32(LAPIC_GPA + 0xb0, 0);
        return;
    }
    /* Debug and breakpoint: only counted. */
    if (vector == 1 || vector == 3)
        return;
    if (trap_mood == TRAP_AGAIN)
        return;
    if (try_stack != 0) {
        unwind(f);
        return;
    }
    print("lost trap ");
    print_hex(vector, 2);
    print_value(" error ", f->error);
    print_value("lost rip ", f->rip);
    print_value("lost cr2 ", read_cr2());
    spin();
}

static void make_page_tables(void)
{
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < 512; k++)
            pd[i][k] = (uint64_t)(i * 512 + k) << 21 | PRESENT | WRITE | LARGE;
        pdpt[i] = gpa_of(pd[i]) | PRESENT | WRITE | USER;
        pae_pointers[i] = gpa_of(pd[i]) | PRESENT;
    }
    for (unsigned i = 0; i < 1024; i++)
        pse_directory[i] = (uint32_t)(i << 22 | PRESENT | WRITE | USER | LARGE);
    /* One page of each kind. */
    for (unsigned i = 0; i < STALE_PAGES; i++)
        stale_table[i] = gpa_of(stale_pages[0][i]) | PRESENT | WRITE | (i & 1 ? GLOBAL : 0) |
                         (i & 2 ? USER : 0) | (i & 4 ? NO_EXEC : 0);
    stale_directory[0] = gpa_of(stale_table) | PRESENT | WRITE | USER;
    stale_directory[1] = STALE_LARGE_GPA | PRESENT | WRITE | LARGE | GLOBAL;
    stale_pdpt[0] = gpa_of(stale_directory) | PRESENT | WRITE | USER;
    pml4[0] = gpa_of(pdpt) | PRESENT | WRITE | USER;
    pml4[1] = gpa_of(stale_pdpt) | PRESENT | WRITE | USER;
}

static void make_tables(void)
{
    static const uint8_t stack_of[32] = {[1] = 4, [2] = 2, [8] = 5};
    uint64_t base = gpa_of(&tss);
    struct table gdtr = {sizeof(gdt) - 1, gpa_of(gdt)};
    struct table idtr = {sizeof(idt) - 1, gpa_of(idt)};

    gdt[SEL_CODE64 / 8] = 0x00af9b000000ffff;
    gdt[SEL_DATA / 8] = 0x00cf93000000ffff;
    gdt[SEL_CODE32 / 8] = 0x00cf9b000000ffff;
    gdt[SEL_CODE16 / 8] = 0x00009b000000ffff | LOW_GPA << 16;
    gdt[SEL_DATA16 / 8] = 0x000093000000ffff | LOW_GPA << 16;
    gdt[SEL_USER_DATA / 8] = 0x00cff3000000ffff;
    gdt[SEL_USER64 / 8] = 0x00affb000000ffff;
    gdt[SEL_USER32 / 8] = 0x00cffb000000ffff;
    gdt[SEL_RING1 / 8] = 0x00cfbb000000ffff;
    gdt[SEL_RING1DATA / 8] = 0x00cfb3000000ffff;
    gdt[SEL_TSS / 8] =
        (sizeof(tss) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    gdt[SEL_TSS / 8 + 1] = base >> 32;
    gdt[SEL_LDT / 8] =
        0x7f | (base & 0xffffff) << 16 | 0x82ull << 40 | (base >> 24 & 0xff) << 56;
    for (unsigned i = 0; i < N_STACKS; i++)
        tss.ist[i] = gpa_of(stacks[i] + STACK_BYTES);
    tss.rsp[0] = tss.ist[0];
    tss.rsp[1] = tss.ist[0];
    tss.io_map = sizeof(tss);
    for (unsigned i = 0; i < 256; i++) {
        uint64_t stub = gpa_of(trap_stubs) + i * STUB_BYTES;

        idt[i] = (struct gate){
            .offset_low = (uint16_t)stub,
            .offset_middle = (uint16_t)(stub >> 16),
            .offset_high = (uint32_t)(stub >> 32),
            .selector = SEL_CODE64,
            .stack = i >= 32       ? 3
                     : stack_of[i] ? stack_of[i]
                                   : 1,
            .type = i == 3 ? 0xee : 0x8e,
        };
    }
    __asm__ volatile("lgdt %0\n\t"
                     "lidt %1\n\t"
                     "mov %2, %%ds\n\tmov %2, %%es\n\tmov %2, %%ss\n\t"
                     "mov %3, %%fs\n\tmov %3, %%gs\n\t"
                     "ltr %w4\n\t"
                     "lldt %w5\n\t"
                     "pushq %6\n\t"
                     "leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "lretq\n"
                     "1:"
                     :
                     : "m"(gdtr), "m"(idtr), "r"(SEL_DATA), "r"(0), "r"(SEL_TSS), "r"(SEL_LDT),
                       "i"(SEL_CODE64)
                     : "rax", "memory");
}

uint64_t *trap_large_page(uint64_t gpa)
{
    return &pd[gpa >> 30][gpa >> 21 & 511];
}

void trap_init(void)
{
    make_page_tables();
    if (!msr_write(EFER, 0x100 | 0x400 | EFER_NXE | 1))
        lost("EFER", 0);
    write_cr3(gpa_of(pml4));
    make_tables();
}
