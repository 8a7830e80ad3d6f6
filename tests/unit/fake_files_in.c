/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_files_in.h"

#include "base/crc32.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512u

/* A path out of the records of a pax header. */
static void take_pax(const uint8_t *data, size_t len, char *path, size_t size)
{
    const uint8_t *at = memmem(data, len, " path=", 6);
    const uint8_t *end = at ? memchr(at, '\n', len - (size_t)(at - data)) : NULL;

    if (end)
        snprintf(path, size, "%.*s", (int)(end - at) - 6, (const char *)at + 6);
}

static void write_text(struct buf *out, const uint8_t *data, size_t len)
{
    buf_append(out, "\"", 1);
    for (size_t i = 0; i < len && i < 32; i++) {
        if (data[i] < 0x20 || data[i] > 0x7e || data[i] == '"' || data[i] == '\\')
            buf_append(out, ".", 1);
        else
            buf_append(out, &data[i], 1);
    }
    buf_append(out, "\"", 1);
}

int fake_files_in_list(const uint8_t *tar, size_t len, struct buf *out)
{
    static const uint8_t zeros[BLOCK];
    char path[4096] = "";
    bool first = true;
    size_t at = 0;

    buf_append(out, "{", 1);
    while (at + BLOCK <= len && memcmp(tar + at, zeros, BLOCK) != 0) {
        const char *header = (const char *)tar + at;
        size_t size = strtoul(header + 124, NULL, 8);

        at += BLOCK;
        if (memcmp(header + 257, "ustar", 5) != 0 || size > len - at)
            return -1;
        if (header[156] == 'x') {
            take_pax(tar + at, size, path, sizeof(path));
        } else {
            if (!path[0])
                snprintf(path, sizeof(path), "%.100s", header);
            buf_printf(out, "%s\"%s\": [%zu, %u, ", first ? "" : ", ", path, size,
                       crc32_update(0, tar + at, size));
            write_text(out, tar + at, size);
            buf_append(out, "]", 1);
            first = false;
            path[0] = '\0';
        }
        at += (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    buf_append(out, "}", 1);
    return len == 0 || at + 2 * BLOCK == len ? 0 : -1;
}
