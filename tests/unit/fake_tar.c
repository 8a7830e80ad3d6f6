/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_tar.h"

#include <stdio.h>
#include <string.h>

#define PROBE ".skillvm-describe.py"

void fake_tar_header(uint8_t block[512], const char *name, unsigned size, char type)
{
    char *h = (char *)block;
    unsigned sum = 0;

    memset(block, 0, 512);
    snprintf(h, 100, "%s", name);
    snprintf(h + 100, 8, "0000644");
    snprintf(h + 108, 8, "0000000");
    snprintf(h + 116, 8, "0000000");
    snprintf(h + 124, 12, "%011o", size);
    snprintf(h + 136, 12, "00000000000");
    h[156] = type;
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf(h + 148, 8, "%06o", sum);
}

size_t fake_tar_file(uint8_t block[1024], const char *name, const char *content, char type)
{
    fake_tar_header(block, name, (unsigned)strlen(content), type);
    memset(block + 512, 0, 512);
    memcpy(block + 512, content, strlen(content));
    return content[0] ? 1024 : 512;
}

bool fake_tar_is_probe(const uint8_t *entry, size_t len)
{
    return len == strlen(PROBE) && memcmp(entry, PROBE, len) == 0;
}

const char *fake_tar_probe(struct buf *tar)
{
    char *at = tar->len ? memmem(tar->data, tar->len, "#probe:", 7) : NULL;
    char *end = at ? memchr(at, '\n', tar->len - (size_t)(at - (char *)tar->data)) : NULL;

    if (!end || strcmp((char *)tar->data, PROBE) != 0)
        return NULL;
    *end = '\0';
    return at + 7;
}
