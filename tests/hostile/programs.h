/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs against the devices of a machine, made from a seed or from a fuzzer's bytes: what a
 * driver does in its order, and everything that it must not. One model for both who run them,
 * the guest of tests/hostile/guest and the target tests/fuzz/devices.c. It stands alone: no C
 * library, no header of the VMM but the layout.
 *
 * A program is gentle or wild. A gentle one breaks no rule that ends a machine: its registers,
 * packets and requests are hostile, its rings are in order. A wild one breaks those too.
 */
#ifndef SKILLVM_TESTS_HOSTILE_PROGRAMS_H
#define SKILLVM_TESTS_HOSTILE_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As machine_devices in vmm/machine.c has them. */
#define PROGRAM_DEVICES 3u
#define PROGRAM_VSOCK   1u
#define PROGRAM_QUEUES  3u
/* Rings and buffers lie in so much memory. */
#define PROGRAM_ARENA_BYTES 0x30000u

enum program_act {
    PROGRAM_LOAD,       /* len bytes at an address, which may be memory or not */
    PROGRAM_STORE,      /* the same, of value */
    PROGRAM_HOST,       /* the host's turn: at says for what, value how much */
    PROGRAM_PORT_IN,    /* len bytes of port at */
    PROGRAM_PORT_OUT,   /* the same, of value */
    PROGRAM_MSR_READ,   /* register at */
    PROGRAM_MSR_WRITE,  /* register at: something that fits it */
    PROGRAM_HYPER_CALL, /* number at, with value */
};

struct program_op {
    enum program_act act;
    uint32_t len; /* 1, 2, 4 or 8 */
    uint64_t at;
    uint64_t value;
};

/* What programs run on. Devices write to [0, low_bytes), to the last 64 KiB of memory, or to
   nothing. */
struct program_world {
    uint64_t ram_bytes;
    uint64_t low_bytes;
    uint64_t arena; /* page aligned, PROGRAM_ARENA_BYTES of the low memory */
    bool has_cpu;   /* ports, MSRs and hypercalls too */
    /* Does it; what a load found, else 0. */
    uint64_t (*run)(void *context, const struct program_op *op);
    void *context;
};

struct program {
    const struct program_world *world;
    const uint8_t *bytes; /* NULL: drawn from state */
    size_t left;
    uint64_t state;
    bool wild;
    uint32_t peer_port; /* of the connection that the host asked for last */
    uint16_t rx_seen;   /* used elements of the receive queue that were looked at */
    struct program_device {
        bool active;
        struct program_queue {
            uint16_t size;
            uint16_t avail; /* the index as stored last */
        } queues[PROGRAM_QUEUES];
    } devices[PROGRAM_DEVICES];
};

/* Nothing is known of the devices yet. world is borrowed. */
void program_init(struct program *p, const struct program_world *world);
/* One program. What the last one left of the devices is what it begins with. */
void program_run_seed(struct program *p, uint64_t seed);
/* Programs until the bytes are used up. */
void program_run_bytes(struct program *p, const uint8_t *bytes, size_t size);

#endif
