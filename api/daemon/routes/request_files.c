/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/request_files.h"

#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "api/skill/file_names.h"
#include "base/cleanup.h"
#include "base/percent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 6u
#define URI_MAX     8192u /* bytes */
#define URI_SCHEME  "execution://"
#define URI_MIDDLE  "/files/"

static int refuse(struct err *err)
{
    return err_set(err, EINVAL,
                   "\"files\" must be an array of ids, or of objects with one of \"id\", "
                   "\"text\", \"base64\" and \"uri\", and a \"name\"");
}

/* A path below /sandbox/in. */
static int take_path(const char *text, struct request_file *ret, struct err *err)
{
    char clean[NAMES_PATH_MAX + 1];
    int r = names_clean(text, clean, err);

    if (r < 0)
        return r;
    if (!clean[0])
        return err_set(err, EINVAL, "the path of a file is empty");
    if (ret->path)
        return err_set(err, EINVAL, "\"name\" and \"path\" of a file are the same");
    ret->path = strdup(clean);
    return ret->path ? 0 : err_no_memory(err);
}

static int take_id(struct json_slice value, struct request_file *ret, struct err *err)
{
    ret->from = REQUEST_FILE_UPLOADED;
    ret->id = json_strdup(value, URI_MAX);
    if (!ret->id)
        return refuse(err);
    return ids_valid(ID_FILE, ret->id)
               ? 0
               : err_set(err, EINVAL, "there is no file %.64s", ret->id);
}

/* Decodes text to the end. NULL where it is no path, or without memory. */
static char *decode(const char *text)
{
    struct buf out = buf_init(URI_MAX);
    size_t len = strlen(text);

    for (size_t at = 0, n; !out.error && at < len; at += n) {
        int byte = percent_decode(text + at, len - at, &n);
        const char c = (char)byte;

        if (byte <= 0) {
            buf_finish(&out);
            return NULL;
        }
        (void)buf_append(&out, &c, 1);
    }
    return buf_cstr(&out) ? (char *)out.data : NULL;
}

/* execution://ID/files/PATH, as the results of tools name files. */
static int take_uri(struct json_slice value, struct request_file *ret, struct err *err)
{
    _cleanup_free_ char *uri = json_strdup(value, URI_MAX);
    size_t scheme = strlen(URI_SCHEME), middle = strlen(URI_MIDDLE);
    char *end;

    if (!uri)
        return refuse(err);
    ret->from = REQUEST_FILE_LEFT;
    end = strncmp(uri, URI_SCHEME, scheme) == 0 ? strstr(uri + scheme, URI_MIDDLE) : NULL;
    if (end) {
        ret->id = strndup(uri + scheme, (size_t)(end - uri) - scheme);
        ret->left = decode(end + middle);
    }
    if (!ret->id || !ret->left || !*ret->left || !ids_valid(ID_EXECUTION, ret->id))
        return err_set(err, EINVAL,
                       "\"%.64s\" names no file: \"uri\" is execution://ID/files/PATH, of a "
                       "file that an execution left",
                       uri);
    return 0;
}

static int take_content(const char *body, struct json_slice value, enum request_file_from from,
                        struct request_file *ret, struct err *err)
{
    if (!json_is_string(value))
        return refuse(err);
    ret->from = from;
    ret->at = (uint64_t)(value.data - body);
    ret->bytes = value.len;
    return 0;
}

/* *n counts what says where the content is: there is one such. */
static int take_source(const char *body, const struct json_member *m, struct request_file *ret,
                       unsigned *n, struct err *err)
{
    static const char *const keys[] = {"id", "uri", "text", "base64"};
    bool known = false;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        known |= json_slice_is(m->key, keys[i]);
    if (!known)
        return err_set(err, EINVAL, "unknown key \"files.%.*s\"",
                       (int)(m->key.len < 64 ? m->key.len : 64), m->key.data);
    if ((*n)++ > 0)
        return refuse(err);
    if (json_slice_is(m->key, "id"))
        return take_id(m->value, ret, err);
    if (json_slice_is(m->key, "uri"))
        return take_uri(m->value, ret, err);
    if (json_slice_is(m->key, "text"))
        return take_content(body, m->value, REQUEST_FILE_TEXT, ret, err);
    return take_content(body, m->value, REQUEST_FILE_BASE64, ret, err);
}

static int take_member(const char *body, const struct json_member *m, struct request_file *ret,
                       unsigned *n, struct err *err)
{
    if (json_slice_is(m->value, "null"))
        return 0;
    if (json_slice_is(m->key, "path") || json_slice_is(m->key, "name")) {
        _cleanup_free_ char *path = json_strdup(m->value, NAMES_PATH_MAX);

        return path ? take_path(path, ret, err) : refuse(err);
    }
    return take_source(body, m, ret, n, err);
}

static int take_object(const char *body, struct json_slice value, struct request_file *ret,
                       struct err *err)
{
    struct json_member members[MEMBERS_MAX];
    size_t n = 0;
    unsigned sources = 0;
    int r = json_text_members(value.data, value.len, members, MEMBERS_MAX, &n, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        r = take_member(body, &members[i], ret, &sources, err);
        if (r < 0)
            return r;
    }
    if (sources == 0)
        return refuse(err);
    if (ret->path || ret->from == REQUEST_FILE_UPLOADED)
        return 0;
    if (ret->from == REQUEST_FILE_LEFT)
        return take_path(ret->left, ret, err);
    return err_set(err, EINVAL, "a file with its content needs a \"name\"");
}

int request_files_parse(const char *body, const struct json_member *m, struct request *q,
                        struct err *err)
{
    struct json_items items = {.array = m->value}, counted = items;
    struct json_slice item;
    size_t n = 0;

    if (q->files)
        return err_set(err, EINVAL, "\"files\" and \"input_files\" exclude each other");
    if (!json_is_array(m->value))
        return refuse(err);
    while (n <= LIMIT_INPUT_FILES && json_items_next(&counted, &item))
        n++;
    if (n > LIMIT_INPUT_FILES)
        return err_set(err, EFBIG,
                       "\"files\" has more than %u entries; put them into an archive",
                       LIMIT_INPUT_FILES);
    q->files = calloc(n + 1, sizeof(*q->files));
    if (!q->files)
        return err_no_memory(err);
    while (json_items_next(&items, &item)) {
        struct request_file *file = &q->files[q->n_files++];
        int r;

        r = json_is_object(item) ? take_object(body, item, file, err)
                                 : take_id(item, file, err);
        if (r < 0)
            return r;
    }
    return 0;
}
