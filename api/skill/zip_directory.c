/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/zip_directory.h"

#include "api/skill/file_names.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <archive.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIGN_ENTRY   0x02014b50u
#define SIGN_END     0x06054b50u
#define SIGN_END64   0x06064b50u
#define SIGN_LOCATOR 0x07064b50u
#define ENTRY_SIZE   46u
#define END_SIZE     22u
#define END64_SIZE   56u
#define LOCATOR_SIZE 20u
#define COMMENT_MAX  65535u
/* libarchive looks for the last records in so many bytes at the end of the file. */
#define WINDOW 16384u

/* The last of the records that end a directory: where it is, and how long it says that is. */
static int find_end(int fd, uint64_t size, uint64_t *ret_at, uint32_t *ret_bytes)
{
    uint64_t span = size < END_SIZE + COMMENT_MAX ? size : END_SIZE + COMMENT_MAX;
    _cleanup_free_ uint8_t *tail = malloc((size_t)span + 1);

    if (!tail)
        return -ENOMEM;
    if (fd_pread_full(fd, tail, (size_t)span, size - span) != (ssize_t)span)
        return -EINVAL;
    for (uint64_t i = span >= END_SIZE ? span - END_SIZE + 1 : 0; i-- > 0;) {
        struct bytes_reader r = bytes_reader_init(tail + i, END_SIZE);

        if (bytes_get_u32(&r) != SIGN_END)
            continue;
        (void)bytes_take(&r, 8);
        *ret_bytes = bytes_get_u32(&r);
        *ret_at = size - span + i;
        return 0;
    }
    return -ENOENT;
}

/* Reads the record that a large zip has beside the one at its end. */
static int read_large(int fd, uint64_t record, uint64_t *ret_at)
{
    uint8_t bytes[END64_SIZE] = {0};
    struct bytes_reader r = bytes_reader_init(bytes, sizeof(bytes));
    uint64_t here, all;

    if (fd_pread_full(fd, bytes, sizeof(bytes), record) != (ssize_t)sizeof(bytes) ||
        bytes_get_u32(&r) != SIGN_END64 || bytes_get_u64(&r) + 12 != END64_SIZE)
        return -EINVAL;
    (void)bytes_take(&r, 4);
    /* Two numbers of volumes. */
    if (bytes_get_u64(&r) != 0)
        return -EINVAL;
    here = bytes_get_u64(&r);
    all = bytes_get_u64(&r);
    (void)bytes_take(&r, 8);
    *ret_at = bytes_get_u64(&r);
    return here == all ? 1 : -EINVAL;
}

/* What a large zip has before that record: 1 with the place of the directory; 0: it has not. */
static int find_large(int fd, uint64_t end, uint64_t *ret_at)
{
    uint8_t bytes[LOCATOR_SIZE] = {0};
    struct bytes_reader r = bytes_reader_init(bytes, sizeof(bytes));
    uint64_t record;

    if (end < sizeof(bytes) ||
        fd_pread_full(fd, bytes, sizeof(bytes), end - sizeof(bytes)) != (ssize_t)sizeof(bytes))
        return 0;
    if (bytes_get_u32(&r) != SIGN_LOCATOR)
        return 0;
    if (bytes_get_u32(&r) != 0)
        return -EINVAL;
    record = bytes_get_u64(&r);
    return bytes_get_u32(&r) == 1 && record <= end ? read_large(fd, record, ret_at) : -EINVAL;
}

static int find_directory(int fd, uint64_t size, uint64_t *ret_at)
{
    uint64_t end;
    uint32_t bytes;
    int r = find_end(fd, size, &end, &bytes);

    if (r < 0)
        return r;
    r = find_large(fd, end, ret_at);
    /* Where it would not see that there is more before this record, it reads another directory.
     */
    if (r > 0 && size > WINDOW && end < size - WINDOW + LOCATOR_SIZE)
        return -EINVAL;
    if (r != 0)
        return r < 0 ? r : 0;
    *ret_at = end - bytes;
    return bytes > end ? -EINVAL : 0;
}

static int check_name(int fd, uint64_t at, size_t len, struct err *err)
{
    char name[UINT16_MAX + 1];

    if (fd_pread_full(fd, name, len, at) != (ssize_t)len || !memchr(name, '\0', len))
        return 0;
    name[len] = '\0';
    return err_set(err, EINVAL, "entry \"%s…\": its name holds a NUL", names_shown(name).text);
}

int zip_directory_check(int fd, uint64_t size, uint32_t max, uint32_t *ret_n, struct err *err)
{
    uint8_t head[ENTRY_SIZE] = {0};
    uint64_t at = 0;
    int result = find_directory(fd, size, &at);

    *ret_n = 0;
    while (result == 0) {
        ssize_t got = fd_pread_full(fd, head, ENTRY_SIZE, at);
        struct bytes_reader r = bytes_reader_init(head, ENTRY_SIZE);
        uint32_t sign = got >= 4 ? bytes_get_u32(&r) : 0;
        size_t len, rest;

        if (sign == SIGN_END || sign == SIGN_END64 || (*ret_n > 0 && sign != SIGN_ENTRY))
            return 0;
        if (sign != SIGN_ENTRY || got != ENTRY_SIZE)
            break;
        if (++*ret_n > max)
            return err_set(err, EFBIG, "the archive has more than %u entries", max);
        (void)bytes_take(&r, 24);
        len = bytes_get_u16(&r);
        rest = bytes_get_u16(&r);
        rest += bytes_get_u16(&r);
        result = check_name(fd, at + ENTRY_SIZE, len, err);
        at += ENTRY_SIZE + len + rest;
    }
    return result == -ENOMEM || result == -ENOENT
               ? result
               : err_set(err, EINVAL, "the zip archive is damaged or cut short");
}

int zip_method_check(struct archive *reader, const char *name, struct err *err)
{
    static const char *const known[] = {"uncompressed)", "deflation)", "bzip)",
                                        "lzma)",         "xz)",        "zstd)"};
    const char *method = archive_format(reader) == ARCHIVE_FORMAT_ZIP
                             ? strchr(archive_format_name(reader), '(')
                             : NULL;

    for (size_t i = 0; method && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(method + 1, known[i]) == 0)
            return 0;
    }
    return method ? names_refuse(err, EINVAL, name, "its compression %s is refused", method)
                  : 0;
}
