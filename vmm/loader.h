/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an ELF64 kernel (an uncompressed vmlinux) into guest memory. Every field of the file is
 * checked against the file and the memory before it is used; nothing outside the segments is
 * read. It must never write below the architecture's lowest kernel address.
 */
#ifndef SKILLVM_VMM_LOADER_H
#define SKILLVM_VMM_LOADER_H

#include "base/err.h"
#include "vmm/arch/arch.h"
#include "vmm/memory.h"

#define LOADER_SEGMENTS_MAX 32u

/*
 * Reads the kernel from kernel_fd (borrowed, only read at offsets) into memory. The first
 * limit_gpa bytes of memory may be used. 0 with *ret_entry_gpa set to where the vCPU
 * starts, or -errno: -ENOEXEC for a
 * file that is not such a kernel, -ENOMEM when it does not fit.
 */
int loader_load_kernel(int kernel_fd, struct memory *memory, uint64_t limit_gpa,
                       gpa_t *ret_entry_gpa, struct err *err);

#endif
