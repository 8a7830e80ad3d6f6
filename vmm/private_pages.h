/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts guest memory back to the file that it is a private mapping of. A page that differs from
 * the file is private to this process, and /proc/self/pagemap tells which ones are: present and
 * not a file's, or swapped out. The kernel lists them (PAGEMAP_SCAN, Linux 6.7), or else every
 * block of memory is either looked at or dropped whole, so that nothing is missed. It must
 * never take a page for clean on any other ground, and never keep more than
 * PRIVATE_PAGES_KEPT_MAX of them.
 *
 * Sources: Documentation/admin-guide/mm/pagemap.rst, madvise(2).
 */
#ifndef SKILLVM_VMM_PRIVATE_PAGES_H
#define SKILLVM_VMM_PRIVATE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "vmm/layout.h"
#include "vmm/memory.h"

/*
 * Pages that stay private, with the file's content, from one reset to the next: the next
 * execution finds them ready to write. What an execution touches beyond that is given back.
 */
#define PRIVATE_PAGES_KEPT_MAX 4096u

/* What one look at the page map covers. */
#define PRIVATE_PAGES_BLOCK (2u << 20)
/*
 * So many resets note the blocks in which they find something: the one after the guest's first
 * run, which warmed it, and the one after that of its first skill. Later, nothing stays in
 * other blocks, and where the map is read they are dropped unseen: reading it whole is slow.
 */
#define PRIVATE_PAGES_LOOKS 2u

#define PRIVATE_PAGES_N_PAGES  (LAYOUT_RAM_MAX_BYTES / LAYOUT_PAGE_SIZE)
#define PRIVATE_PAGES_N_BLOCKS (LAYOUT_RAM_MAX_BYTES / PRIVATE_PAGES_BLOCK)

struct private_pages {
    struct memory memory;
    const uint8_t *clean; /* the file, mapped to be read; owned */
    int pagemap_fd;       /* borrowed */
    bool can_scan;        /* the kernel has PAGEMAP_SCAN */
    uint32_t n_looks;     /* how many resets noted blocks */
    uint32_t n_kept;
    uint64_t kept[PRIVATE_PAGES_N_PAGES / 64];     /* a bit for each page */
    uint64_t present[PRIVATE_PAGES_N_BLOCKS / 64]; /* blocks in which something was found */
};

/* Opens the page map of this process, before it makes itself undumpable. proc_fd is /proc. The
   descriptor or -errno. */
int private_pages_open_map(int proc_fd, struct err *err);

/*
 * Describes memory, a private mapping of all of memory_fd, whose size is a multiple of
 * PRIVATE_PAGES_BLOCK. The descriptors are borrowed; only pagemap_fd is used later. p is large
 * and was zeroed. 0 or -errno.
 */
int private_pages_init(struct private_pages *p, const struct memory *memory, int memory_fd,
                       int pagemap_fd, struct err *err);

/*
 * Gives every page the content of the file. Nobody else may write to the memory meanwhile.
 * Allocates nothing. *ret_pages: how many were private. 0 or -errno, with the memory then in
 * between.
 */
int private_pages_reset(struct private_pages *p, uint64_t *ret_pages, struct err *err);

/*
 * Compares with the file: what the page map says was changed, or, where whole, every byte.
 * 0; -EILSEQ with the first difference in err; -errno.
 */
int private_pages_verify(const struct private_pages *p, bool whole, struct err *err);

#endif
