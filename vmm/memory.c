/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/memory.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void memory_init(struct memory *m, void *host, uint64_t size)
{
    m->host = host;
    m->size = size;
}

bool memory_contains(const struct memory *m, gpa_t gpa, uint64_t len)
{
    return gpa <= m->size && len <= m->size - gpa;
}

const void *memory_readable(const struct memory *m, gpa_t gpa, uint64_t len)
{
    return memory_writable(m, gpa, len);
}

void *memory_writable(const struct memory *m, gpa_t gpa, uint64_t len)
{
    return memory_contains(m, gpa, len) ? m->host + gpa : NULL;
}

int memory_read(const struct memory *m, gpa_t gpa, void *out, size_t len)
{
    const void *from = memory_readable(m, gpa, len);

    if (from == NULL) {
        return -EFAULT;
    }
    memcpy(out, from, len);
    return 0;
}

int memory_write(const struct memory *m, gpa_t gpa, const void *data, size_t len)
{
    void *to = memory_writable(m, gpa, len);

    if (to == NULL) {
        return -EFAULT;
    }
    memcpy(to, data, len);
    return 0;
}

int memory_load_u16(const struct memory *m, gpa_t gpa, uint16_t *ret_value)
{
    const uint16_t *at = memory_readable(m, gpa, sizeof(*at));

    if (at == NULL || gpa % sizeof(*at) != 0) {
        return -EFAULT;
    }
    *ret_value = le16toh(__atomic_load_n(at, __ATOMIC_ACQUIRE));
    return 0;
}

int memory_store_u16(const struct memory *m, gpa_t gpa, uint16_t value)
{
    uint16_t *at = memory_writable(m, gpa, sizeof(*at));

    if (at == NULL || gpa % sizeof(*at) != 0) {
        return -EFAULT;
    }
    __atomic_store_n(at, htole16(value), __ATOMIC_RELEASE);
    return 0;
}
