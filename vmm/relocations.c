/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relocations.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/fd.h"

#define PLACES_AT_ONCE 1024u

enum list { LIST_NONE, LIST_64, LIST_INVERSE_32, LIST_32, LIST_END };

static int move_64(struct memory *memory, gpa_t gpa, uint64_t move)
{
    uint64_t value;

    if (memory_read(memory, gpa, &value, sizeof(value)) < 0)
        return -EFAULT;
    value = htole64(le64toh(value) + move);
    return memory_write(memory, gpa, &value, sizeof(value));
}

static int move_32(struct memory *memory, gpa_t gpa, uint64_t move)
{
    uint32_t value;

    if (memory_read(memory, gpa, &value, sizeof(value)) < 0)
        return -EFAULT;
    value = htole32(le32toh(value) + (uint32_t)move);
    return memory_write(memory, gpa, &value, sizeof(value));
}

/* One entry of a list. The kernel lies in the upper half, so that its addresses extend by sign.
 */
static int apply_place(const struct loader_kernel *kernel, struct memory *memory,
                       enum list list, uint32_t entry, uint64_t move)
{
    uint64_t size = list == LIST_64 ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t at = (uint64_t)(int64_t)(int32_t)entry - kernel->va;

    if (list == LIST_NONE || at > kernel->bytes || size > kernel->bytes - at)
        return -EFAULT;
    if (list == LIST_64)
        return move_64(memory, kernel->gpa + at, move);
    return move_32(memory, kernel->gpa + at, list == LIST_32 ? move : 0 - move);
}

static int apply_entry(const struct loader_kernel *kernel, struct memory *memory,
                       enum list *list, uint32_t entry, uint64_t move)
{
    if (entry != 0)
        return apply_place(kernel, memory, *list, entry, move);
    return ++*list == LIST_END ? -EFAULT : 0;
}

int relocations_apply(int kernel_fd, const struct loader_kernel *kernel, struct memory *memory,
                      uint64_t move, struct err *err)
{
    uint32_t entries[PLACES_AT_ONCE];
    enum list list = LIST_NONE;

    if (kernel->relocations_bytes % sizeof(entries[0]) != 0)
        return err_set(err, ENOEXEC, "kernel: its relocations end inside one");
    for (uint64_t done = 0; done < kernel->relocations_bytes;) {
        uint64_t left = kernel->relocations_bytes - done;
        size_t len = left < sizeof(entries) ? (size_t)left : sizeof(entries);
        ssize_t n = fd_pread_full(kernel_fd, entries, len, kernel->relocations_offset + done);

        if (n < 0)
            return err_set_errno(err, (int)-n, "reading the kernel's relocations");
        if ((size_t)n != len)
            return err_set(err, ENOEXEC, "kernel: the file ends inside its relocations");
        for (size_t i = 0; i < len / sizeof(entries[0]); i++)
            if (apply_entry(kernel, memory, &list, le32toh(entries[i]), move) < 0)
                return err_set(err, ENOEXEC, "kernel: relocation %llu, %#x, is outside of it",
                               (unsigned long long)(done / sizeof(entries[0]) + i),
                               le32toh(entries[i]));
        done += len;
    }
    if (kernel->relocations_bytes > 0 && list != LIST_32)
        return err_set(err, ENOEXEC, "kernel: its relocations are not the three lists");
    return 0;
}
