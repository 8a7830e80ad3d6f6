/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_names.h"

#include "api/skill/sha256.h"
#include "api/tools/run_code.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL_MAX   4096u /* of a name before it is made to fit */
#define DIGITS     8u    /* of the digest, and as many again while two are alike */
#define DIGITS_MAX 56u

/* One tool on its way to its name. */
struct candidate {
    const struct tool_identity *tool;
    char (*name)[TOOL_NAME_SIZE];
    unsigned digits; /* of the digest at its end */
    bool is_own;     /* the name is the skill's own, to the letter */
};

char *tool_name_clean(const char *text, const char *extra, char *out, size_t size)
{
    size_t n = 0;

    for (; *text && n + 1 < size; text++) {
        unsigned char c = (unsigned char)*text;

        /* One '_' for a character of several bytes. */
        if (utf8_continues(*text))
            continue;
        out[n++] = (c < 0x80 && isalnum(c)) || strchr(extra, c) ? (char)c : '_';
    }
    out[n] = '\0';
    return out;
}

/* The whole name, however long it is. */
static void write_full(const struct tool_identity *tool, char full[FULL_MAX])
{
    const char *script = tool->script;
    char name[FULL_MAX / 2], *dot;
    size_t at;

    tool_name_clean(tool->skill, "_-", full, FULL_MAX / 2);
    if (!script)
        return;
    if (strncmp(script, "scripts/", 8) == 0)
        script += 8;
    (void)snprintf(name, sizeof(name), "%s", script);
    dot = strrchr(name, '.');
    if (dot && dot > name && !strchr(dot, '/'))
        *dot = '\0';
    at = strlen(full);
    full[at++] = '_';
    full[at++] = '_';
    tool_name_clean(name, "_-", full + at, FULL_MAX - at);
}

/* Tools of that name are no skill's. */
static bool is_taken(const char *name)
{
    return strcmp(name, RUN_CODE_NAME) == 0 || strcmp(name, "list_skills") == 0 ||
           strcmp(name, "get_skill_info") == 0;
}

static int write_name(struct candidate *c)
{
    char full[FULL_MAX], digest[SHA256_HEX_SIZE];
    _cleanup_buf_ struct buf identity = buf_init(2 * FULL_MAX);
    size_t keep;
    int r;

    write_full(c->tool, full);
    if (c->digits == 0 && (strlen(full) >= TOOL_NAME_SIZE || !full[0] || is_taken(full)))
        c->digits = DIGITS;
    if (c->digits == 0) {
        (void)snprintf(*c->name, TOOL_NAME_SIZE, "%.64s", full);
        c->is_own = !c->tool->script && strcmp(full, c->tool->skill) == 0;
        return 0;
    }
    /* The byte between the two is in neither. */
    r = buf_printf(&identity, "%s\n%s", c->tool->skill, c->tool->script ? c->tool->script : "");
    if (r < 0)
        return r;
    r = sha256_of(identity.data, identity.len, digest);
    if (r < 0)
        return r;
    keep = TOOL_NAME_SIZE - 2 - c->digits;
    (void)snprintf(*c->name, TOOL_NAME_SIZE, "%.*s_%.*s", (int)keep, full, (int)c->digits,
                   digest);
    c->is_own = false;
    return 0;
}

/* Alike ones beside each other; among them the one that keeps its name first. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = strcmp(*x->name, *y->name);

    return order ? order : (int)y->is_own - (int)x->is_own;
}

/* Makes alike ones longer. *ret_again says whether there were any. */
static int part(struct candidate *list, size_t n, bool *ret_again)
{
    *ret_again = false;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strcmp(*list[i].name, *list[end].name) == 0;)
            end++;
        if (end == i + 1)
            continue;
        for (size_t k = i; k < end; k++) {
            struct candidate *c = &list[k];

            if (c->is_own || c->digits >= DIGITS_MAX)
                continue;
            c->digits += DIGITS;
            *ret_again = true;
        }
    }
    for (size_t i = 0; *ret_again && i < n; i++) {
        int r = write_name(&list[i]);

        if (r < 0)
            return r;
    }
    return 0;
}

int tool_names_assign(const struct tool_identity *tools, size_t n,
                      char (*ret_names)[TOOL_NAME_SIZE])
{
    struct candidate *list = calloc(n + 1, sizeof(*list));
    bool again = n > 0;
    int r = list ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < n; i++) {
        list[i] = (struct candidate){.tool = &tools[i], .name = &ret_names[i]};
        r = write_name(&list[i]);
    }
    while (r == 0 && again) {
        qsort(list, n, sizeof(*list), compare);
        r = part(list, n, &again);
    }
    free(list);
    return r;
}
