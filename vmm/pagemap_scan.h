/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PAGEMAP_SCAN, the request to a page map that lists pages by what they are (Linux 6.7; headers
 * may be older).
 *
 * Source: Documentation/admin-guide/mm/pagemap.rst.
 */
#ifndef SKILLVM_VMM_PAGEMAP_SCAN_H
#define SKILLVM_VMM_PAGEMAP_SCAN_H

#include <stdint.h>
#include <sys/ioctl.h>

#define SCAN_IS_FILE    (UINT64_C(1) << 2)
#define SCAN_IS_PRESENT (UINT64_C(1) << 3)
#define SCAN_IS_SWAPPED (UINT64_C(1) << 4)

struct scan_region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};

struct scan_arg {
    uint64_t size;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end; /* out: where the scan stopped */
    uint64_t vec;
    uint64_t vec_len;
    uint64_t max_pages;
    uint64_t category_inverted;
    uint64_t category_mask;
    uint64_t category_anyof_mask;
    uint64_t return_mask;
};
_Static_assert(sizeof(struct scan_arg) == 96, "struct pm_scan_arg");

#define SCAN_REQUEST _IOWR('f', 16, struct scan_arg)

#endif
