/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/working_set.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fd.h"
#include "vmm/layout.h"

/* Since Linux 5.14; older C libraries do not name it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HEADER_SIZE  16u
#define BITMAP_WORDS (LAYOUT_RAM_MAX_BYTES / LAYOUT_PAGE_SIZE / 64)

static const char magic[8] = {'S', 'K', 'V', 'M', 'W', 'S', 'E', 'T'};

/* Static, because nothing may be allocated when the guest has run. Untouched pages are free. */
static uint8_t file[WORKING_SET_SIZE_MAX];
static uint64_t dirty[BITMAP_WORDS];

static bool is_set(const uint64_t *bitmap, uint64_t page)
{
    return bitmap[page / 64] >> (page % 64) & 1;
}

int64_t working_set_encode(const uint64_t *bitmap, uint64_t n_pages, void *out, size_t cap)
{
    struct bytes_writer w = bytes_writer_init(out, cap);
    struct bytes_writer head;
    uint32_t n_ranges = 0;
    uint64_t page = 0;

    bytes_put(&w, magic, sizeof(magic));
    bytes_put_u32(&w, WORKING_SET_VERSION);
    bytes_put_u32(&w, 0);
    while (page < n_pages) {
        uint64_t first = page;

        while (page < n_pages && is_set(bitmap, page))
            page++;
        if (page > first) {
            bytes_put_u32(&w, (uint32_t)first);
            bytes_put_u32(&w, (uint32_t)(page - first));
            n_ranges++;
        } else {
            page++;
        }
    }
    if (w.bad || n_ranges > WORKING_SET_RANGES_MAX)
        return -E2BIG;
    head = bytes_writer_init((uint8_t *)out + 12, 4);
    bytes_put_u32(&head, n_ranges);
    bytes_put_u32(&w, crc32_update(0, out, w.len));
    return w.bad ? -E2BIG : (int64_t)w.len;
}

int working_set_decode(const void *data, size_t len, uint64_t n_pages,
                       void (*visit)(void *context, uint64_t first_page, uint64_t pages),
                       void *context, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(data, len);
    struct bytes_reader tail;
    uint64_t next = 0;
    uint8_t found[sizeof(magic)];
    uint32_t version, n_ranges;

    bytes_get(&r, found, sizeof(found));
    version = bytes_get_u32(&r);
    n_ranges = bytes_get_u32(&r);
    if (r.bad || memcmp(found, magic, sizeof(magic)) != 0 || version != WORKING_SET_VERSION)
        return err_set(err, EINVAL, "working set: not such a file, or of another version");
    if (n_ranges > WORKING_SET_RANGES_MAX || len != HEADER_SIZE + 8ull * n_ranges + 4)
        return err_set(err, EINVAL, "working set: wrong length");
    tail = bytes_reader_init((const uint8_t *)data + len - 4, 4);
    if (crc32_update(0, data, len - 4) != bytes_get_u32(&tail))
        return err_set(err, EINVAL, "working set: bad checksum");
    /* Checked as a whole before anything is done with it. */
    for (int pass = 0; pass < (visit ? 2 : 1); pass++) {
        r = bytes_reader_init((const uint8_t *)data + HEADER_SIZE, 8ull * n_ranges);
        for (uint32_t i = 0; i < n_ranges; i++) {
            uint64_t first = bytes_get_u32(&r);
            uint64_t pages = bytes_get_u32(&r);

            if (pass == 1) {
                visit(context, first, pages);
                continue;
            }
            if (first < next || pages == 0 || first + pages > n_pages)
                return err_set(err, EINVAL, "working set: ranges out of order or memory");
            next = first + pages;
        }
    }
    return 0;
}

struct target {
    const struct kvm *kvm;
    const struct memory *memory;
    bool pre_fault; /* KVM has not refused it yet */
};

static void populate(void *context, uint64_t first_page, uint64_t pages)
{
    struct target *target = context;
    uint64_t gpa = first_page * LAYOUT_PAGE_SIZE;
    uint64_t len = pages * LAYOUT_PAGE_SIZE;
    void *host = memory_writable(target->memory, gpa, len);

    /* Hints: without them the guest's own accesses do the same, later. */
    if (!host || madvise(host, len, MADV_POPULATE_WRITE) < 0)
        return;
    if (target->pre_fault)
        target->pre_fault = kvm_pre_fault(target->kvm, gpa, len) >= 0;
}

int working_set_apply(int fd, const struct kvm *kvm, const struct memory *memory,
                      struct err *err)
{
    struct target target = {.kvm = kvm, .memory = memory, .pre_fault = true};
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "working set");
    if (st.st_size < 0 || (uint64_t)st.st_size > sizeof(file))
        return err_set(err, EINVAL, "working set: a file of %lld bytes", (long long)st.st_size);
    n = fd_pread_full(fd, file, (size_t)st.st_size, 0);
    if (n < 0)
        return err_set_errno(err, (int)-n, "reading the working set");
    return working_set_decode(file, (size_t)n, memory->size / LAYOUT_PAGE_SIZE, populate,
                              &target, err);
}

int working_set_record(const struct kvm *kvm, const struct memory *memory, int fd,
                       struct err *err)
{
    struct kvm_dirty_log log = {.dirty_bitmap = dirty};
    int64_t len;
    int r;

    r = kvm_ioctl(kvm->vm_fd, KVM_GET_DIRTY_LOG, &log, "KVM_GET_DIRTY_LOG", err);
    if (r < 0)
        return r;
    len = working_set_encode(dirty, memory->size / LAYOUT_PAGE_SIZE, file, sizeof(file));
    if (len < 0)
        return err_set(err, E2BIG, "the working set has too many ranges");
    r = fd_pwrite_full(fd, file, (size_t)len, 0);
    return r < 0 ? err_set_errno(err, -r, "writing the working set") : 0;
}
