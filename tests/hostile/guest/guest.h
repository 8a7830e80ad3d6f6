/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest of our own instead of Linux, for the verified resets: it comes to a quiet point where
 * it is saved, and each time it is put back there it looks at its own state, says what differs,
 * and does as much harm as it can. It stands alone: no C library, no header of the VMM but the
 * layout. What it says on the serial port is read by tests/hostile/reset_driver.py, and where
 * there is none by tests/hostile/jailed.py, from its memory:
 *
 *   attack NAME FLAGS   at boot, one line for each: r returns, f is final, m may end the
 *                       machine, x must end it, a runs only first, l runs only last
 *   ready               the quiet point is reached; only a new generation ID wakes it
 *   resumed ID          woken; ID is the new generation ID's first half
 *   differs TEXT        something is not as it was at the quiet point
 *   checked N           the look is over; N things differ
 *   run NAME            this attack begins
 *   @NN                 the program begins whose seed ends with these two digits
 *   end                 the last state of this run is reached, or reached next
 *   lost TEXT           the guest itself failed: a defect of this program
 */
#ifndef SKILLVM_TESTS_HOSTILE_GUEST_H
#define SKILLVM_TESTS_HOSTILE_GUEST_H

#include "vmm/layout.h"

#define SEL_CODE64    0x08
#define SEL_DATA      0x10
#define SEL_CODE32    0x18
#define SEL_CODE16    0x20
#define SEL_DATA16    0x28
#define SEL_USER_DATA 0x30
#define SEL_USER64    0x38
#define SEL_USER32    0x40
#define SEL_RING1     0x48
#define SEL_RING1DATA 0x50
#define SEL_TSS       0x58
#define SEL_LDT       0x68
#define GDT_ENTRIES   15

/* Real-mode code runs from here. */
#define LOW_GPA 0x2000

/* As in vmm/layout.h, in a form that the assembler takes. */
#define SERIAL_GPA 0xd0010000
#define LAPIC_GPA  0xfee00000
#define IOAPIC_GPA 0xfec00000

/* Virtual addresses whose mapping the stale-translation attack changes. */
#define STALE_VA        0x8000000000
#define STALE_PAGES     8
#define STALE_LARGE_VA  0x8000200000
#define STALE_LARGE_GPA 0x400000

/*
 * No memory is there, but KVM may keep pages of its own behind them, for real mode on Intel
 * CPUs: nothing that a guest writes there may be there after a reset.
 */
#define KVM_PAGES_GPA    0xfffbc000
#define KVM_PAGES        4
#define KVM_PAGES_OFFSET 0x7f8

/* Where enter_mode() ends. */
#define MODE_COMPAT      1
#define MODE_PROTECTED   2
#define MODE_PAE         3
#define MODE_PSE         4
#define MODE_PROTECTED16 5
#define MODE_REAL        6
#define MODE_V86         7

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(SERIAL_GPA == LAYOUT_SERIAL_BASE, "the serial port is elsewhere");

/* As machine_devices in vmm/machine.c has them. */
#define LAYOUT_BLK_BASE   LAYOUT_DEVICE_BASE(0)
#define LAYOUT_VSOCK_BASE LAYOUT_DEVICE_BASE(1)
#define LAYOUT_DISK_BASE  LAYOUT_DEVICE_BASE(2)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PAGE          4096ull

/* Memory that holds nothing of the guest's: what attacks may write. */
#define FIELD_START 0x1000ull
extern uint8_t image_start[], image_end[];

struct trap_frame {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
    uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

/* start.S */
/* Calls f(arg). 0, or the vector + 1 of the exception that ended it. */
unsigned try_call(void (*f)(void *arg), void *arg);
/* Waits until *generation is not old any more. ret_registers: see start.S. */
void idle_until_resumed(const volatile uint64_t *generation, uint64_t old,
                        uint64_t *ret_registers);
_Noreturn void enter_mode(unsigned mode);
_Noreturn void enter_ring(uint64_t cs, uint64_t ss, uint64_t rflags, uint64_t rip,
                          uint64_t rsp);
extern uint8_t trap_stubs[], low_code[], low_code_end[], user_spin[];
extern uint8_t wipe_code[], wipe_code_end[];
extern uint64_t pml4[512];
extern uint64_t gdt[GDT_ENTRIES];

/* trap.c */
/* Descriptor tables, page tables, handlers: everything of the boot loader's is left behind. */
void trap_init(void);
/* What the handlers do with the next of them, besides counting. */
enum trap_mood {
    TRAP_RETURN, /* interrupts return; exceptions end a try_call() */
    TRAP_UNWIND, /* interrupts end a try_call() too */
    TRAP_KEEP,   /* interrupts return without having been ended */
    TRAP_AGAIN,  /* exceptions return as well, to the instruction that caused them */
    TRAP_STAY,   /* interrupts say "end" and never return */
};
extern volatile enum trap_mood trap_mood;
extern volatile uint64_t trap_counts[256];
/* The entry that maps the 2 MiB around an address one to one. */
uint64_t *trap_large_page(uint64_t gpa);
extern uint64_t stale_table[512], stale_directory[512];
extern uint8_t stale_pages[2][STALE_PAGES][4096];

/* lib.c */
void print(const char *text);
void print_hex(uint64_t value, unsigned digits);
/* text, the value, end of line */
void print_value(const char *text, uint64_t value);
uint64_t random_next(void);
void random_seed(uint64_t seed);
uint64_t random_below(uint64_t limit);
/* An address of the field: page, and any. */
uint64_t random_page(void);
uint64_t random_address(void);
void fill_random(void *to, size_t bytes);
void *memset(void *to, int value, size_t n);
void *memcpy(void *to, const void *from, size_t n);
int memcmp(const void *a, const void *b, size_t n);
_Noreturn void spin(void);
/* Says "end" and spins. */
_Noreturn void end_spinning(void);
_Noreturn void lost(const char *text, uint64_t value);

/*
 * QEMU 7.2, which emulates AMD-V, crashes when a guest enables a hardware breakpoint, writes
 * CR8 while an interrupt waits for its window, or raises an x87 exception without CR0.NE; and
 * what a guest writes to XCR0 stays there for the host. The driver says whether that is what
 * runs below; until then it is taken for granted.
 */
extern bool gentle;
/* CR8, by the local APIC's register where that must be. */
void set_priority(uint64_t priority);

/* msrs.c */
bool msr_read(uint32_t index, uint64_t *ret_value);
bool msr_write(uint32_t index, uint64_t value);
/* Writes by chance what may do harm there, but nothing that the guest does not come back from.
 */
void msr_attack_one(uint32_t index);
/* Calls f for each index that a guest may try, in their order. */
void msr_each(void (*f)(uint32_t index));
void msr_report(void);
void msr_attack_all(void);
void msr_attack_known(void);
void msr_attack_paravirtual(void);
void msr_attack_clock(void);

/* check.c */
/* Sets odd values everywhere, so that a machine which is merely fresh differs; remembers all.
 */
void check_record(void);
/* Says what differs. all: every byte of memory too. */
void check_compare(bool all);

/* virtio.c */
void blk_start(void);
/* Reads the disk's sector (512 bytes) with the queue that blk_start() made. */
void blk_read(uint64_t sector, void *to);
struct vsock_command {
    uint32_t n_attacks;
    uint16_t check_all;
    uint16_t gentle;
    uint64_t seed;
    uint32_t attacks[12];
};
void vsock_start(void);
/* Handles what came. */
void vsock_poll(void);
/* The connection was open and the host closed it. */
bool vsock_was_closed(void);
/* True once for each command that came. */
bool vsock_take_command(struct vsock_command *ret_command);
/* Sends bytes without asking for credit. */
void vsock_send(const void *data, uint32_t len);
/* Handles what came, and sends back as many bytes. */
void vsock_echo(void);
void vsock_send_packet(uint16_t op, uint32_t len, uint32_t flags, uint32_t dst_port,
                       uint64_t dst_cid);
void virtio_attack_status(void);
void virtio_attack_rings(void);
void virtio_attack_registers(void);
void virtio_attack_blk(void);
void virtio_attack_kick(void);
void vsock_attack_flood(void);
void vsock_attack_packets(void);
void vsock_attack_half(void);

/* run_programs.c */
#define PROGRAMS_MAGIC 0x736d6172676f7270ull /* "programs" */
/* What the driver wrote to the first sector of the disk, if it begins so. */
struct programs_command {
    uint64_t magic;
    uint64_t first_seed;
    uint32_t n;
    uint32_t gentle;
};
/* Runs n programs of tests/hostile/programs.h, one seed after the other, and spins. */
_Noreturn void programs_run(const struct programs_command *command);

/* attacks_*.c */
struct attack {
    const char *name;
    const char *flags; /* as printed at boot */
    void (*run)(void);
};
extern const struct attack attacks_cpu[], attacks_chips[], attacks_memory[], attacks_ends[];
extern const unsigned n_attacks_cpu, n_attacks_chips, n_attacks_memory, n_attacks_ends;

/* Instructions. */
static inline uint32_t load32(uint64_t gpa)
{
    uint32_t v;

    __asm__ volatile("movl (%1), %0" : "=r"(v) : "r"(gpa) : "memory");
    return v;
}
static inline void store32(uint64_t gpa, uint32_t v)
{
    __asm__ volatile("movl %0, (%1)" : : "r"(v), "r"(gpa) : "memory");
}
static inline void store8(uint64_t gpa, uint8_t v)
{
    __asm__ volatile("movb %0, (%1)" : : "q"(v), "r"(gpa) : "memory");
}
static inline void out8(uint16_t port, uint8_t v)
{
    __asm__ volatile("outb %0, %1" : : "a"(v), "d"(port) : "memory");
}
static inline uint8_t in8(uint16_t port)
{
    uint8_t v;

    __asm__ volatile("inb %1, %0" : "=a"(v) : "d"(port) : "memory");
    return v;
}
#define REGISTER(name)                                                                         \
    static inline uint64_t read_##name(void)                                                   \
    {                                                                                          \
        uint64_t v;                                                                            \
        __asm__ volatile("mov %%" #name ", %0" : "=r"(v) : : "memory");                        \
        return v;                                                                              \
    }                                                                                          \
    static inline void write_##name(uint64_t v)                                                \
    {                                                                                          \
        __asm__ volatile("mov %0, %%" #name : : "r"(v) : "memory");                            \
    }
REGISTER(cr0)
REGISTER(cr2)
REGISTER(cr3)
REGISTER(cr4)
REGISTER(cr8)
#undef REGISTER
static inline void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(subleaf));
}
static inline uint64_t rdtsc(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

#endif
#endif
