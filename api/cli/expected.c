/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/expected.h"

#include "api/cli/verbs.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/utf8.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

CLEANUP_WITH(char *, cJSON_free)

#define PATH_SHOWN  256u
#define VALUE_SHOWN 120u /* bytes */
#define ALIKE_SHOWN 20u  /* of what two long texts begin with */

struct comparison {
    cJSON *differences; /* owned */
    unsigned n;
    bool failed;           /* there was no memory */
    char path[PATH_SHOWN]; /* of what is looked at, "output.words[2]" */
};

int expected_check(const cJSON *expect, struct err *err)
{
    const cJSON *item;

    if (!cJSON_IsObject(expect))
        return err_set(err, EINVAL, "\"expect\" is no object");
    cJSON_ArrayForEach(item, expect) {
        const cJSON *file;

        if (strcmp(item->string, "output") == 0 ||
            (text_has_word("status stdout stderr", " ", item->string) &&
             cJSON_IsString(item)) ||
            (strcmp(item->string, "exit_code") == 0 && cJSON_IsNumber(item)))
            continue;
        if (strcmp(item->string, "files") != 0 || !cJSON_IsArray(item))
            return err_set(err, EINVAL,
                           "\"expect\" has \"%.64s\", but takes output (any value), files (an "
                           "array of names), status, stdout, stderr (a text each) and "
                           "exit_code (a number)",
                           item->string);
        cJSON_ArrayForEach(file, item) {
            if (!cJSON_IsString(file))
                return err_set(err, EINVAL, "\"files\" of \"expect\" has what is no name");
        }
    }
    return 0;
}

static void differ(struct comparison *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void differ(struct comparison *c, const char *format, ...)
{
    char text[PATH_SHOWN + 3 * VALUE_SHOWN + 128];
    va_list args;

    if (++c->n > EXPECTED_SHOWN_MAX)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    c->failed |= !cJSON_AddItemToArray(c->differences, cJSON_CreateString(text));
}

/* Up to so many bytes of a text, without a part of a character at its end. */
static int cut(const char *text, size_t max)
{
    return (int)utf8_fit(text, strlen(text), max);
}

struct shown {
    char text[VALUE_SHOWN + 8];
};

/* A value as it is shown, or its beginning. */
static struct shown show_value(const cJSON *value)
{
    _cleanup_(cJSON_free) char *text = cJSON_PrintUnformatted(value);
    struct shown shown;
    int len = cut(text ? text : "", VALUE_SHOWN);

    (void)snprintf(shown.text, sizeof(shown.text), "%.*s%s", len, text ? text : "",
                   text && text[len] ? "…" : "");
    return shown;
}

/* A text from a little before where it differs. */
static struct shown show_from(const char *text, size_t at)
{
    cJSON value = {.type = cJSON_String};
    char part[VALUE_SHOWN + 8];
    int len;

    at = at > ALIKE_SHOWN ? at - ALIKE_SHOWN : 0;
    at = (size_t)cut(text, at);
    len = cut(text + at, VALUE_SHOWN);
    (void)snprintf(part, sizeof(part), "%s%.*s", at > 0 ? "…" : "", len, text + at);
    value.valuestring = part;
    return show_value(&value);
}

static void compare_texts(struct comparison *c, const char *want, const char *got)
{
    size_t at = 0;

    while (want[at] && want[at] == got[at])
        at++;
    if (want[at] != got[at])
        differ(c, "%s: expected %s, got %s", c->path, show_from(want, at).text,
               show_from(got, at).text);
}

static bool is_equal(const cJSON *want, const cJSON *got)
{
    return (want->type & 0xff) == (got->type & 0xff) &&
           (!cJSON_IsNumber(want) || want->valuedouble == got->valuedouble);
}

static void compare(struct comparison *c, const cJSON *want, const cJSON *got);

/* With the path going on by what is said, as long as there is room. */
static void compare_below(struct comparison *c, const cJSON *want, const cJSON *got,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

static void compare_below(struct comparison *c, const cJSON *want, const cJSON *got,
                          const char *format, ...)
{
    const size_t len = strlen(c->path);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(c->path + len, sizeof(c->path) - len, format, args);
    va_end(args);
    c->path[cut(c->path, sizeof(c->path) - 2)] = '\0';
    compare(c, want, got);
    c->path[len] = '\0';
}

static void compare_arrays(struct comparison *c, const cJSON *want, const cJSON *got)
{
    const int n_want = cJSON_GetArraySize(want), n_got = cJSON_GetArraySize(got);
    const cJSON *item, *other = got->child;
    unsigned i = 0;

    if (n_want != n_got) {
        differ(c, "%s: expected %d items, got %d: %s", c->path, n_want, n_got,
               show_value(got).text);
        return;
    }
    cJSON_ArrayForEach(item, want) {
        compare_below(c, item, other, "[%u]", i++);
        other = other->next;
    }
}

static void compare(struct comparison *c, const cJSON *want, const cJSON *got)
{
    const cJSON *item;

    if (!got) {
        differ(c, "%s: expected %s, but it is not there", c->path, show_value(want).text);
    } else if (cJSON_IsObject(want) && cJSON_IsObject(got)) {
        cJSON_ArrayForEach(item, want) {
            compare_below(c, item, verbs_member(got, item->string), ".%.64s", item->string);
        }
    } else if (cJSON_IsArray(want) && cJSON_IsArray(got)) {
        compare_arrays(c, want, got);
    } else if (cJSON_IsString(want) && cJSON_IsString(got)) {
        compare_texts(c, want->valuestring, got->valuestring);
    } else if (!is_equal(want, got)) {
        differ(c, "%s: expected %s, got %s", c->path, show_value(want).text,
               show_value(got).text);
    }
}

static bool has_text(const cJSON *array, const char *text)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, array) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
            return true;
    }
    return false;
}

static void compare_files(struct comparison *c, const cJSON *want, const cJSON *got)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, want) {
        if (!has_text(got, item->valuestring))
            differ(c, "files: expected %s, there %s", show_value(item).text,
                   cJSON_GetArraySize(got) > 0 ? show_value(got).text : "is none");
    }
}

static void compare_stream(struct comparison *c, const char *stream, const char *want,
                           const cJSON *result)
{
    const char *got = verbs_text(result, stream);

    if (want && !strstr(got ? got : "", want))
        differ(c, "%s: expected \"%.*s\" in it, which is not there", stream,
               cut(want, VALUE_SHOWN), want);
}

static void compare_status(struct comparison *c, const char *want, const cJSON *result)
{
    const char *got = verbs_text(result, "status"), *why = verbs_text(result, "error");

    if (!got || strcmp(got, want) != 0)
        differ(c, "status: expected %s, got %s%s%.*s", want, got ? got : "none",
               why ? ": " : "", why ? cut(why, (size_t)2 * VALUE_SHOWN) : 0, why ? why : "");
}

cJSON *expected_compare(const cJSON *expect, const cJSON *result)
{
    struct comparison c = {.differences = cJSON_CreateArray()};
    const cJSON *output = verbs_member(expect, "output");
    const cJSON *code = verbs_member(expect, "exit_code");
    const char *status = verbs_text(expect, "status");

    compare_status(&c, status ? status : "success", result);
    if (code)
        compare_below(&c, code, verbs_member(result, "exit_code"), "exit_code");
    if (output)
        compare_below(&c, output, verbs_member(result, "output"), "output");
    compare_files(&c, verbs_member(expect, "files"), verbs_member(result, "files_list"));
    compare_stream(&c, "stdout", verbs_text(expect, "stdout"), result);
    compare_stream(&c, "stderr", verbs_text(expect, "stderr"), result);
    if (c.n > EXPECTED_SHOWN_MAX) {
        char more[32];

        (void)snprintf(more, sizeof(more), "and %u more", c.n - EXPECTED_SHOWN_MAX);
        c.failed |= !cJSON_AddItemToArray(c.differences, cJSON_CreateString(more));
    }
    if (!c.failed)
        return c.differences;
    cJSON_Delete(c.differences);
    return NULL;
}
