/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages that a guest writes soon after a restore: recorded once in a machine made for it,
 * then made private and writable up front in every other, so that each costs one fault in place
 * of a read, a write and a copy; or none, where KVM can be told of them (Linux 6.11). Only a
 * hint: it must never change what the guest sees.
 *
 *   0   8 bytes  "SKVMWSET"
 *   8   u32      WORKING_SET_VERSION
 *   12  u32      number of ranges
 *   16           ranges, ascending and disjoint: u32 first page, u32 pages
 *   end u32      CRC-32 of all before
 */
#ifndef SKILLVM_VMM_WORKING_SET_H
#define SKILLVM_VMM_WORKING_SET_H

#include "base/err.h"
#include "vmm/kvm.h"
#include "vmm/memory.h"

#define WORKING_SET_VERSION    1u
#define WORKING_SET_RANGES_MAX 16384u
#define WORKING_SET_SIZE_MAX   (20u + 8u * WORKING_SET_RANGES_MAX)

/*
 * Reads the file (borrowed, only read at offsets) and populates its ranges of memory, which is
 * a private mapping, and then the nested page table of the vCPU, whose registers are loaded. 0,
 * also where the kernel cannot; -EINVAL for a damaged file or one made for more memory.
 */
int working_set_apply(int fd, const struct kvm *kvm, const struct memory *memory,
                      struct err *err);

/*
 * Writes to fd, an empty file, which pages the guest wrote since its memory was registered with
 * a dirty log. 0 or -errno.
 */
int working_set_record(const struct kvm *kvm, const struct memory *memory, int fd,
                       struct err *err);

/* The ranges of a bitmap of n_pages pages as a file in out. Its length, or -E2BIG. */
int64_t working_set_encode(const uint64_t *bitmap, uint64_t n_pages, void *out, size_t cap);
/*
 * Checks a file for n_pages pages of memory and hands its ranges to visit, which may be NULL.
 * 0 or -EINVAL with nothing visited.
 */
int working_set_decode(const void *data, size_t len, uint64_t n_pages,
                       void (*visit)(void *context, uint64_t first_page, uint64_t pages),
                       void *context, struct err *err);

#endif
