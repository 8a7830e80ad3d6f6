/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/tar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAX_RECORDS_MAX (3u * TAR_PATH_MAX)

static int put_block(struct buf *out, char type, const char *name, const char *target,
                     const struct tar_numbers *numbers)
{
    struct tar_block block;

    tar_block_make(&block, type, name, target, numbers);
    return buf_append(out, &block, sizeof(block));
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

static int put_content(struct buf *out, const void *data, size_t len)
{
    static const char zero[TAR_BLOCK];
    int result = buf_append(out, data, len);

    return result < 0 ? result : buf_append(out, zero, tar_padding(len));
}

static int put_pax(struct buf *out, const char *path, const char *target)
{
    _cleanup_buf_ struct buf records = buf_init(PAX_RECORDS_MAX);
    int result;

    if (path)
        (void)tar_pax_append(&records, "path", path);
    if (target)
        (void)tar_pax_append(&records, "linkpath", target);
    if (records.error)
        return records.error;
    result = put_block(out, 'x', "pax", "",
                       &(struct tar_numbers){.mode = 0644, .size = records.len});
    return result < 0 ? result : put_content(out, records.data, records.len);
}

int tar_put_header(struct buf *out, const struct tar_header *header)
{
    char name[TAR_PATH_MAX + 2];
    const char *target = header->target ? header->target : "";
    size_t len = strlen(header->path);
    size_t target_len = strlen(target);

    if (len == 0 || len > TAR_PATH_MAX || target_len > TAR_PATH_MAX ||
        header->size > TAR_SIZE_MAX || header->mtime_s > TAR_SIZE_MAX)
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
        if (result < 0)
            return result;
    }
    return put_block(
        out, (char)header->type, long_name ? "long" : name, long_target ? "long" : target,
        &(struct tar_numbers){
            .mode = header->mode, .size = header->size, .mtime_s = header->mtime_s});
}

int tar_put_file(struct buf *out, const char *path, const void *data, size_t len)
{
    const struct tar_header header = {
        .path = path, .type = TAR_FILE, .mode = 0644, .size = len};
    int result = tar_put_header(out, &header);

    return result < 0 ? result : put_content(out, data, len);
}

enum reader_state { AT_HEADER, AT_DATA, AT_PAX, AT_SKIP, AT_END };

struct tar_reader {
    const struct tar_ops *ops;
    void *user;
    enum reader_state state;
    int failed;
    bool zero_block;
    struct tar_block block;
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

static int take_record(struct tar_reader *r, const struct tar_pax *record, struct err *err)
{
    char **field = tar_pax_is(record, "path")       ? &r->pax_path
                   : tar_pax_is(record, "linkpath") ? &r->pax_target
                                                    : NULL;

    if (field) {
        free(*field);
        *field = strndup(record->value, record->value_len);
        return *field ? 0 : -ENOMEM;
    }
    if (!tar_pax_is(record, "size"))
        return 0;
    if (tar_pax_number(record, &r->pax_size) < 0)
        return err_set(err, EPROTO, "the file stream has a damaged size");
    r->has_pax_size = true;
    return 0;
}

/* Reads the records this reader knows; others are skipped. */
static int parse_pax(struct tar_reader *r, struct err *err)
{
    const char *at = (const char *)r->pax.data;
    size_t left = r->pax.len;
    struct tar_pax record;
    int more, result = 0;

    while (result == 0 && (more = tar_pax_next(&at, &left, &record)) != 0)
        result = more < 0 ? err_set(err, EPROTO, "the file stream has a damaged pax record")
                          : take_record(r, &record, err);
    buf_clear(&r->pax);
    return result;
}

/* A file whose name ends with a slash is a folder: so old tars have them. */
static enum tar_type type_of(char type, bool slash)
{
    if (type == '0' || type == '\0')
        return slash ? TAR_DIR : TAR_FILE;
    return strchr("125", type) ? (enum tar_type)type : TAR_OTHER;
}

static int begin_entry(struct tar_reader *r, const struct tar_numbers *numbers, uint64_t size,
                       struct err *err)
{
    char name[TAR_NAME_SIZE];
    char target[sizeof(r->block.target) + 1] = "";
    char *path = r->pax_path ? r->pax_path : name;
    struct tar_header out = {.mode = numbers->mode, .mtime_s = numbers->mtime_s};
    int result;

    tar_block_path(&r->block, name);
    memcpy(target, r->block.target, sizeof(r->block.target));

    size_t len = strlen(path);
    out.type = type_of(r->block.type, len > 0 && path[len - 1] == '/');
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len > TAR_PATH_MAX)
        return err_set(err, EPROTO, "the file stream has a name over %u bytes", TAR_PATH_MAX);
    path[len] = '\0';
    out.path = path;
    if (out.type == TAR_LINK || out.type == TAR_HARD_LINK)
        out.target = r->pax_target ? r->pax_target : target;
    if (out.type == TAR_FILE)
        out.size = size;

    result = r->ops->begin(r->user, &out);
    /* Only a file has content for the caller; what others drag along is skipped. */
    r->state = out.type == TAR_FILE ? AT_DATA : AT_SKIP;
    forget_pax(r);
    return result;
}

static int take_header(struct tar_reader *r, struct err *err)
{
    struct tar_numbers numbers;
    uint64_t size;
    int result;

    r->block_len = 0;
    if (tar_block_is_zero(&r->block)) {
        if (r->zero_block)
            r->state = AT_END;
        r->zero_block = true;
        return 0;
    }
    r->zero_block = false;
    result = tar_block_read(&r->block, &numbers);
    if (result < 0)
        return err_set(err, EPROTO,
                       result == -EBADMSG
                           ? "the file stream is not a tar: wrong header checksum"
                           : "the file stream has a damaged header");
    size = numbers.size;
    if (r->block.type == 'x') {
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
    return begin_entry(r, &numbers, size, err);
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
            memcpy((uint8_t *)&r->block + r->block_len, at, n);
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
    if (result < 0)
        r->failed = result;
    return result;
}
