/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/uri.h"

#include "base/buf.h"
#include "base/percent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SKILL_SCHEME "skill://"
#define SKILL_END    "/SKILL.md"
#define FILE_SCHEME  "execution://"
#define FILE_MIDDLE  "/files/"

/* The text with its NUL, as an owned one. */
static char *finish(struct buf *out)
{
    (void)buf_append(out, "", 1);
    if (out->error)
        buf_finish(out);
    return (char *)out->data;
}

char *uri_for_skill(const char *name, const char *version)
{
    struct buf out = buf_init(4 * URI_MAX);

    (void)percent_printf(&out, SKILL_SCHEME "%s/%s" SKILL_END, name, version);
    return finish(&out);
}

char *uri_for_file(const char *execution_id, const char *path)
{
    struct buf out = buf_init(4 * URI_MAX);

    (void)percent_printf(&out, FILE_SCHEME "%s" FILE_MIDDLE "%S", execution_id, path);
    return finish(&out);
}

/* Appends what an encoded text stands for, encoded our way. A bad escape is an error of out. */
static void append_recoded(struct buf *out, const char *text, size_t len, bool slashes)
{
    for (size_t at = 0, n; !out->error && at < len; at += n) {
        int byte = percent_decode(text + at, len - at, &n);
        const char c = (char)byte;

        if (byte <= 0)
            out->error = -EINVAL;
        else
            (void)percent_append(out, &c, 1, slashes);
    }
}

/* True when no part between slashes is empty, "." or "..": they would name something else. */
static bool has_good_parts(const char *path)
{
    while (*path == '/') {
        size_t len = strcspn(++path, "/");
        if (len == 0 || (len <= 2 && memcmp(path, "..", len) == 0))
            return false;
        path += len;
    }
    return true;
}

static int copy_path(struct buf *out, char path[URI_MAX])
{
    (void)buf_append(out, "", 1);
    if (out->error || !has_good_parts((const char *)out->data))
        return -EINVAL;
    memcpy(path, out->data, out->len);
    return 0;
}

static int skill_to_path(const char *rest, char path[URI_MAX])
{
    _cleanup_buf_ struct buf out = buf_init(URI_MAX);
    const char *slash = strchr(rest, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;

    if (!end || strcmp(end, SKILL_END) != 0)
        return -EINVAL;
    (void)buf_printf(&out, "/v1/skills/");
    append_recoded(&out, rest, (size_t)(slash - rest), false);
    (void)buf_append(&out, "/", 1);
    append_recoded(&out, slash + 1, (size_t)(end - slash - 1), false);
    return copy_path(&out, path);
}

static int file_to_path(const char *rest, char path[URI_MAX])
{
    _cleanup_buf_ struct buf out = buf_init(URI_MAX);
    const char *slash = strchr(rest, '/');

    if (!slash || strncmp(slash, FILE_MIDDLE, sizeof(FILE_MIDDLE) - 1) != 0)
        return -EINVAL;
    (void)buf_printf(&out, "/v1/executions/");
    append_recoded(&out, rest, (size_t)(slash - rest), false);
    (void)buf_printf(&out, FILE_MIDDLE);
    rest = slash + sizeof(FILE_MIDDLE) - 1;
    append_recoded(&out, rest, strlen(rest), true);
    return copy_path(&out, path);
}

int uri_to_path(const char *uri, enum uri_kind *ret_kind, char path[URI_MAX])
{
    size_t skill = sizeof(SKILL_SCHEME) - 1, file = sizeof(FILE_SCHEME) - 1;

    if (strncmp(uri, SKILL_SCHEME, skill) == 0) {
        *ret_kind = URI_SKILL;
        return skill_to_path(uri + skill, path);
    }
    if (strncmp(uri, FILE_SCHEME, file) == 0) {
        *ret_kind = URI_FILE;
        return file_to_path(uri + file, path);
    }
    return -EINVAL;
}
