/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves a loaded kernel to other virtual addresses (KASLR). A compressed kernel's boot stub
 * does this for itself; into the file of an uncompressed one kernel-config/build.sh puts what
 * the stub would read: the places that hold an address, as the kernel's own tool
 * (arch/x86/tools/relocs) lists them. Each is a little-endian u32, the lower half of the
 * place's own address; a zero begins each of three lists: of 64-bit addresses, of 32-bit
 * distances to a place that stays where it is, and of 32-bit addresses.
 *
 * Every place is checked against the loaded kernel before it is written to; physical addresses
 * stay as they are.
 */
#ifndef SKILLVM_VMM_RELOCATIONS_H
#define SKILLVM_VMM_RELOCATIONS_H

#include <stdint.h>

#include "base/err.h"
#include "vmm/loader.h"
#include "vmm/memory.h"

/*
 * Adds move to all addresses in kernel. Reads the lists from kernel_fd (borrowed, only read at
 * offsets). 0 or -errno: -ENOEXEC for lists that are damaged or lead out of the kernel, which
 * is then spoilt.
 */
int relocations_apply(int kernel_fd, const struct loader_kernel *kernel, struct memory *memory,
                      uint64_t move, struct err *err);

#endif
