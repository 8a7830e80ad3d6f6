/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/private_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "vmm/pagemap_scan.h"

#define PAGES_PER_BLOCK (PRIVATE_PAGES_BLOCK / LAYOUT_PAGE_SIZE)

/* Bits of an entry of the page map. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE    (UINT64_C(1) << 61)

/* What one scan can tell; it goes on from there. */
#define REGIONS_MAX 128u

/* Guest memory that does not stay, [from, to), and is still to be dropped. */
struct page_run {
    uint64_t from;
    uint64_t to;
};

static bool bit_get(const uint64_t *bits, uint64_t n)
{
    return bits[n / 64] >> (n % 64) & 1;
}

static void bit_set(uint64_t *bits, uint64_t n)
{
    bits[n / 64] |= UINT64_C(1) << (n % 64);
}

static bool entry_is_private(uint64_t entry)
{
    return (entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) != 0 && (entry & ENTRY_FILE) == 0;
}

int private_pages_open_map(int proc_fd, struct err *err)
{
    int fd = openat(proc_fd, "self/pagemap", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, errno, "/proc/self/pagemap") : fd;
}

/*
 * Lists private pages, as addresses of this process, from *at on, and moves *at to where it
 * stopped. The number of regions or -errno.
 */
static int scan(const struct private_pages *p, uint64_t *at,
                struct scan_region regions[REGIONS_MAX])
{
    struct scan_arg arg = {
        .size = sizeof(arg),
        .start = *at,
        .end = (uintptr_t)p->memory.host + p->memory.size,
        .vec = (uintptr_t)regions,
        .vec_len = REGIONS_MAX,
        .category_inverted = SCAN_IS_FILE,
        .category_mask = SCAN_IS_FILE,
        .category_anyof_mask = SCAN_IS_PRESENT | SCAN_IS_SWAPPED,
    };
    int n = ioctl(p->pagemap_fd, SCAN_REQUEST, &arg);

    if (n < 0)
        return -errno;
    if (n > (int)REGIONS_MAX || arg.walk_end <= *at)
        return -EIO;
    *at = arg.walk_end;
    return n;
}

int private_pages_init(struct private_pages *p, const struct memory *memory, int memory_fd,
                       int pagemap_fd, struct err *err)
{
    struct scan_region regions[REGIONS_MAX];
    uint64_t at = (uintptr_t)memory->host;
    void *clean;

    if (memory->size % PRIVATE_PAGES_BLOCK != 0)
        return err_set(err, EINVAL, "guest memory of %" PRIu64 " bytes cannot be reset",
                       memory->size);
    clean = mmap(NULL, memory->size, PROT_READ, MAP_SHARED, memory_fd, 0);
    if (clean == MAP_FAILED)
        return err_set_errno(err, errno, "mapping the snapshot's memory");
    p->memory = *memory;
    p->clean = clean;
    p->pagemap_fd = pagemap_fd;
    p->can_scan = scan(p, &at, regions) >= 0;
    return 0;
}

static int read_entries(const struct private_pages *p, uint64_t block,
                        uint64_t entries[PAGES_PER_BLOCK], struct err *err)
{
    const size_t len = PAGES_PER_BLOCK * sizeof(entries[0]);
    uint64_t page =
        ((uintptr_t)p->memory.host + block * PRIVATE_PAGES_BLOCK) / LAYOUT_PAGE_SIZE;
    ssize_t n = fd_pread_full(p->pagemap_fd, entries, len, page * sizeof(entries[0]));

    if (n != (ssize_t)len)
        return err_set_errno(err, n < 0 ? (int)-n : EIO, "reading the page map");
    return 0;
}

static int drop(const struct private_pages *p, struct page_run run, struct err *err)
{
    if (run.to > run.from &&
        madvise(p->memory.host + run.from, run.to - run.from, MADV_DONTNEED) < 0)
        return err_set_errno(err, errno, "dropping guest memory");
    return 0;
}

/* Decides whether a private page stays, and notes it. */
static bool keep(struct private_pages *p, uint64_t page)
{
    if (bit_get(p->kept, page))
        return true;
    if (p->n_looks == PRIVATE_PAGES_LOOKS && !bit_get(p->present, page / PAGES_PER_BLOCK))
        return false;
    if (p->n_kept >= PRIVATE_PAGES_KEPT_MAX)
        return false;
    bit_set(p->kept, page);
    p->n_kept++;
    return true;
}

/* Puts a private page back. One that does not stay joins the run, or begins a new one. */
static int put_back(struct private_pages *p, uint64_t at, struct page_run *run, struct err *err)
{
    int r = 0;

    if (keep(p, at / LAYOUT_PAGE_SIZE)) {
        memcpy(p->memory.host + at, p->clean + at, LAYOUT_PAGE_SIZE);
        return 0;
    }
    if (at != run->to) {
        r = drop(p, *run, err);
        run->from = at;
    }
    run->to = at + LAYOUT_PAGE_SIZE;
    return r;
}

static int reset_by_scan(struct private_pages *p, uint64_t *pages, struct err *err)
{
    const uint64_t host = (uintptr_t)p->memory.host;
    struct scan_region regions[REGIONS_MAX];
    struct page_run run = {0, 0};
    uint64_t next = host;
    int r = 0;

    while (r >= 0 && next < host + p->memory.size) {
        int n = scan(p, &next, regions);

        if (n < 0)
            return err_set_errno(err, -n, "scanning the page map");
        for (int i = 0; i < n; i++) {
            for (uint64_t at = regions[i].start; r >= 0 && at < regions[i].end;
                 at += LAYOUT_PAGE_SIZE) {
                (*pages)++;
                if (p->n_looks < PRIVATE_PAGES_LOOKS)
                    bit_set(p->present, (at - host) / PRIVATE_PAGES_BLOCK);
                r = put_back(p, at - host, &run, err);
            }
        }
    }
    return r < 0 ? r : drop(p, run, err);
}

static int reset_block(struct private_pages *p, uint64_t block, uint64_t *pages,
                       struct err *err)
{
    uint64_t entries[PAGES_PER_BLOCK];
    struct page_run run = {0, 0};
    uint64_t any = 0;
    int r = read_entries(p, block, entries, err);

    if (r < 0)
        return r;
    /* Most blocks are empty, and this loop is short. */
    for (uint64_t i = 0; i < PAGES_PER_BLOCK; i++)
        any |= entries[i];
    if ((any & (ENTRY_PRESENT | ENTRY_SWAPPED)) == 0)
        return 0;
    bit_set(p->present, block);
    for (uint64_t i = 0; r >= 0 && i < PAGES_PER_BLOCK; i++) {
        if (!entry_is_private(entries[i]))
            continue;
        (*pages)++;
        r = put_back(p, block * PRIVATE_PAGES_BLOCK + i * LAYOUT_PAGE_SIZE, &run, err);
    }
    return r < 0 ? r : drop(p, run, err);
}

static int reset_by_map(struct private_pages *p, uint64_t *pages, struct err *err)
{
    uint64_t n = p->memory.size / PRIVATE_PAGES_BLOCK;
    uint64_t block = 0;
    int r = 0;

    while (r >= 0 && block < n) {
        uint64_t end = block;

        /* Nothing was here when all was looked at: what is here now is dropped unseen. */
        while (p->n_looks == PRIVATE_PAGES_LOOKS && end < n && !bit_get(p->present, end))
            end++;
        if (end > block) {
            r = drop(p,
                     (struct page_run){block * PRIVATE_PAGES_BLOCK, end * PRIVATE_PAGES_BLOCK},
                     err);
            block = end;
            continue;
        }
        r = reset_block(p, block, pages, err);
        block++;
    }
    return r;
}

int private_pages_reset(struct private_pages *p, uint64_t *ret_pages, struct err *err)
{
    uint64_t pages = 0;
    int r = p->can_scan ? reset_by_scan(p, &pages, err) : reset_by_map(p, &pages, err);

    if (r < 0)
        return r;
    if (p->n_looks < PRIVATE_PAGES_LOOKS)
        p->n_looks++;
    *ret_pages = pages;
    return 0;
}

static int compare(const struct private_pages *p, uint64_t page, struct err *err)
{
    uint64_t at = page * LAYOUT_PAGE_SIZE;

    if (memcmp(p->memory.host + at, p->clean + at, LAYOUT_PAGE_SIZE) == 0)
        return 0;
    while (p->memory.host[at] == p->clean[at])
        at++;
    return err_set(err, EILSEQ,
                   "memory at %#" PRIx64 " is %#04x after the reset, %#04x in the snapshot", at,
                   p->memory.host[at], p->clean[at]);
}

int private_pages_verify(const struct private_pages *p, bool whole, struct err *err)
{
    uint64_t entries[PAGES_PER_BLOCK];
    int r = 0;

    for (uint64_t block = 0; r >= 0 && block < p->memory.size / PRIVATE_PAGES_BLOCK; block++) {
        r = read_entries(p, block, entries, err);
        for (uint64_t i = 0; r >= 0 && i < PAGES_PER_BLOCK; i++) {
            if (whole || entry_is_private(entries[i]))
                r = compare(p, block * PAGES_PER_BLOCK + i, err);
        }
    }
    return r < 0 ? r : 0;
}
