/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/denied.h"

#include "api/skill/file_names.h"
#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What a line says was denied: the file's name as the line has it. */
struct denied {
    struct text_span path;
    bool read_only; /* EROFS, which only a write gives; else EACCES */
    bool quoted;    /* the name, or it is known that no program was to be started */
};

static bool finds(struct text_span part, const char *text)
{
    return part.len > 0 && memmem(part.text, part.len, text, strlen(text));
}

/* What stands between a quotation mark and the next one of its kind. */
static bool take_quoted(const char *text, const char *end, struct text_span *ret)
{
    const char *close = text < end && (*text == '\'' || *text == '"')
                            ? memchr(text + 1, *text, (size_t)(end - text - 1))
                            : NULL;

    *ret = (struct text_span){text + 1, close ? (size_t)(close - text - 1) : 0};
    return close != NULL;
}

static bool is_in(struct text_span path, const char *folder)
{
    size_t len = strlen(folder);

    return text_begins_with(path, folder) && (path.len == len || path.text[len] == '/');
}

/* Of those that a skill may write to nothing can be said, nor of the kernel's. */
static bool is_elsewhere(struct text_span path)
{
    static const char *const folders[] = {
        "/tmp", "/sandbox/out", "/sandbox/in", "/sandbox/session", "/proc", "/sys", "/dev"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (is_in(path, folders[i]))
            return true;
    return false;
}

/* "'a'", or that and " -> 'b'", of which one was denied. */
static bool take_paths(const char *text, const char *end, struct text_span *ret)
{
    struct text_span other;

    if (!take_quoted(text, end, ret))
        return false;
    text = ret->text + ret->len + 1;
    if (is_elsewhere(*ret) && end - text > 4 && memcmp(text, " -> ", 4) == 0 &&
        take_quoted(text + 4, end, &other))
        *ret = other;
    return true;
}

/* "[Errno 13] Permission denied: 'a'" */
static bool look_at_python(struct text_span line, struct denied *ret)
{
    static const char *const signs[] = {"[Errno 13] Permission denied: ",
                                        "[Errno 30] Read-only file system: "};
    const char *end = line.text + line.len;

    for (size_t i = 0; i < 2; i++) {
        const char *at = memmem(line.text, line.len, signs[i], strlen(signs[i]));

        if (!at || !take_paths(at + strlen(signs[i]), end, &ret->path))
            continue;
        ret->read_only = i == 1;
        ret->quoted = true;
        return true;
    }
    return false;
}

/* "EACCES: permission denied, open 'a'", but not what is only started. */
static bool look_at_node(struct text_span line, struct denied *ret)
{
    static const char *const signs[] = {"EACCES: permission denied, ",
                                        "EROFS: read-only file system, "};
    const char *end = line.text + line.len;

    for (size_t i = 0; i < 2; i++) {
        const char *at = memmem(line.text, line.len, signs[i], strlen(signs[i]));
        size_t word = 0;

        if (!at)
            continue;
        at += strlen(signs[i]);
        while (at + word < end && isalnum((unsigned char)at[word]))
            word++;
        if ((word == 5 && memcmp(at, "spawn", 5) == 0) || end - at <= (ptrdiff_t)word ||
            !take_paths(at + word + 1, end, &ret->path))
            continue;
        ret->read_only = i == 1;
        ret->quoted = true;
        return true;
    }
    return false;
}

/* The name before the words at the end of a line, quoted as ls and its like do it, or a word.
 */
static bool take_last(struct text_span line, struct denied *ret)
{
    static const char *const quotes[][2] = {{"'", "'"}, {"\xe2\x80\x98", "\xe2\x80\x99"}};
    const char *begin = line.text + line.len;

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(quotes[i][0]);

        if (line.len < 2 * n || memcmp(begin - n, quotes[i][1], n) != 0)
            continue;
        for (begin -= n; begin - n >= line.text; begin--)
            if (memcmp(begin - n, quotes[i][0], n) == 0) {
                size_t len = (size_t)(line.text + line.len - n - begin);

                ret->path = (struct text_span){begin, len};
                ret->quoted = true;
                return len > 0;
            }
        return false;
    }
    while (begin > line.text && begin[-1] != ' ')
        begin--;
    ret->path = (struct text_span){begin, (size_t)(line.text + line.len - begin)};
    ret->quoted = finds(line, "cannot create ");
    return begin > line.text && ret->path.len > 0;
}

/* "touch: cannot touch 'a': Permission denied", "main.sh: line 1: a: Permission denied". */
static bool look_at_shell(struct text_span line, struct denied *ret)
{
    static const char *const ends[] = {": Permission denied", ": Read-only file system"};

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(ends[i]);

        ret->read_only = i == 1;
        if (line.len > n && memcmp(line.text + line.len - n, ends[i], n) == 0)
            return take_last((struct text_span){line.text, line.len - n}, ret);
    }
    return false;
}

/*
 * Whether it was a write, as far as a name tells it: outside of the skill's folders an EACCES
 * is of one that may not be read, and a path that a shell was given is one that it may have
 * started.
 */
static bool is_write(const struct denied *denied)
{
    const struct text_span *path = &denied->path;

    if (path->len == 0 || is_elsewhere(*path))
        return false;
    if (denied->read_only)
        return true;
    if (path->text[0] == '/' && !is_in(*path, "/sandbox"))
        return false;
    return denied->quoted || !memchr(path->text, '/', path->len);
}

static void tell(struct text_span path, char *ret, size_t size)
{
    static const char result[] = "output.json";
    char name[NAMES_PATH_MAX + 1];
    const char *remedy = "files for the caller go to /sandbox/out/files (SANDBOX_FILES_DIR), "
                         "others to /tmp";

    if (path.len >= sizeof(result) - 1 &&
        memcmp(path.text + path.len - (sizeof(result) - 1), result, sizeof(result) - 1) == 0)
        remedy = "the result goes to /sandbox/out/output.json (SANDBOX_OUTPUT)";
    (void)snprintf(name, sizeof(name), "%.*s", (int)path.len, path.text);
    (void)snprintf(ret, size,
                   "it could not write \"%s\": the folders of a skill are read-only; %s",
                   names_shown(name).text, remedy);
}

int denied_explain(const char *log, size_t len, char *ret, size_t size)
{
    struct text_span rest = {log, len}, line;
    bool starting = false;
    int found = 0;

    while (text_take_line(&rest, &line)) {
        struct denied denied = {.read_only = false};
        bool python = look_at_python(line, &denied);

        /* A traceback through it is of a program that could not be started. */
        starting = starting || finds(line, "subprocess.py\"");
        if (!python && !look_at_node(line, &denied) && !look_at_shell(line, &denied))
            continue;
        if (is_write(&denied) && !(python && starting && !denied.read_only)) {
            tell(denied.path, ret, size);
            found = 1;
        }
        starting = starting && !python;
    }
    return found;
}
