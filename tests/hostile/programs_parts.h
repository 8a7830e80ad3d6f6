/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs.c makes its steps of: choices, accesses, and a driver's handling of queues.
 */
#ifndef SKILLVM_TESTS_HOSTILE_PROGRAMS_PARTS_H
#define SKILLVM_TESTS_HOSTILE_PROGRAMS_PARTS_H

#include "tests/hostile/programs.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* Registers of a window (VIRTIO 1.2, section 4.2.2). */
#define REG_FEATURES     0x20u
#define REG_FEATURES_SEL 0x24u
#define REG_QUEUE_SEL    0x30u
#define REG_QUEUE_NUM    0x38u
#define REG_QUEUE_READY  0x44u
#define REG_NOTIFY       0x50u
#define REG_ACK          0x64u
#define REG_STATUS       0x70u
#define REG_DESC         0x80u
#define REG_AVAIL        0x90u
#define REG_USED         0xa0u
#define REG_END          0x110u

#define STATUS_DRIVER_OK   4u
#define STATUS_NEEDS_RESET 64u

#define DESC_NEXT  1u
#define DESC_WRITE 2u

#define RX    0u
#define TX    1u
#define EVENT 2u

/* A number below n, which is positive; a byte, two or four of a fuzzer's. */
uint32_t program_below(struct program *p, uint32_t n);
uint64_t program_any(struct program *p);
static inline bool program_one_in(struct program *p, uint32_t n)
{
    return program_below(p, n) == 0;
}

uint64_t program_load(struct program *p, uint64_t at, uint32_t len);
void program_store(struct program *p, uint64_t at, uint32_t len, uint64_t value);
/* A register of device's, four bytes. */
uint32_t program_get(struct program *p, unsigned device, uint32_t offset);
void program_set(struct program *p, unsigned device, uint32_t offset, uint32_t value);

/* Where queue's rings lie, and buffers: one of 64 bytes for each slot, and 16 pages, of which
   the first half is for devices to read. */
uint64_t program_desc(const struct program *p, unsigned device, unsigned queue);
uint64_t program_avail(const struct program *p, unsigned device, unsigned queue);
uint64_t program_used(const struct program *p, unsigned device, unsigned queue);
uint64_t program_header(const struct program *p, unsigned device, unsigned slot);
uint64_t program_data(const struct program *p, unsigned slot);

/* Any address, with care for none; and one at which len bytes are memory, for the device to
   read or to write. */
uint64_t program_address(struct program *p);
uint64_t program_memory(struct program *p, uint32_t len, bool writable);
/* Up to 64 KiB, or 2 GiB and more. */
uint32_t program_length(struct program *p);

/* The device from its reset to DRIVER_OK; a wild driver leaves steps out and gets some wrong.
 */
void program_set_up(struct program *p, unsigned device);
/* True when the device is active, by a set-up if need be. */
bool program_is_up(struct program *p, unsigned device);
/* Chains that the device has not returned. */
uint16_t program_waiting(struct program *p, unsigned device, unsigned queue);
void program_describe(struct program *p, unsigned device, unsigned queue, unsigned slot,
                      uint64_t addr, uint32_t len, uint16_t flags, uint16_t next);
void program_offer(struct program *p, unsigned device, unsigned queue, uint16_t head);
void program_kick(struct program *p, unsigned device, unsigned queue);

#endif
