/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML of a settings file: maps of maps of scalars, every key known, none twice. */
#include "api/daemon/config/config_keys.h"

#include "api/skill/yamltree.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64u

static const struct yamltree_limits limits = {.depth = 4, .nodes = 1024};

struct reader {
    struct config *config;
    const char *file;
    struct err *err;
};

static int refuse(const struct reader *r, unsigned line, const char *what, const char *key)
{
    return err_set(r->err, EINVAL, "%s:%u: %s%.64s", r->file, line, what, key);
}

/* Appends the names of a section (or of the top level) to a message: what could be meant. */
static int refuse_unknown(const struct reader *r, unsigned line, const char *section,
                          const char *name)
{
    size_t len = strlen(section);
    char list[256] = "", last[NAME_MAX_BYTES] = "";
    size_t used = 0;

    for (const struct config_key *k = config_keys; k->name; k++) {
        const char *key = k->name;
        char word[NAME_MAX_BYTES];

        if (len > 0 && (strncmp(key, section, len) != 0 || key[len] != '.'))
            continue;
        (void)snprintf(word, sizeof(word), "%s", key + (len > 0 ? len + 1 : 0));
        word[strcspn(word, ".")] = '\0';
        if (strcmp(word, last) == 0 || used + strlen(word) + 3 > sizeof(list))
            continue;
        used +=
            (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", word);
        (void)snprintf(last, sizeof(last), "%s", word);
    }
    return err_set(r->err, EINVAL, "%s:%u: unknown key %s%s%.64s; there are %s", r->file, line,
                   section, len > 0 ? "." : "", name, list);
}

static int set_scalar(const struct reader *r, const char *name, const struct yamltree *value)
{
    char origin[256];

    if (value->kind != YAMLTREE_SCALAR)
        return refuse(r, value->line, "one value is needed for ", name);
    if (yamltree_is_null(value))
        return refuse(r, value->line, "no value (write \"\" for none): ", name);
    (void)snprintf(origin, sizeof(origin), "%.200s:%u", r->file, value->line);
    return config_set(r->config, name, value->text, origin, r->err);
}

static int read_map(const struct reader *r, const struct yamltree *map, const char *section);

static int read_entry(const struct reader *r, const struct yamltree *key,
                      const struct yamltree *value, const char *section)
{
    char name[2 * NAME_MAX_BYTES];

    if (key->kind != YAMLTREE_SCALAR)
        return refuse(r, key->line, "a key is not a word", "");
    if (key->len >= NAME_MAX_BYTES || strchr(key->text, '.'))
        return refuse_unknown(r, key->line, section, key->text);
    (void)snprintf(name, sizeof(name), "%s%s%s", section, *section ? "." : "", key->text);
    if (config_key_find(name))
        return set_scalar(r, name, value);
    if (*section || !config_section_find(name, strlen(name)))
        return refuse_unknown(r, key->line, section, key->text);
    if (value->kind != YAMLTREE_MAP)
        return refuse(r, value->line, "keys are needed below ", name);
    return read_map(r, value, name);
}

/* Recursion ends at the second level: there are no sections in sections. */
static int read_map(const struct reader *r, const struct yamltree *map, const char *section)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < map->n; i += 2) {
        const struct yamltree *key = map->children[i];

        if (key->kind == YAMLTREE_SCALAR &&
            yamltree_find(map, key->text) != map->children[i + 1])
            return refuse(r, key->line, "a second time: ", key->text);
        result = read_entry(r, key, map->children[i + 1], section);
    }
    return result;
}

/* The line of a second document, or 0: it would be left out in silence. */
static unsigned find_second_document(const char *text, size_t len)
{
    struct text_span rest = {text, len}, line;
    bool began = false;

    for (unsigned n = 1; text_take_line(&rest, &line); n++) {
        bool is_mark = text_begins_with(line, "---") || text_begins_with(line, "...");
        struct text_span bare = text_trim(line, " \t\r");

        if (is_mark && began)
            return n;
        if (bare.len > 0 && bare.text[0] != '#' && bare.text[0] != '%' && !is_mark)
            began = true;
    }
    return 0;
}

/* "line N: what" as "FILE:N: what". */
static int explain(const struct reader *r, int result, const struct err *why)
{
    unsigned line = 0;
    int skipped = 0;

    if (result == -ENOMEM)
        return err_no_memory(r->err);
    if (sscanf(why->message, "line %u: %n", &line, &skipped) == 1 && skipped > 0)
        return err_set(r->err, EINVAL, "%s:%u: %s", r->file, line, why->message + skipped);
    return err_set(r->err, EINVAL, "%s: %s", r->file,
                   why->message[0] ? why->message : "no YAML map");
}

int config_parse(struct config *config, const char *text, size_t len, const char *name,
                 struct err *err)
{
    const struct reader r = {.config = config, .file = name, .err = err};
    unsigned second = find_second_document(text, len);
    struct yamltree *root = NULL;
    struct err why = {0};
    int result;

    if (second > 0)
        return refuse(&r, second, "a second document begins", "");
    result = yamltree_parse(text, len, 1, &limits, &root, &why);
    if (result < 0)
        return explain(&r, result, &why);
    if (root && root->kind == YAMLTREE_SCALAR && root->plain && root->len == 0)
        result = 0; /* "---" and nothing after it */
    else if (root && root->kind != YAMLTREE_MAP)
        result = refuse(&r, root->line, "keys are needed, such as data: /var/lib/skillvm", "");
    else if (root)
        result = read_map(&r, root, "");
    yamltree_destroy(root);
    return result;
}
