/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/wanted.h"

#include "api/skill/file_names.h"
#include "api/skill/requirements.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHA256_TEXT 64u

/* A file that is being read. */
struct reading {
    struct wanted_list *list;
    const struct wanted_source *source;
    const char *path;
    unsigned line;
    struct skill_strings *files; /* more to read */
    struct err *err;             /* may be NULL */
};

static int add(struct wanted_list *list, struct requirement *requirement, const char *by)
{
    struct wanted *items = reallocarray(list->items, list->n + 1, sizeof(*items));

    if (!items)
        return -ENOMEM;
    list->items = items;
    items[list->n].by = strdup(by);
    if (!items[list->n].by)
        return -ENOMEM;
    items[list->n++].requirement = *requirement;
    *requirement = (struct requirement){.marker = NULL};
    return 0;
}

int wanted_add(struct wanted_list *list, const char *by, const char *text, size_t len,
               struct err *err)
{
    _cleanup_requirement_ struct requirement requirement = {.marker = NULL};
    int r;

    if (list->n == WANTED_MAX)
        return err_set(err, EINVAL, "%s: a skill has at most %u requirements", by, WANTED_MAX);
    r = requirement_parse(text, len, &requirement, err);
    if (r < 0) {
        err_prefix(err, "%s", by);
        return r;
    }
    return add(list, &requirement, by) < 0 ? err_no_memory(err) : 0;
}

static void name_place(const struct reading *in, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s line %u", names_shown(in->path).text, in->line);
}

static int refuse(const struct reading *in, const char *what, struct err *err)
{
    char place[NAMES_SHOWN_MAX + 32];

    name_place(in, place, sizeof(place));
    return err_set(err, EINVAL, "%s: %s", place, what);
}

static int warn(const struct reading *in, const char *option)
{
    char place[NAMES_SHOWN_MAX + 32];

    name_place(in, place, sizeof(place));
    return skill_warn(&in->list->warnings,
                      "%s: \"%.40s\" is not looked at: packages come from the skill's "
                      "wheels, the host's wheelhouse and the image",
                      place, names_shown(option).text);
}

/* Takes "--hash=sha256:…" off the end of a requirement. */
static int take_hashes(const struct reading *in, char *text, struct requirement *requirement,
                       struct err *err)
{
    for (char *at = text, *word; (word = strsep(&at, " \t"));) {
        char *hash = strncmp(word, "--hash=sha256:", 14) == 0 ? word + 14 : NULL;

        if (!*word)
            continue;
        if (!hash || strlen(hash) != SHA256_TEXT)
            return refuse(in, "of the options behind a requirement there is --hash=sha256:…",
                          err);
        for (char *p = hash; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        if (skill_strings_insert(&requirement->sha256, hash, WANTED_MAX) < 0)
            return err_no_memory(err);
    }
    return 0;
}

static int take_requirement(const struct reading *in, const struct requirements_line *line,
                            struct err *err)
{
    char place[NAMES_SHOWN_MAX + 32];
    int r;

    name_place(in, place, sizeof(place));
    r = wanted_add(in->list, place, line->text, strlen(line->text), err);
    if (r < 0 || !line->options)
        return r;
    return take_hashes(in, line->options, &in->list->items[in->list->n - 1].requirement, err);
}

/* The path of a file that another one names, from the skill's root. */
static int join(const struct reading *in, const char *name, struct err *err)
{
    char joined[2 * NAMES_PATH_MAX], path[NAMES_PATH_MAX + 1];

    (void)snprintf(joined, sizeof(joined), "%.*s%.1024s", (int)(basename(in->path) - in->path),
                   in->path, name);
    if (names_clean(joined, path, NULL) < 0)
        return refuse(in, "-r names a file of the skill, below this one's folder", err);
    if (skill_strings_has(in->files, path))
        return 0;
    if (in->files->len == WANTED_FILES_MAX)
        return refuse(in, "there are too many files of requirements", err);
    return skill_strings_add(in->files, "%s", path) < 0 ? err_no_memory(err) : 0;
}

/* The argument of an option that stands behind it or "="; NULL: it is another option. */
static const char *argument(const char *line, const char *option)
{
    size_t len = strlen(option);

    if (strncmp(line, option, len) != 0)
        return NULL;
    line += len;
    if (option[1] == '-' && *line != '=' && *line != ' ')
        return NULL;
    return line + strspn(line, "= \t");
}

static int take_option(const struct reading *in, const char *line, struct err *err)
{
    const char *file = argument(line, "--requirement");

    if (in->list->n_options++ == WANTED_OPTIONS)
        return refuse(in, "there are too many lines of options", err);
    if (!file && strncmp(line, "--", 2) != 0)
        file = argument(line, "-r");
    if (file)
        return join(in, file, err);
    if (argument(line, "-e") || argument(line, "--editable"))
        return refuse(in, "nothing is built here: put a wheel into wheels/", err);
    return warn(in, line) < 0 ? err_no_memory(err) : 0;
}

static int take(void *ctx, const struct requirements_line *line)
{
    struct reading *in = ctx;

    in->line = line->line;
    switch (line->kind) {
    case REQUIREMENTS_OPTION:
        return take_option(in, line->text, in->err);
    case REQUIREMENTS_PLACE:
        return refuse(in,
                      "it names a file or an address: put the wheel into wheels/ and write "
                      "NAME==VERSION",
                      in->err);
    case REQUIREMENTS_PYTHON:
        return 0;
    case REQUIREMENTS_NAMED:
        break;
    }
    return take_requirement(in, line, in->err);
}

static int read_one(struct reading *in, struct err *err)
{
    const char *text;
    size_t len;
    int r = in->source->text(in->source->ctx, in->path, &text, &len);

    if (r == -ENOENT || r == -E2BIG)
        return err_set(err, EINVAL, "%s %s", names_shown(in->path).text,
                       r == -E2BIG ? "is too large" : "is named by -r and is not there");
    if (r < 0)
        return err_set_errno(err, -r, "cannot read %s", names_shown(in->path).text);
    if (memchr(text, 0, len))
        return err_set(err, EINVAL, "%s is no text", names_shown(in->path).text);
    in->err = err;
    r = requirements_read_file(text, len, take, in);
    return r == -ENOMEM ? err_no_memory(err) : r;
}

int wanted_read_file(struct wanted_list *list, const char *path,
                     const struct wanted_source *source, struct err *err)
{
    _cleanup_skill_strings_ struct skill_strings files = {0};
    int r = skill_strings_add(&files, "%s", path) < 0 ? err_no_memory(err) : 0;

    for (size_t i = 0; r == 0 && i < files.len; i++) {
        struct reading in = {
            .list = list, .source = source, .path = files.items[i], .files = &files};

        r = read_one(&in, err);
    }
    return r;
}

int wanted_read_script(struct wanted_list *list, const char *path, const char *text, size_t len,
                       struct err *err)
{
    struct reading in = {.list = list, .path = path, .err = err};
    struct err why = {0};
    int r = len > WANTED_FILE_MAX ? 0 : requirements_read_script(text, len, take, &in, &why);

    if (why.code)
        return err_set(err, -r, "%s: %s", names_shown(path).text, why.message);
    return r == -ENOMEM ? err_no_memory(err) : r;
}

void wanted_finish(struct wanted_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        requirement_finish(&list->items[i].requirement);
        free(list->items[i].by);
    }
    free(list->items);
    skill_strings_finish(&list->warnings);
    *list = (struct wanted_list){.n = 0};
}
