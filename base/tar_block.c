/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tar_block.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct tar_block) == TAR_BLOCK, "a header is one block");

#define DIGITS_MAX 18u

static void put_octal(char *field, size_t width, uint64_t value)
{
    for (size_t i = width - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
    field[width - 1] = '\0';
}

/* Octal digits, blanks before and blanks or NULs after them. Base 256 is refused. */
static bool get_octal(const char *field, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;

    while (i < width && field[i] == ' ')
        i++;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    for (; i < width; i++) {
        if (field[i] != '\0' && field[i] != ' ')
            return false;
    }
    *ret_value = value;
    return true;
}

static uint32_t checksum(const struct tar_block *block)
{
    const unsigned char *bytes = (const unsigned char *)block;
    const size_t from = offsetof(struct tar_block, checksum);
    uint32_t sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= from && i < from + sizeof(block->checksum) ? ' ' : bytes[i];
    return sum;
}

void tar_block_make(struct tar_block *ret, char type, const char *name, const char *target,
                    const struct tar_numbers *numbers)
{
    struct tar_block block = {.type = type};

    memcpy(block.name, name, strnlen(name, sizeof(block.name)));
    memcpy(block.target, target, strnlen(target, sizeof(block.target)));
    put_octal(block.mode, sizeof(block.mode), numbers->mode & 07777);
    put_octal(block.uid, sizeof(block.uid), 0);
    put_octal(block.gid, sizeof(block.gid), 0);
    put_octal(block.size, sizeof(block.size), numbers->size);
    put_octal(block.mtime, sizeof(block.mtime), numbers->mtime_s);
    memcpy(block.magic, "ustar", 6);
    memcpy(block.version, "00", 2);
    put_octal(block.devmajor, sizeof(block.devmajor), 0);
    put_octal(block.devminor, sizeof(block.devminor), 0);
    put_octal(block.checksum, sizeof(block.checksum) - 1, checksum(&block));
    block.checksum[7] = ' ';
    *ret = block;
}

int tar_block_read(const struct tar_block *block, struct tar_numbers *ret)
{
    struct tar_numbers numbers = {0};
    uint64_t sum, mode;

    if (!get_octal(block->checksum, sizeof(block->checksum), &sum) || sum != checksum(block))
        return -EBADMSG;
    if (!get_octal(block->size, sizeof(block->size), &numbers.size) ||
        !get_octal(block->mtime, sizeof(block->mtime), &numbers.mtime_s) ||
        !get_octal(block->mode, sizeof(block->mode), &mode))
        return -EINVAL;
    numbers.mode = (uint32_t)(mode & 07777);
    *ret = numbers;
    return 0;
}

bool tar_block_is_zero(const struct tar_block *block)
{
    static const struct tar_block zero;

    return memcmp(block, &zero, sizeof(zero)) == 0;
}

void tar_block_path(const struct tar_block *block, char ret[TAR_NAME_SIZE])
{
    size_t prefix = memcmp(block->magic, "ustar", 6) == 0
                        ? strnlen(block->prefix, sizeof(block->prefix))
                        : 0;
    size_t name = strnlen(block->name, sizeof(block->name));

    memcpy(ret, block->prefix, prefix);
    if (prefix > 0)
        ret[prefix++] = '/';
    memcpy(ret + prefix, block->name, name);
    ret[prefix + name] = '\0';
}

size_t tar_padding(uint64_t size)
{
    return (size_t)(-size & (TAR_BLOCK - 1));
}

int tar_pax_append(struct buf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, digits = 1;

    /* A record's length counts its own digits. */
    for (size_t power = 10; rest + digits >= power; power *= 10)
        digits++;
    return buf_printf(out, "%zu %s=%s\n", rest + digits, key, value);
}

int tar_pax_next(const char **at, size_t *left, struct tar_pax *ret)
{
    const char *record = *at, *equals;
    size_t len = 0, digits = 0;

    if (*left == 0)
        return 0;
    for (; digits < *left && digits < 6 && record[digits] >= '0' && record[digits] <= '9';
         digits++)
        len = len * 10 + (size_t)(record[digits] - '0');
    if (digits == 0 || len < digits + 4 || len > *left || record[digits] != ' ' ||
        record[len - 1] != '\n')
        return -EINVAL;
    ret->key = record + digits + 1;
    equals = memchr(ret->key, '=', len - digits - 2);
    if (!equals || equals == ret->key || memchr(ret->key, '\0', (size_t)(equals - ret->key)))
        return -EINVAL;
    ret->key_len = (size_t)(equals - ret->key);
    ret->value = equals + 1;
    ret->value_len = (size_t)(record + len - 1 - ret->value);
    *at += len;
    *left -= len;
    return 1;
}

bool tar_pax_is(const struct tar_pax *record, const char *key)
{
    return strlen(key) == record->key_len && memcmp(key, record->key, record->key_len) == 0;
}

int tar_pax_number(const struct tar_pax *record, uint64_t *ret)
{
    uint64_t number = 0;

    if (record->value_len == 0 || record->value_len > DIGITS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < record->value_len; i++) {
        if (record->value[i] < '0' || record->value[i] > '9')
            return -EINVAL;
        number = number * 10 + (uint64_t)(record->value[i] - '0');
    }
    *ret = number;
    return 0;
}
