/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/language.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define BUILD   "build a static program for Linux on x86_64 and start it from a main.sh"
#define REWRITE "write it in Python (main.py), bash (main.sh) or JavaScript (main.js)"
#define COMPILE "make JavaScript of it (main.js), as tsc does"

static const struct language languages[] = {
    {"python", "Python", "py", "python python3 py", NULL},
    {"bash", "bash", "sh bash", "bash sh shell dash", NULL},
    {"node", "JavaScript", "js mjs cjs", "node nodejs javascript js", NULL},
    {NULL, "TypeScript", "ts tsx mts cts", "typescript ts deno bun tsx ts-node", COMPILE},
    {NULL, "Ruby", "rb", "ruby rb", REWRITE},
    {NULL, "Go", "go", "go golang", BUILD},
    {NULL, "Perl", "pl", "perl", "start it from a main.sh, by perl and its name"},
    {NULL, "PHP", "php", "php", REWRITE},
    {NULL, "Rust", "rs", "rust", BUILD},
    {NULL, "Java", "java", "java", REWRITE},
    {NULL, "R", "r R", "r rscript", REWRITE},
    {NULL, "Lua", "lua", "lua", REWRITE},
    {NULL, "PowerShell", "ps1", "powershell pwsh", REWRITE},
    {NULL, "C", "c", "c", BUILD},
    {NULL, "C++", "cc cpp", "c++ cpp", BUILD},
    {NULL, "zsh", "zsh", "zsh", REWRITE},
};

/* Whether one of the words is this one, of len bytes. */
static bool has_word(const char *words, const char *word, size_t len,
                     int (*compare)(const char *, const char *, size_t))
{
    while (*words) {
        size_t n = strcspn(words, " ");

        if (n == len && compare(words, word, len) == 0)
            return true;
        words += n + strspn(words + n, " ");
    }
    return false;
}

const struct language *language_of_path(const char *path)
{
    const char *name = basename(path), *dot = strrchr(name, '.');

    for (size_t i = 0; dot && dot > name && i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (has_word(languages[i].extensions, dot + 1, strlen(dot + 1), strncmp))
            return &languages[i];
    }
    return NULL;
}

static const struct language *find(const char *name, size_t len)
{
    for (size_t i = 0; len > 0 && i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (has_word(languages[i].names, name, len, strncasecmp))
            return &languages[i];
    }
    return NULL;
}

const struct language *language_of_name(const char *name)
{
    return find(name, strlen(name));
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Whether env(1) takes the word for itself: its own name, its options, its variables. */
static bool is_of_env(const char *word, size_t len)
{
    return word[0] == '-' || memchr(word, '=', len) || (len == 3 && !memcmp(word, "env", 3)) ||
           (len > 4 && !memcmp(word + len - 4, "/env", 4));
}

const char *language_interpreter(const char *text, size_t len, size_t *ret_len)
{
    const char *at = text + 2, *end;

    if (len < 3 || text[0] != '#' || text[1] != '!')
        return NULL;
    end = memchr(text, '\n', len);
    if (!end)
        end = text + len;
    while (at < end) {
        size_t n = 0;

        while (at + n < end && !is_separator(at[n]))
            n++;
        if (n > 0 && !is_of_env(at, n)) {
            const char *slash = memrchr(at, '/', n), *name = slash ? slash + 1 : at;

            *ret_len = (size_t)(at + n - name);
            return name;
        }
        at += n + 1;
    }
    return NULL;
}

const struct language *language_of_text(const char *text, size_t len)
{
    size_t n = 0;
    const char *name = language_interpreter(text, len, &n);

    /* "python3.11" without its version. */
    while (n > 1 && strchr("0123456789.", name[n - 1]))
        n--;
    return find(name, n);
}
