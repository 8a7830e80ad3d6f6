/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/tar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ustar, POSIX.1-2017, pax, "ustar Interchange Format". */
struct ustar {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char typeflag;
    char linkname[100];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char devmajor[8];
    char devminor[8];
    char prefix[155];
    char pad[12];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a ustar header is one block");

#define PAX_RECORDS_MAX (3u * TAR_PATH_MAX)
#define SIZE_MAX_USTAR  (8ull << 30)

static void put_octal(char *field, size_t width, uint64_t value)
{
    for (size_t i = width - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
    field[width - 1] = '\0';
}

static uint32_t checksum(const struct ustar *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    const size_t from = offsetof(struct ustar, checksum);
    uint32_t sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= from && i < from + sizeof(header->checksum) ? ' ' : bytes[i];
    return sum;
}

static int put_block(struct buf *out, const char *name, size_t name_len, const char *target,
                     size_t target_len, char type, uint32_t mode, uint64_t size,
                     uint64_t mtime_s)
{
    struct ustar header = {.typeflag = type};

    memcpy(header.name, name, name_len);
    memcpy(header.linkname, target, target_len);
    put_octal(header.mode, sizeof(header.mode), mode & 07777);
    put_octal(header.uid, sizeof(header.uid), 0);
    put_octal(header.gid, sizeof(header.gid), 0);
    put_octal(header.size, sizeof(header.size), size);
    put_octal(header.mtime, sizeof(header.mtime), mtime_s);
    memcpy(header.magic, "ustar", 6);
    memcpy(header.version, "00", 2);
    put_octal(header.devmajor, sizeof(header.devmajor), 0);
    put_octal(header.devminor, sizeof(header.devminor), 0);
    put_octal(header.checksum, sizeof(header.checksum) - 1, checksum(&header));
    header.checksum[7] = ' ';
    return buf_append(out, &header, sizeof(header));
}

size_t tar_padding(uint64_t size)
{
    return (size_t)(-size & (TAR_BLOCK - 1));
}

static bool fits_ustar(const char *text, size_t len)
{
    if (len >= 100)
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] >= 0x80)
            return false;
    }
    return true;
}

/* A pax record counts its own length digits: "<length> <key>=<value>\n". */
static int put_pax_record(struct buf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t digits = 1;

    for (;;) {
        size_t needed = 0;
        for (size_t n = rest + digits; n; n /= 10)
            needed++;
        if (needed == digits)
            break;
        digits = needed;
    }
    return buf_printf(out, "%zu %s=%s\n", rest + digits, key, value);
}

static int put_pax(struct buf *out, const char *path, const char *target)
{
    static const char zero[TAR_BLOCK];
    struct buf records = buf_init(PAX_RECORDS_MAX);
    int result = 0;

    if (path)
        result = put_pax_record(&records, "path", path);
    if (!result && target)
        result = put_pax_record(&records, "linkpath", target);
    if (!result)
        result = put_block(out, "pax", 3, "", 0, 'x', 0644, records.len, 0);
    if (!result)
        result = buf_append(out, records.data, records.len);
    if (!result)
        result = buf_append(out, zero, tar_padding(records.len));
    buf_finish(&records);
    return result;
}

int tar_put_header(struct buf *out, const struct tar_header *header)
{
    char name[TAR_PATH_MAX + 2];
    const char *target = header->target ? header->target : "";
    size_t len = strlen(header->path);
    size_t target_len = strlen(target);

    if (len == 0 || len > TAR_PATH_MAX || target_len > TAR_PATH_MAX ||
        header->size >= SIZE_MAX_USTAR || header->mtime_s >= SIZE_MAX_USTAR)
        return -EINVAL;
    memcpy(name, header->path, len + 1);
    if (header->type == TAR_DIR) {
        name[len++] = '/';
        name[len] = '\0';
    }

    bool long_name = !fits_ustar(name, len);
    bool long_target = !fits_ustar(target, target_len);
    if (long_name || long_target) {
        int result = put_pax(out, long_name ? name : NULL, long_target ? target : NULL);
        if (result)
            return result;
    }
    return put_block(out, long_name ? "long" : name, long_name ? 4 : len,
                     long_target ? "long" : target, long_target ? 4 : target_len,
                     (char)header->type, header->mode, header->size, header->mtime_s);
}

enum reader_state { AT_HEADER, AT_DATA, AT_PAX, AT_SKIP, AT_END };

struct tar_reader {
    const struct tar_ops *ops;
    void *user;
    enum reader_state state;
    int failed;
    bool zero_block;
    uint8_t block[TAR_BLOCK];
    size_t block_len;
    uint64_t left;    /* content bytes still to come */
    uint64_t padding; /* and the zero bytes after them */
    struct buf pax;
    char *pax_path; /* of a pax header, for the next entry only */
    char *pax_target;
    bool has_pax_size;
    uint64_t pax_size;
    unsigned specials; /* pax headers in a row */
};

struct tar_reader *tar_reader_create(const struct tar_ops *ops, void *user)
{
    struct tar_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->ops = ops;
    r->user = user;
    r->pax = buf_init(PAX_RECORDS_MAX);
    return r;
}

static void forget_pax(struct tar_reader *r)
{
    free(r->pax_path);
    free(r->pax_target);
    r->pax_path = r->pax_target = NULL;
    r->has_pax_size = false;
    buf_clear(&r->pax);
}

void tar_reader_destroy(struct tar_reader *r)
{
    if (!r)
        return;
    forget_pax(r);
    buf_finish(&r->pax);
    free(r);
}

uint64_t tar_reader_skip(struct tar_reader *r)
{
    if (r->failed || (r->state != AT_DATA && r->state != AT_SKIP))
        return 0;
    uint64_t skipped = r->left + r->padding;
    r->left = r->padding = 0;
    return skipped;
}

bool tar_reader_complete(const struct tar_reader *r)
{
    return r->state == AT_END || (r->state == AT_HEADER && r->block_len == 0 && !r->failed);
}

static bool get_octal(const char *field, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;

    while (i < width && field[i] == ' ')
        i++;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    if (i < width && field[i] != '\0' && field[i] != ' ')
        return false;
    *ret_value = value;
    return true;
}

/* Reads the records this reader knows; others are skipped. */
static int parse_pax(struct tar_reader *r, struct err *err)
{
    size_t at = 0;

    while (at < r->pax.len) {
        const char *record = (const char *)r->pax.data + at;
        size_t len = 0;
        size_t digits = 0;

        while (at + digits < r->pax.len && record[digits] >= '0' && record[digits] <= '9' &&
               digits < 6)
            len = len * 10 + (size_t)(record[digits++] - '0');
        if (digits == 0 || len < digits + 4 || len > r->pax.len - at || record[digits] != ' ' ||
            record[len - 1] != '\n')
            return err_set(err, EPROTO, "the file stream has a damaged pax record");

        const char *key = record + digits + 1;
        const char *end = record + len - 1;
        const char *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals || memchr(key, '\0', (size_t)(end - key)))
            return err_set(err, EPROTO, "the file stream has a damaged pax record");
        size_t key_len = (size_t)(equals - key);
        const char *value = equals + 1;
        size_t value_len = (size_t)(end - value);
        bool is_path = key_len == 4 && memcmp(key, "path", 4) == 0;
        bool is_target = key_len == 8 && memcmp(key, "linkpath", 8) == 0;

        if (is_path || is_target) {
            char **field = is_path ? &r->pax_path : &r->pax_target;
            free(*field);
            *field = strndup(value, value_len);
            if (!*field)
                return -ENOMEM;
        } else if (key_len == 4 && memcmp(key, "size", 4) == 0) {
            uint64_t size = 0;
            for (size_t i = 0; i < value_len; i++) {
                if (value[i] < '0' || value[i] > '9' || size > UINT64_MAX / 20)
                    return err_set(err, EPROTO, "the file stream has a damaged size");
                size = size * 10 + (uint64_t)(value[i] - '0');
            }
            r->pax_size = size;
            r->has_pax_size = true;
        }
        at += len;
    }
    buf_clear(&r->pax);
    return 0;
}

static int begin_entry(struct tar_reader *r, const struct ustar *header, uint64_t size,
                       uint64_t mode, uint64_t mtime_s, struct err *err)
{
    char name[sizeof(header->prefix) + sizeof(header->name) + 2];
    char target[sizeof(header->linkname) + 1] = "";
    const char *path = r->pax_path;

    if (!path) {
        size_t prefix_len = strnlen(header->prefix, sizeof(header->prefix));
        size_t name_len = strnlen(header->name, sizeof(header->name));
        size_t at = 0;
        if (prefix_len && memcmp(header->magic, "ustar", 6) == 0) {
            memcpy(name, header->prefix, prefix_len);
            name[prefix_len] = '/';
            at = prefix_len + 1;
        }
        memcpy(name + at, header->name, name_len);
        name[at + name_len] = '\0';
        path = name;
    }
    memcpy(target, header->linkname, sizeof(header->linkname));

    size_t len = strlen(path);
    bool slash = len > 0 && path[len - 1] == '/';
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len > TAR_PATH_MAX)
        return err_set(err, EPROTO, "the file stream has a name over %u bytes", TAR_PATH_MAX);
    char *clean = strndup(path, len);
    if (!clean)
        return -ENOMEM;

    struct tar_header out = {
        .path = clean,
        .mode = (uint32_t)mode & 07777,
        .mtime_s = mtime_s,
        .type = TAR_OTHER,
    };
    switch (header->typeflag) {
    case '0':
    case '\0':
        out.type = slash ? TAR_DIR : TAR_FILE;
        break;
    case '1':
        out.type = TAR_HARD_LINK;
        break;
    case '2':
        out.type = TAR_LINK;
        break;
    case '5':
        out.type = TAR_DIR;
        break;
    default:
        break;
    }
    if (out.type == TAR_LINK || out.type == TAR_HARD_LINK)
        out.target = r->pax_target ? r->pax_target : target;
    if (out.type == TAR_FILE)
        out.size = size;

    int result = r->ops->begin(r->user, &out);
    /* Only a file has content for the caller; what others drag along is skipped. */
    r->state = out.type == TAR_FILE ? AT_DATA : AT_SKIP;
    free(clean);
    forget_pax(r);
    return result;
}

static int take_header(struct tar_reader *r, struct err *err)
{
    static const uint8_t zero[TAR_BLOCK];
    struct ustar header;
    uint64_t sum, size, mode, mtime_s;

    memcpy(&header, r->block, sizeof(header));
    r->block_len = 0;
    if (memcmp(r->block, zero, TAR_BLOCK) == 0) {
        if (r->zero_block)
            r->state = AT_END;
        r->zero_block = true;
        return 0;
    }
    r->zero_block = false;
    if (!get_octal(header.checksum, sizeof(header.checksum), &sum) || sum != checksum(&header))
        return err_set(err, EPROTO, "the file stream is not a tar: wrong header checksum");
    if (!get_octal(header.size, sizeof(header.size), &size) ||
        !get_octal(header.mode, sizeof(header.mode), &mode) ||
        !get_octal(header.mtime, sizeof(header.mtime), &mtime_s))
        return err_set(err, EPROTO, "the file stream has a damaged header");

    if (header.typeflag == 'x') {
        if (++r->specials > 4 || size > PAX_RECORDS_MAX)
            return err_set(err, EPROTO, "the file stream has too large a pax header");
        r->left = size;
        r->padding = tar_padding(size);
        r->state = AT_PAX;
        return 0;
    }
    r->specials = 0;
    if (r->has_pax_size)
        size = r->pax_size;
    if (size > INT64_MAX)
        return err_set(err, EPROTO, "the file stream has a damaged size");
    r->left = size;
    r->padding = tar_padding(size);
    return begin_entry(r, &header, size, mode, mtime_s, err);
}

/* The content and its padding are all there. */
static int finish_content(struct tar_reader *r, struct err *err)
{
    enum reader_state state = r->state;

    r->state = AT_HEADER;
    if (state == AT_PAX)
        return parse_pax(r, err);
    return r->ops->end(r->user);
}

static int push(struct tar_reader *r, const uint8_t *at, size_t len, struct err *err)
{
    int result = 0;

    while (!result && r->state != AT_END) {
        if (r->state != AT_HEADER && r->left + r->padding == 0) {
            result = finish_content(r, err);
            continue;
        }
        if (len == 0)
            break;

        size_t n;
        if (r->state == AT_HEADER) {
            n = TAR_BLOCK - r->block_len < len ? TAR_BLOCK - r->block_len : len;
            memcpy(r->block + r->block_len, at, n);
            r->block_len += n;
            if (r->block_len == TAR_BLOCK)
                result = take_header(r, err);
        } else if (r->left > 0) {
            n = r->left < len ? (size_t)r->left : len;
            if (r->state == AT_DATA)
                result = r->ops->data(r->user, at, n);
            else if (r->state == AT_PAX)
                result = buf_append(&r->pax, at, n);
            r->left -= n;
        } else {
            n = r->padding < len ? (size_t)r->padding : len;
            r->padding -= n;
        }
        at += n;
        len -= n;
    }
    return result;
}

int tar_reader_push(struct tar_reader *r, const void *data, size_t len, struct err *err)
{
    if (r->failed)
        return err_set(err, -r->failed, "the file stream was damaged earlier");

    int result = push(r, data, len, err);
    if (result)
        r->failed = result;
    return result;
}
