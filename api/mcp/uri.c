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

/* scheme FIRST middle SECOND end, and the daemon's path of the same: there, with no end. */
static const struct form {
    const char *scheme, *middle, *end;
    const char *path;
    bool slashes; /* may be in the second part */
} forms[] = {
    [URI_SKILL] = {SKILL_SCHEME, "/", SKILL_END, "/v1/skills/", false},
    [URI_FILE] = {FILE_SCHEME, FILE_MIDDLE, "", "/v1/executions/", true},
};

static int to_path(const struct form *form, const char *first, char path[URI_MAX])
{
    _cleanup_buf_ struct buf out = buf_init(URI_MAX);
    size_t first_len = strcspn(first, "/"), middle_len = strlen(form->middle);

    if (strncmp(first + first_len, form->middle, middle_len) != 0)
        return -EINVAL;
    const char *second = first + first_len + middle_len;
    size_t second_len = form->slashes ? strlen(second) : strcspn(second, "/");
    if (strcmp(second + second_len, form->end) != 0)
        return -EINVAL;
    (void)buf_printf(&out, "%s", form->path);
    append_recoded(&out, first, first_len, false);
    (void)buf_printf(&out, "%s", form->middle);
    append_recoded(&out, second, second_len, form->slashes);
    return copy_path(&out, path);
}

int uri_to_path(const char *uri, enum uri_kind *ret_kind, char path[URI_MAX])
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t len = strlen(forms[i].scheme);

        *ret_kind = (enum uri_kind)i;
        if (strncmp(uri, forms[i].scheme, len) == 0)
            return to_path(&forms[i], uri + len, path);
    }
    return -EINVAL;
}
