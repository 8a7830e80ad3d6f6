/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/wanted.h"

#include "api/skill/names.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHA256_TEXT 64u
#define BLOCK_BEGIN "# /// script"
#define BLOCK_END   "# ///"

/* A file that is being read. */
struct reading {
    struct wanted_list *list;
    const struct wanted_source *source;
    const char *path;
    unsigned line;
    struct skill_strings *files; /* more to read */
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

static int take_requirement(const struct reading *in, char *text, struct err *err)
{
    char *options = strstr(text, " --"), place[NAMES_SHOWN_MAX + 32];
    int r;

    if (text[0] == '.' || text[0] == '/' || strstr(text, "://") ||
        (strlen(text) > 4 && strcmp(text + strlen(text) - 4, ".whl") == 0))
        return refuse(in,
                      "it names a file or an address: put the wheel into wheels/ and write "
                      "NAME==VERSION",
                      err);
    if (options)
        *options++ = '\0';
    name_place(in, place, sizeof(place));
    r = wanted_add(in->list, place, text, strlen(text), err);
    if (r < 0 || !options)
        return r;
    return take_hashes(in, options, &in->list->items[in->list->n - 1].requirement, err);
}

/* The path of a file that another one names, from the skill's root. */
static int join(const struct reading *in, const char *name, struct err *err)
{
    const char *slash = strrchr(in->path, '/');
    char joined[2 * NAMES_PATH_MAX], path[NAMES_PATH_MAX + 1];

    (void)snprintf(joined, sizeof(joined), "%.*s%.1024s",
                   slash ? (int)(slash + 1 - in->path) : 0, in->path, name);
    if (names_clean(joined, path, NULL) < 0)
        return refuse(in, "-r names a file of the skill, below this one's folder", err);
    for (size_t i = 0; i < in->files->len; i++) {
        if (strcmp(in->files->items[i], path) == 0)
            return 0;
    }
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

    if (!file && strncmp(line, "--", 2) != 0)
        file = argument(line, "-r");
    if (file)
        return join(in, file, err);
    if (argument(line, "-e") || argument(line, "--editable"))
        return refuse(in, "nothing is built here: put a wheel into wheels/", err);
    return warn(in, line) < 0 ? err_no_memory(err) : 0;
}

/* A "#" at the start or behind white space begins a comment. */
static void cut_comment(char *line)
{
    size_t n;

    for (char *p = strchr(line, '#'); p; p = strchr(p + 1, '#')) {
        if (p == line || isspace((unsigned char)p[-1])) {
            *p = '\0';
            break;
        }
    }
    for (n = strlen(line); n > 0 && isspace((unsigned char)line[n - 1]); n--)
        line[n - 1] = '\0';
}

static int take_line(const struct reading *in, char *line, struct err *err)
{
    cut_comment(line);
    line += strspn(line, " \t\r\f\v");
    if (!*line)
        return 0;
    return line[0] == '-' ? take_option(in, line, err) : take_requirement(in, line, err);
}

/* Lines that end in a backslash are one with the next. */
static char *next_line(struct reading *in, char **at, unsigned *lines)
{
    char *line = *at, *end = line;

    if (!*line)
        return NULL;
    in->line = *lines + 1;
    for (;; end++) {
        end += strcspn(end, "\n");
        if (*end)
            ++*lines;
        if (!*end || end == line || end[-1] != '\\')
            break;
        end[-1] = end[0] = ' ';
    }
    *at = *end ? end + 1 : end;
    *end = '\0';
    return line;
}

static int take_lines(struct reading *in, char *text, struct err *err)
{
    unsigned lines = 0;
    int r = 0;

    for (char *line; r == 0 && (line = next_line(in, &text, &lines));)
        r = take_line(in, line, err);
    return r;
}

static int read_one(struct reading *in, struct err *err)
{
    _cleanup_free_ char *copy = NULL;
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
    copy = malloc(len + 1);
    if (!copy)
        return err_no_memory(err);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return take_lines(in, copy, err);
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

/* A part of a text, up to its end. */
struct span {
    const char *at, *end;
};

/* What comes behind the key of a block: past white space, line ends and comments. */
static void skip_blank(struct span *s)
{
    while (s->at < s->end) {
        if (*s->at == '#')
            s->at = memchr(s->at, '\n', (size_t)(s->end - s->at));
        else if (!isspace((unsigned char)*s->at))
            return;
        s->at = s->at ? s->at + 1 : s->end;
    }
}

/* The strings of an array of TOML. */
static int take_array(struct wanted_list *list, const char *by, struct span s, struct err *err)
{
    int r = 0;

    skip_blank(&s);
    if (s.at == s.end || *s.at != '[')
        return err_set(err, EINVAL, "%s: \"dependencies\" is a list of texts", by);
    s.at++;
    for (skip_blank(&s); r == 0; skip_blank(&s)) {
        char quote = s.at < s.end ? *s.at : '\0';
        const char *end;

        if (quote == ']')
            return 0;
        end = quote == '"' || quote == '\''
                  ? memchr(s.at + 1, quote, (size_t)(s.end - s.at) - 1)
                  : NULL;
        if (!end)
            return err_set(err, EINVAL, "%s: \"dependencies\" is a list of texts", by);
        r = wanted_add(list, by, s.at + 1, (size_t)(end - s.at) - 1, err);
        s.at = end + 1;
        skip_blank(&s);
        if (s.at < s.end && *s.at == ',')
            s.at++;
    }
    return r;
}

static bool is_line(struct span line, const char *text)
{
    size_t len = strlen(text);

    while (line.end > line.at && isspace((unsigned char)line.end[-1]))
        line.end--;
    return (size_t)(line.end - line.at) == len && memcmp(line.at, text, len) == 0;
}

static struct span next(struct span *left)
{
    const char *end = memchr(left->at, '\n', (size_t)(left->end - left->at));
    struct span line = {left->at, end ? end : left->end};

    left->at = end ? end + 1 : left->end;
    return line;
}

/* What the block holds, without the "# " of its lines. False: there is no whole block. */
static bool take_block(struct span text, struct buf *out)
{
    while (text.at < text.end) {
        if (is_line(next(&text), BLOCK_BEGIN))
            break;
    }
    while (text.at < text.end) {
        struct span line = next(&text);

        if (is_line(line, BLOCK_END))
            return true;
        if (line.at == line.end || *line.at != '#')
            return false;
        line.at++;
        line.at += line.at < line.end && *line.at == ' ';
        (void)buf_append(out, line.at, (size_t)(line.end - line.at));
        (void)buf_append(out, "\n", 1);
    }
    return false;
}

int wanted_read_script(struct wanted_list *list, const char *path, const char *text, size_t len,
                       struct err *err)
{
    static const char key[] = "dependencies";
    _cleanup_buf_ struct buf block = buf_init(WANTED_FILE_MAX);
    char by[NAMES_SHOWN_MAX + 32];
    struct span left;

    if (len > WANTED_FILE_MAX || !take_block((struct span){text, text + len}, &block) ||
        block.error || block.len == 0)
        return block.error == -ENOMEM ? err_no_memory(err) : 0;
    (void)snprintf(by, sizeof(by), "%s", names_shown(path).text);
    left = (struct span){(char *)block.data, (char *)block.data + block.len};
    while (left.at < left.end) {
        struct span line = next(&left);

        /* A table: what follows is a tool's. */
        if (line.at < line.end && *line.at == '[')
            return 0;
        if ((size_t)(line.end - line.at) < sizeof(key) ||
            memcmp(line.at, key, sizeof(key) - 1) != 0)
            continue;
        line.at += sizeof(key) - 1;
        line.end = left.end;
        skip_blank(&line);
        if (line.at == line.end || *line.at != '=')
            continue;
        line.at++;
        return take_array(list, by, line, err);
    }
    return 0;
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
