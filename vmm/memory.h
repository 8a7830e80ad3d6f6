/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory: one contiguous range from guest physical address 0. The only way from a guest
 * address to a host pointer is the checked pair memory_readable() and memory_writable().
 * It must never hand out a pointer for a range that is not wholly inside the guest's memory.
 *
 * The guest may write to its memory at any moment: whoever decides on guest data copies it once
 * and looks at the copy only. memory_read() and the loads do that.
 */
#ifndef SKILLVM_VMM_MEMORY_H
#define SKILLVM_VMM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A guest physical address. Never cast it to a pointer. */
typedef uint64_t gpa_t;

struct memory {
    uint8_t *host; /* borrowed: the mapping belongs to whoever called memory_init() */
    uint64_t size; /* bytes; valid addresses are 0 … size - 1 */
};

/* Describes size bytes mapped at host. The mapping must outlive m. */
void memory_init(struct memory *m, void *host, uint64_t size);

/* True when all of [gpa, gpa + len) is guest memory. len 0 is inside only if gpa <= size. */
bool memory_contains(const struct memory *m, gpa_t gpa, uint64_t len);

/*
 * The checked pair. A pointer to exactly len bytes of guest memory at gpa, or NULL when any of
 * them is outside. Borrowed from the mapping; never use it beyond len.
 */
const void *memory_readable(const struct memory *m, gpa_t gpa, uint64_t len);
void *memory_writable(const struct memory *m, gpa_t gpa, uint64_t len);

/* Copies len bytes out of guest memory, once. 0, or -EFAULT with out untouched. */
int memory_read(const struct memory *m, gpa_t gpa, void *out, size_t len);
/* Copies len bytes into guest memory. 0, or -EFAULT with guest memory untouched. */
int memory_write(const struct memory *m, gpa_t gpa, const void *data, size_t len);

/*
 * Little-endian 16-bit accesses for ring indices, each a single access of the CPU. gpa must be
 * even. The load is an acquire: what the guest wrote before it stored the value is visible
 * after it. The store is a release: what was written before is visible to the guest that sees
 * it. 0 or -EFAULT.
 */
int memory_load_u16(const struct memory *m, gpa_t gpa, uint16_t *ret_value);
int memory_store_u16(const struct memory *m, gpa_t gpa, uint16_t value);

#endif
