/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest can leave behind in its interrupt chips, on its ports and in its devices.
 */
#include "tests/hostile/guest/guest.h"

#define MSR_APIC_BASE 0x1bu
#define APIC_BASE_BSP 0x900ull
#define APIC_X2APIC   0x400ull

#define ICR_SELF 0x40000u

static void set_ioapic(uint32_t reg, uint32_t value)
{
    store32(IOAPIC_GPA, reg);
    store32(IOAPIC_GPA + 0x10, value);
}

/* Not INIT, SMI and start-up: those are attacks of their own. */
static uint32_t without_delivery(uint32_t v)
{
    return v & ~0x700u;
}

static void lapic_registers(void)
{
    for (unsigned i = 0; i < 200; i++) {
        uint32_t at = (uint32_t)random_below(0x40) * 16;
        uint32_t v = (uint32_t)random_next();

        if (at == 0x300)
            v = without_delivery(v);
        /* Local pins: no SMI and INIT by them either. */
        if (at >= 0x320 && at <= 0x370)
            v = random_below(2) ? without_delivery(v) | 0x400 : without_delivery(v);
        store32(LAPIC_GPA + at + (random_below(16) == 0 ? random_below(16) & 12 : 0), v);
    }
}

static void lapic_timers(void)
{
    uint32_t mode = (uint32_t)random_below(3);

    store32(LAPIC_GPA + 0xf0, 0x1ff);
    store32(LAPIC_GPA + 0x3e0, (uint32_t)random_below(16));
    store32(LAPIC_GPA + 0x320, mode << 17 | 0x31);
    if (mode == 2)
        (void)msr_write(0x6e0, rdtsc() + random_below(1 << 22));
    else
        store32(LAPIC_GPA + 0x380, (uint32_t)(1 + random_below(1 << 24)));
}

/* Every vector pending, none taken. */
static void lapic_pending(void)
{
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    for (uint32_t v = 16; v < 256; v++)
        store32(LAPIC_GPA + 0x300, ICR_SELF | v);
    store32(LAPIC_GPA + 0x300, ICR_SELF | 0x400); /* NMI */
    set_priority(random_below(16));
}

/* Vectors in service, in handlers that never ended. */
static void lapic_in_service(void)
{
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    set_priority(0);
    trap_mood = TRAP_KEEP;
    for (uint32_t v = 0x40; v < 0x100; v += 0x20) {
        store32(LAPIC_GPA + 0x300, ICR_SELF | v);
        __asm__ volatile("sti\n\tnop\n\tnop\n\tcli" : : : "memory");
    }
    trap_mood = TRAP_RETURN;
}

static void lapic_off(void)
{
    (void)msr_write(MSR_APIC_BASE, LAPIC_GPA | 0x100);
    if (random_below(2))
        (void)msr_write(MSR_APIC_BASE, LAPIC_GPA | APIC_BASE_BSP);
}

/* Elsewhere, and what is where it was: the page behind it must not remember. */
static void lapic_moved(void)
{
    uint64_t base = random_below(2) ? random_page() : 0xfed00000;

    (void)msr_write(MSR_APIC_BASE, base | APIC_BASE_BSP);
    for (unsigned i = 0; i < 1024; i += 4)
        store32(LAPIC_GPA + i, 0x66666666);
    store32(LAPIC_GPA + 0xff0, 0x66666666);
}

static void lapic_x2apic(void)
{
    if (!msr_write(MSR_APIC_BASE, LAPIC_GPA | APIC_BASE_BSP | APIC_X2APIC))
        return;
    for (uint32_t index = 0x800; index < 0x840; index++) {
        if (index != 0x830 && index != 0x83f)
            (void)msr_write(index, without_delivery((uint32_t)random_next()));
    }
    (void)msr_write(0x83f, 0x40 + random_below(0xc0));
    for (unsigned i = 0; i < 1024; i += 4)
        store32(LAPIC_GPA + i, 0x77777777);
    if (random_below(4) == 0)
        (void)msr_write(MSR_APIC_BASE, LAPIC_GPA | 0x100);
}

static void ioapic(void)
{
    set_ioapic(0, (uint32_t)random_next());
    for (uint32_t pin = 0; pin < 24; pin++) {
        set_ioapic(16 + 2 * pin + 1, random_below(2) ? 0 : (uint32_t)random_next());
        set_ioapic(16 + 2 * pin, without_delivery((uint32_t)random_below(1 << 17)));
    }
    store32(IOAPIC_GPA, (uint32_t)random_below(256));
}

/* Level interrupts of a device that were taken and never ended: remote IRR stays. */
static void ioapic_level(void)
{
    store32(LAPIC_GPA + 0xf0, 0x1ff);
    set_priority(0);
    for (uint32_t pin = 0; pin < 24; pin++) {
        set_ioapic(16 + 2 * pin + 1, 0);
        set_ioapic(16 + 2 * pin, 0x8000 | (0x60 + pin));
    }
    store8(LAYOUT_SERIAL_BASE + 1, 2); /* transmitter empty: an interrupt at once */
    trap_mood = TRAP_KEEP;
    __asm__ volatile("sti\n\tnop\n\tnop\n\tcli" : : : "memory");
    trap_mood = TRAP_RETURN;
    store8(LAYOUT_SERIAL_BASE + 1, 0);
}

static void pic(void)
{
    static const uint16_t ports[] = {0x20, 0x21, 0xa0, 0xa1, 0x4d0, 0x4d1};

    /* Stops anywhere in an initialisation. */
    for (uint64_t i = random_below(40); i > 0; i--)
        out8(ports[random_below(ARRAY_SIZE(ports))], (uint8_t)random_next());
    out8(0x20, (uint8_t)(0x10 | random_below(16)));
    for (uint64_t i = random_below(4); i > 0; i--)
        out8(0x21, (uint8_t)random_next());
    store32(LAPIC_GPA + 0x350, (uint32_t)random_below(2) * 0x10000 | 0x700);
}

static void ports(void)
{
    for (unsigned i = 0; i < 150; i++) {
        uint16_t port = (uint16_t)random_below(random_below(2) ? 0x10000 : 0x500);
        uint32_t v = (uint32_t)random_next();

        switch (random_below(6)) {
        case 0:
            __asm__ volatile("outl %0, %1" : : "a"(v), "d"(port));
            break;
        case 1:
            __asm__ volatile("outw %w0, %1" : : "a"(v), "d"(port));
            break;
        case 2:
            __asm__ volatile("inl %1, %0" : "=a"(v) : "d"(port));
            break;
        case 3:
            (void)in8(port);
            break;
        case 4: {
            uint64_t at = random_page(), n = random_below(64);

            __asm__ volatile("rep insb" : "+D"(at), "+c"(n) : "d"(port) : "memory");
            break;
        }
        default:
            out8(port, (uint8_t)v);
            break;
        }
    }
}

/* Each port, of one in so many: all of them take seconds, and there are many runs. */
#define SLICES 32u

static void ports_all(void)
{
    for (uint32_t port = (uint32_t)random_below(SLICES); port < 0x10000; port += SLICES) {
        (void)in8((uint16_t)port);
        out8((uint16_t)port, (uint8_t)random_next());
    }
}

static void serial(void)
{
    for (unsigned i = 0; i < 16; i++)
        store8(LAYOUT_SERIAL_BASE + 1 + random_below(7), (uint8_t)random_next());
    /* The data register is a divisor otherwise, and nothing could be said any more. */
    store8(LAYOUT_SERIAL_BASE + 3, 0x80);
    store8(LAYOUT_SERIAL_BASE, (uint8_t)random_next());
    store8(LAYOUT_SERIAL_BASE + 3, 3);
}

const struct attack attacks_chips[] = {
    {"lapic-registers", "r", lapic_registers},
    {"lapic-timers", "r", lapic_timers},
    {"lapic-pending", "r", lapic_pending},
    {"lapic-in-service", "r", lapic_in_service},
    {"lapic-off", "r", lapic_off},
    {"lapic-moved", "r", lapic_moved},
    {"lapic-x2apic", "r", lapic_x2apic},
    {"ioapic", "r", ioapic},
    {"ioapic-level", "r", ioapic_level},
    {"pic", "r", pic},
    {"ports", "r", ports},
    {"ports-all", "ra", ports_all},
    {"serial", "r", serial},
    {"virtio-status", "rm", virtio_attack_status},
    {"virtio-rings", "rm", virtio_attack_rings},
    {"virtio-registers", "rm", virtio_attack_registers},
    {"virtio-blk", "r", virtio_attack_blk},
    {"virtio-kick", "f", virtio_attack_kick},
    {"vsock-flood", "r", vsock_attack_flood},
    {"vsock-packets", "rm", vsock_attack_packets},
    {"vsock-half", "r", vsock_attack_half},
};
const unsigned n_attacks_chips = ARRAY_SIZE(attacks_chips);
