/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/object_meta.h"

#include "api/daemon/cluster/driver.h"
#include "api/daemon/cluster/entry_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEX         "0123456789abcdef"
#define DIGEST_HEAD "SHA-256="
#define BYTES       32u /* of a SHA-256 */
#define BASE64_SIZE 93u /* of a name of 64 letters, which takes the more */

/* RFC 4648, section 5, with padding. */
static void encode(const uint8_t *bytes, size_t n, char ret[BASE64_SIZE])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t at = 0;

    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 |
                         (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < n ? bytes[i + 2] : 0);

        ret[at++] = letters[three >> 18];
        ret[at++] = letters[three >> 12 & 63];
        ret[at++] = i + 1 < n ? letters[three >> 6 & 63] : '=';
        ret[at++] = i + 2 < n ? letters[three & 63] : '=';
    }
    ret[at] = '\0';
}

/* "SHA-256=" and what the digest's digits stand for. */
static void write_digest(const char *digest, char *ret, size_t size)
{
    uint8_t bytes[BYTES];
    char text[BASE64_SIZE];

    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)((strchr(HEX, digest[2 * i]) - HEX) << 4 |
                             (strchr(HEX, digest[2 * i + 1]) - HEX));
    encode(bytes, BYTES, text);
    (void)snprintf(ret, size, DIGEST_HEAD "%s", text);
}

void object_meta_key(const char *digest, char ret[OBJECT_KEY_SIZE])
{
    char text[BASE64_SIZE];

    encode((const uint8_t *)digest, CHANGE_DIGEST_SIZE - 1, text);
    (void)snprintf(ret, OBJECT_KEY_SIZE, CLUSTER_OBJECT_META "%s", text);
}

void object_chunks_key(const char *chunks_under, char ret[OBJECT_KEY_SIZE])
{
    (void)snprintf(ret, OBJECT_KEY_SIZE, CLUSTER_OBJECT_CHUNK "%s", chunks_under);
}

/* What can be part of a subject, and nothing else of it. */
static bool is_word(const char *text)
{
    return text[0] && text[strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

static bool is_deleted(struct json_slice object)
{
    bool deleted = false;

    return entry_take_bool(object, "deleted", &deleted) == 0 && deleted;
}

/* What its chunks are under. False, and "": it is said of nothing that can be a subject. */
static bool take_place(struct json_slice object, struct object_meta *meta)
{
    if (entry_take_text(object, "nuid", meta->chunks_under, sizeof(meta->chunks_under)) == 0 &&
        is_word(meta->chunks_under))
        return true;
    meta->chunks_under[0] = '\0';
    return false;
}

/* What an object that is there has. */
static int take_content(struct json_slice object, struct object_meta *meta)
{
    char wanted[BASE64_SIZE + sizeof(DIGEST_HEAD)], digest[sizeof(wanted)];

    write_digest(meta->digest, wanted, sizeof(wanted));
    if (entry_take_number(object, "size", INT64_MAX, &meta->size) < 0 ||
        entry_take_number(object, "chunks", UINT32_MAX, &meta->chunks) < 0 ||
        entry_take_text(object, "digest", digest, sizeof(digest)) < 0)
        return -EINVAL;
    return strcmp(digest, wanted) == 0 ? 0 : -EINVAL;
}

int object_meta_parse(const char *key, const char *data, size_t len, struct object_meta *ret)
{
    struct object_meta meta = {0};
    char wanted[OBJECT_KEY_SIZE];
    struct json_slice object;

    if (!data || len > OBJECT_META_BYTES_MAX || json_text_check(data, len, &object, NULL) < 0 ||
        !json_is_object(object) ||
        entry_take_text(object, "name", meta.digest, sizeof(meta.digest)) < 0 ||
        !entry_is_digest(meta.digest))
        return -EINVAL;
    object_meta_key(meta.digest, wanted);
    if (strcmp(key, wanted) != 0)
        return -EINVAL;
    meta.is_deleted = is_deleted(object);
    if (!take_place(object, &meta) && !meta.is_deleted)
        return -EINVAL;
    if (!meta.is_deleted && take_content(object, &meta) < 0)
        return -EINVAL;
    *ret = meta;
    return 0;
}

int object_meta_write(const struct object_meta *meta, const char *bucket, struct buf *ret)
{
    struct json_writer w = json_writer_init(OBJECT_META_BYTES_MAX);
    char digest[BASE64_SIZE + sizeof(DIGEST_HEAD)];

    write_digest(meta->digest, digest, sizeof(digest));
    json_write_open(&w, NULL, '{');
    json_write_string(&w, "name", meta->digest);
    json_write_open(&w, "options", '{');
    json_write_number(&w, "max_chunk_size", OBJECT_CHUNK_BYTES);
    json_write_close(&w, '}');
    json_write_string(&w, "bucket", bucket);
    json_write_string(&w, "nuid", meta->chunks_under);
    json_write_number(&w, "size", meta->size);
    json_write_string(&w, "mtime", "0001-01-01T00:00:00Z");
    json_write_number(&w, "chunks", meta->chunks);
    json_write_string(&w, "digest", digest);
    if (meta->is_deleted)
        json_write_bool(&w, "deleted", true);
    return entry_end(&w, ret);
}
