/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the programs of tests/hostile/programs.h on the machine that this guest has.
 */
#include "tests/hostile/guest/guest.h"
#include "tests/hostile/programs.h"

/* Below the image, and nothing else of the guest's. */
#define LOW_BYTES 0x1000000ull
#define ARENA     0x900000ull

#define CPUID_EBX_AMD 0x68747541u /* "Auth" */

static uint64_t load(uint64_t at, uint32_t len)
{
    switch (len) {
    case 1:
        return *(volatile uint8_t *)(uintptr_t)at;
    case 2:
        return *(volatile uint16_t *)(uintptr_t)at;
    case 4:
        return load32(at);
    default:
        return *(volatile uint64_t *)(uintptr_t)at;
    }
}

static void store(uint64_t at, uint32_t len, uint64_t value)
{
    switch (len) {
    case 1:
        store8(at, (uint8_t)value);
        return;
    case 2:
        *(volatile uint16_t *)(uintptr_t)at = (uint16_t)value;
        return;
    case 4:
        store32(at, (uint32_t)value);
        return;
    default:
        *(volatile uint64_t *)(uintptr_t)at = value;
        return;
    }
}

static void read_port(uint16_t port, uint32_t len)
{
    uint32_t v;

    if (len == 1)
        (void)in8(port);
    else if (len == 2)
        __asm__ volatile("inw %1, %w0" : "=a"(v) : "d"(port));
    else
        __asm__ volatile("inl %1, %0" : "=a"(v) : "d"(port));
}

static void write_port(uint16_t port, uint32_t len, uint32_t value)
{
    if (len == 1)
        out8(port, (uint8_t)value);
    else if (len == 2)
        __asm__ volatile("outw %w0, %1" : : "a"(value), "d"(port));
    else
        __asm__ volatile("outl %0, %1" : : "a"(value), "d"(port));
}

/* An address of the field, and no interrupt but a plain one to itself. */
static void hyper_call(void *arg)
{
    const struct program_op *op = arg;
    uint32_t vendor[4];
    uint64_t number = op->at;

    cpuid(0, 0, vendor);
    if (vendor[1] == CPUID_EBX_AMD)
        __asm__ volatile("vmmcall"
                         : "+a"(number)
                         : "b"(random_address()), "c"(op->value & 1), "d"(0),
                           "S"(op->value >> 8 & 0xff)
                         : "memory");
    else
        __asm__ volatile("vmcall"
                         : "+a"(number)
                         : "b"(random_address()), "c"(op->value & 1), "d"(0),
                           "S"(op->value >> 8 & 0xff)
                         : "memory");
}

static uint64_t run(void *context, const struct program_op *op)
{
    uint64_t value = 0;

    (void)context;
    switch (op->act) {
    case PROGRAM_LOAD:
        return load(op->at, op->len);
    case PROGRAM_STORE:
        store(op->at, op->len, op->value);
        break;
    case PROGRAM_HOST:
        /* It does what it does; here there is time for it. */
        for (uint64_t n = op->value % 512; n > 0; n--)
            __asm__ volatile("pause");
        break;
    case PROGRAM_PORT_IN:
        read_port((uint16_t)op->at, op->len);
        break;
    case PROGRAM_PORT_OUT:
        write_port((uint16_t)op->at, op->len, (uint32_t)op->value);
        break;
    case PROGRAM_MSR_READ:
        (void)msr_read((uint32_t)op->at, &value);
        break;
    case PROGRAM_MSR_WRITE:
        msr_attack_one((uint32_t)op->at);
        break;
    case PROGRAM_HYPER_CALL:
        (void)try_call(hyper_call, (void *)(uintptr_t)op);
        break;
    }
    return 0;
}

struct one {
    struct program *program;
    uint64_t seed;
};

static void run_one(void *arg)
{
    const struct one *one = arg;

    program_run_seed(one->program, one->seed);
}

_Noreturn void programs_run(const struct programs_command *command)
{
    static const struct program_world world = {
        .ram_bytes = LAYOUT_RAM_MIN_BYTES,
        .low_bytes = LOW_BYTES,
        .arena = ARENA,
        .has_cpu = true,
        .run = run,
    };
    static struct program program;

    gentle = command->gentle;
    program_init(&program, &world);
    for (uint32_t i = 0; i < command->n; i++) {
        struct one one = {&program, command->first_seed + i};

        /* The serial port may be anything after the last one. */
        store8(LAYOUT_SERIAL_BASE + 3, 3);
        store8(LAYOUT_SERIAL_BASE + 1, 0);
        print("@");
        print_hex(one.seed, 2);
        print("\n");
        random_seed(one.seed);
        (void)try_call(run_one, &one);
    }
    store8(LAYOUT_SERIAL_BASE + 3, 3);
    end_spinning();
}
