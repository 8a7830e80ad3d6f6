/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices may do to a guest's memory and say to the host, worked out from the rings apart
 * from the code that serves them. Used around every access: what the rings name is looked at
 * before it, and what became of memory after it.
 */
#ifndef SKILLVM_TESTS_FUZZ_DEVICES_ORACLE_H
#define SKILLVM_TESTS_FUZZ_DEVICES_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/machine.h"

#define ORACLE_MEMORY_MAX   (512u << 10)
#define ORACLE_RANGES_MAX   20000u
#define ORACLE_PAYLOADS_MAX (16u << 20)

struct oracle {
    struct machine *m;
    uint8_t shadow[ORACLE_MEMORY_MAX] __attribute__((aligned(8))); /* memory as it must be */

    /* Of the access that is about to be made. */
    struct oracle_range {
        uint64_t at, len;
    } writable[ORACLE_RANGES_MAX];
    size_t n_writable;
    bool tangled; /* what devices write may change what their rings name */
    struct oracle_queue {
        bool in_order;    /* everything that waits is what this device takes */
        uint16_t waiting; /* chains; 0 of an index that cannot be */
        uint16_t next_avail, next_used;
    } queues[LAYOUT_DEVICES_MAX][VIRTIO_QUEUES_MAX];
    bool was_active[LAYOUT_DEVICES_MAX];
    size_t n_packets;
    size_t payload_ends[VIRTQUEUE_SIZE_MAX]; /* of each packet that waits, in payloads */

    /* What packets of the connection carried that the host has not been seen to get. */
    uint8_t payloads[ORACLE_PAYLOADS_MAX];
    size_t payloads_at, payloads_len, payloads_start;
    bool payloads_unknown; /* too many, or changed on their way */
};

void oracle_init(struct oracle *o, struct machine *m);
/* The guest wrote its memory. */
void oracle_store(struct oracle *o, uint64_t gpa, const void *data, uint32_t len);
/* The connection to the host is a new one. */
void oracle_forget_stream(struct oracle *o);
/* Devices first … last, by their place, are about to work. */
void oracle_before(struct oracle *o, size_t first, size_t last);
/* They did. Aborts unless they kept to what they may. */
void oracle_after(struct oracle *o, size_t first, size_t last);
/* That was a kick of the disk with this place: it served all there was, or failed at the rule
   that was broken. */
void oracle_check_served(const struct oracle *o, size_t index);
/* The host got these bytes. Aborts unless packets of the guest's carried them. */
void oracle_received(struct oracle *o, const uint8_t *data, size_t len);
/* Device index was reset by its driver. Aborts unless it is as at first. */
void oracle_check_reset(struct oracle *o, size_t index);

#endif
