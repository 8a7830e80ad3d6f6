/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an ELF64 kernel (an uncompressed vmlinux) into guest memory. Every field of the file is
 * checked against the file and the memory before it is used; nothing outside the headers and
 * the segments is read. It must never write below the architecture's lowest kernel address.
 */
#ifndef SKILLVM_VMM_LOADER_H
#define SKILLVM_VMM_LOADER_H

#include "base/err.h"
#include "vmm/arch/arch.h"
#include "vmm/memory.h"

#define LOADER_SEGMENTS_MAX 32u
#define LOADER_SECTIONS_MAX 256u

/* Where kernel-config/build.sh puts what vmm/relocations.h reads. */
#define LOADER_RELOCATIONS_SECTION ".skillvm.relocs"

/* A kernel in guest memory. */
struct loader_kernel {
    gpa_t entry_gpa; /* where the vCPU starts */
    gpa_t gpa;       /* of its first byte */
    uint64_t va;     /* the virtual address that its first byte is linked for */
    uint64_t bytes;
    uint64_t relocations_offset; /* in the file */
    uint64_t relocations_bytes;  /* 0: it has none and stays where it is linked */
};

/*
 * Reads the kernel from kernel_fd (borrowed, only read at offsets) into memory. The first
 * limit_gpa bytes of memory may be used. 0 with *ret_kernel, or -errno: -ENOEXEC for a file
 * that is not such a kernel, -ENOMEM when it does not fit.
 */
int loader_load_kernel(int kernel_fd, struct memory *memory, uint64_t limit_gpa,
                       struct loader_kernel *ret_kernel, struct err *err);

#endif
