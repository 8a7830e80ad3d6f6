/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe of a guest root image; libyaml stays inside this file. */
#include "images/recipe.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/dotted.h"

enum value_kind {
    VALUE_NONE,
    VALUE_MODULE,
    VALUE_BROUGHT,
    VALUE_MODE,
    VALUE_TEXT,
    VALUE_INPUT
};

struct key {
    const char *name;
    size_t offset; /* of the struct recipe_list in struct recipe */
    enum value_kind kind;
};

static const struct key LIST_KEYS[] = {
    {"packages", offsetof(struct recipe, packages), VALUE_NONE},
    {"drop", offsetof(struct recipe, drop), VALUE_NONE},
    {"keep", offsetof(struct recipe, keep), VALUE_NONE},
    {"compile_python", offsetof(struct recipe, compile_python), VALUE_NONE},
    {"warm", offsetof(struct recipe, warm), VALUE_MODULE},
    {"brings", offsetof(struct recipe, brings), VALUE_BROUGHT},
    {"directories", offsetof(struct recipe, directories), VALUE_MODE},
    {"links", offsetof(struct recipe, links), VALUE_TEXT},
    {"files", offsetof(struct recipe, files), VALUE_TEXT},
    {"inputs", offsetof(struct recipe, inputs), VALUE_INPUT},
};

/* A recipe, what it extends, and so on. */
#define EXTENDS_MAX 4u

struct reader {
    yaml_document_t *document;
    struct err *err;
};

static int refuse(struct reader *r, const yaml_node_t *node, const char *what)
{
    return err_set(r->err, EINVAL, "line %zu: %s", node ? node->start_mark.line + 1 : 0, what);
}

/* The text of a scalar, or NULL when the node is none or holds a NUL. Borrowed. */
static const char *scalar_text(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

static bool path_is_clean(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *part = path; part;) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part = part[len] ? part + len + 1 : NULL;
    }
    return true;
}

static int read_mode(struct reader *r, const yaml_node_t *node, mode_t *ret_mode)
{
    const char *text = scalar_text(node);
    size_t len = text ? strlen(text) : 0;
    if (len != 4 || strspn(text, "01234567") != len)
        return refuse(r, node, "a mode is four octal digits in quotes");
    *ret_mode = (mode_t)strtoul(text, NULL, 8);
    return 0;
}

static int read_input(struct reader *r, const yaml_node_t *node, struct recipe_item *item)
{
    if (node->type != YAML_MAPPING_NODE)
        return refuse(r, node, "an input is { from: NAME, mode: \"0755\" }");
    const char *from = NULL;
    item->mode = 0644;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const char *key = scalar_text(yaml_document_get_node(r->document, pair->key));
        yaml_node_t *value = yaml_document_get_node(r->document, pair->value);
        if (key && !strcmp(key, "mode")) {
            int result = read_mode(r, value, &item->mode);
            if (result < 0)
                return result;
        } else if (key && !strcmp(key, "from")) {
            from = scalar_text(value);
        } else {
            return refuse(r, node, "an input has only from and mode");
        }
    }
    if (!from || !*from)
        return refuse(r, node, "an input needs from");
    item->value = strdup(from);
    return item->value ? 0 : -ENOMEM;
}

/* "KIND NAME", as a line of a manifest (contents.h) whose name no version follows. */
static bool is_brought(const char *text)
{
    static const char *const kinds[] = {"module ", "program ", "node "};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i]);

        if (strncmp(text, kinds[i], n) == 0)
            return text[n] && !text[n + strcspn(text + n, " \t\r\n")];
    }
    return false;
}

static int read_item(struct reader *r, const struct key *key, const yaml_node_t *path,
                     const yaml_node_t *value, struct recipe_item *item)
{
    const char *text = scalar_text(path);
    if (!text || !path_is_clean(text))
        return refuse(r, path, "not a relative path or name");
    item->path = strdup(text);
    if (!item->path)
        return -ENOMEM;
    switch (key->kind) {
    case VALUE_NONE:
        return 0;
    case VALUE_MODULE:
        return dotted_is_name(text, strlen(text)) ? 0 : refuse(r, path, "not a module's name");
    case VALUE_BROUGHT:
        return is_brought(text)
                   ? 0
                   : refuse(r, path, "not \"module NAME\", \"program NAME\" or \"node NAME\"");
    case VALUE_MODE:
        return read_mode(r, value, &item->mode);
    case VALUE_INPUT:
        return read_input(r, value, item);
    case VALUE_TEXT:
        text = scalar_text(value);
        if (!text)
            return refuse(r, path, "needs a text");
        item->mode = 0644;
        item->value = strdup(text);
        return item->value ? 0 : -ENOMEM;
    }
    return -EINVAL;
}

static int read_list(struct reader *r, const struct key *key, const yaml_node_t *node,
                     struct recipe_list *list)
{
    bool plain = key->kind <= VALUE_BROUGHT;
    if (node->type != (plain ? YAML_SEQUENCE_NODE : YAML_MAPPING_NODE))
        return refuse(r, node, plain ? "needs a list" : "needs a mapping");
    if (list->items)
        return refuse(r, node, "the same key twice");
    size_t len = plain
                     ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start)
                     : (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    if (len > RECIPE_ITEMS_MAX)
        return refuse(r, node, "too many items");
    list->items = calloc(len + 1, sizeof(*list->items));
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++) {
        const yaml_node_t *path, *value = NULL;
        if (plain) {
            path = yaml_document_get_node(r->document, node->data.sequence.items.start[i]);
        } else {
            const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
            path = yaml_document_get_node(r->document, pair->key);
            value = yaml_document_get_node(r->document, pair->value);
        }
        /* Counted first: what a failed read left behind is freed with the rest. */
        list->len = i + 1;
        int result = read_item(r, key, path, value, &list->items[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_name(struct reader *r, const yaml_node_t *node, char **ret_name)
{
    const char *text = scalar_text(node);
    if (!text || !path_is_clean(text) || strchr(text, '/') || *ret_name)
        return refuse(r, node, "needs one plain word, once");
    *ret_name = strdup(text);
    return *ret_name ? 0 : -ENOMEM;
}

/* "768Mi", which the image's manifest says as it is here. */
static int read_memory(struct reader *r, const yaml_node_t *node, char **ret_memory)
{
    const char *text = scalar_text(node);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    const unsigned long mib = digits > 0 && digits < 6 ? strtoul(text, NULL, 10) : 0;

    if (*ret_memory || mib < RECIPE_MEMORY_MIN_MIB || mib > RECIPE_MEMORY_MAX_MIB ||
        *text == '0' || strcmp(text + digits, "Mi") != 0)
        return refuse(r, node, "memory is one size from 32Mi to 1024Mi, once");
    *ret_memory = strdup(text);
    return *ret_memory ? 0 : -ENOMEM;
}

/* Which it is, and which there are. */
static int refuse_key(struct reader *r, const yaml_node_t *node, const char *name)
{
    char what[512];
    size_t n = (size_t)snprintf(what, sizeof(what),
                                "there is no key \"%.64s\": a recipe has name, suite, extends, "
                                "memory",
                                name ? name : "");

    for (size_t i = 0; i < sizeof(LIST_KEYS) / sizeof(LIST_KEYS[0]); i++)
        n += (size_t)snprintf(what + n, sizeof(what) - n, ", %s", LIST_KEYS[i].name);
    return refuse(r, node, what);
}

static int read_document(struct reader *r, struct recipe *recipe)
{
    const yaml_node_t *root = yaml_document_get_root_node(r->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return err_set(r->err, EINVAL, "not a mapping");
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key_node = yaml_document_get_node(r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(r->document, pair->value);
        const char *name = scalar_text(key_node);
        int result = -ENOENT;
        if (name && !strcmp(name, "name"))
            result = read_name(r, value, &recipe->name);
        else if (name && !strcmp(name, "suite"))
            result = read_name(r, value, &recipe->suite);
        else if (name && !strcmp(name, "extends"))
            result = read_name(r, value, &recipe->extends);
        else if (name && !strcmp(name, "memory"))
            result = read_memory(r, value, &recipe->memory);
        for (size_t i = 0; name && i < sizeof(LIST_KEYS) / sizeof(LIST_KEYS[0]); i++) {
            if (strcmp(name, LIST_KEYS[i].name) != 0)
                continue;
            void *list = (char *)recipe + LIST_KEYS[i].offset;
            result = read_list(r, &LIST_KEYS[i], value, list);
        }
        if (result == -ENOENT)
            return refuse_key(r, key_node, name);
        if (result < 0)
            return result;
    }
    if (!recipe->name || (recipe->packages.len && !recipe->extends && !recipe->suite))
        return err_set(r->err, EINVAL,
                       "name is needed, and with packages suite or extends is too");
    return 0;
}

int recipe_read(FILE *file, struct recipe *ret_recipe, struct err *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    struct recipe recipe = {0};

    if (!yaml_parser_initialize(&parser))
        return err_set(err, ENOMEM, "out of memory");
    yaml_parser_set_input_file(&parser, file);
    if (!yaml_parser_load(&parser, &document)) {
        int result = err_set(err, EINVAL, "line %zu: %s", parser.problem_mark.line + 1,
                             parser.problem ? parser.problem : "not YAML");
        yaml_parser_delete(&parser);
        return result;
    }
    struct reader reader = {.document = &document, .err = err};
    int result = read_document(&reader, &recipe);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    if (result < 0) {
        recipe_finish(&recipe);
        return err_set(err, -result, "out of memory");
    }
    *ret_recipe = recipe;
    return 0;
}

static int add_source(struct recipe *recipe, const char *path)
{
    struct recipe_item *items = calloc(1, sizeof(*items));

    if (!items || !(items->path = strdup(path))) {
        free(items);
        return -ENOMEM;
    }
    recipe->sources = (struct recipe_list){.items = items, .len = 1};
    return 0;
}

/* Puts the items of base before those of list; nothing is left in base. */
static int prepend(struct recipe_list *list, struct recipe_list *base)
{
    size_t len = base->len + list->len;
    struct recipe_item *items =
        len > 0 ? reallocarray(base->items, len, sizeof(*items)) : base->items;

    if (len > 0 && !items)
        return -ENOMEM;
    if (list->len > 0)
        memcpy(items + base->len, list->items, list->len * sizeof(*items));
    free(list->items);
    *list = (struct recipe_list){.items = items, .len = len};
    *base = (struct recipe_list){0};
    return 0;
}

static void inherit(char **text, char **of_base)
{
    if (!*text)
        *text = steal_ptr(of_base);
}

static int merge(struct recipe *recipe, struct recipe *base)
{
    int r = prepend(&recipe->sources, &base->sources);

    for (size_t i = 0; i < sizeof(LIST_KEYS) / sizeof(LIST_KEYS[0]) && r == 0; i++) {
        void *list = (char *)recipe + LIST_KEYS[i].offset;
        void *of_base = (char *)base + LIST_KEYS[i].offset;

        r = prepend(list, of_base);
    }
    inherit(&recipe->suite, &base->suite);
    inherit(&recipe->memory, &base->memory);
    return r;
}

static int load(const char *path, const char *shipped, unsigned depth, struct recipe *recipe,
                struct err *err);

/* Where the recipe is that another extends: beside it, else in the folder shipped. */
static char *find_base(const char *path, const char *shipped, const char *name)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char *found;

    if (asprintf(&found, "%.*s%s", folder, path, name) < 0)
        return NULL;
    if (!shipped || access(found, F_OK) == 0)
        return found;
    free(found);
    return asprintf(&found, "%s/%s", shipped, name) < 0 ? NULL : found;
}

/* Adds what a recipe extends. */
static int load_base(const char *path, const char *shipped, unsigned depth,
                     struct recipe *recipe, struct err *err)
{
    _cleanup_free_ char *base_path = NULL;
    struct recipe base = {0};
    int r;

    if (depth == EXTENDS_MAX)
        return err_set(err, EINVAL, "%s: too many recipes extend one another", path);
    base_path = find_base(path, shipped, recipe->extends);
    if (!base_path)
        return err_set(err, ENOMEM, "out of memory");
    r = load(base_path, shipped, depth + 1, &base, err);
    if (r < 0)
        return r;
    r = merge(recipe, &base);
    recipe_finish(&base);
    return r < 0 ? err_set(err, -r, "out of memory") : 0;
}

/* The recipe is untouched on failure. */
static int load(const char *path, const char *shipped, unsigned depth, struct recipe *recipe,
                struct err *err)
{
    struct recipe read = {0};
    FILE *file = fopen(path, "re");
    int r;

    if (!file)
        return err_set_errno(err, errno, "%s", path);
    r = recipe_read(file, &read, err);
    fclose(file);
    if (r < 0) {
        err_prefix(err, "%s", path);
        return r;
    }
    r = add_source(&read, path) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
    if (r == 0 && read.extends)
        r = load_base(path, shipped, depth, &read, err);
    if (r < 0)
        recipe_finish(&read);
    else
        *recipe = read;
    return r;
}

int recipe_load(const char *path, const char *shipped, struct recipe *ret_recipe,
                struct err *err)
{
    return load(path, shipped, 1, ret_recipe, err);
}

static void list_finish(struct recipe_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        free(list->items[i].path);
        free(list->items[i].value);
    }
    free(list->items);
}

void recipe_finish(struct recipe *recipe)
{
    for (size_t i = 0; i < sizeof(LIST_KEYS) / sizeof(LIST_KEYS[0]); i++) {
        void *at = (char *)recipe + LIST_KEYS[i].offset;

        list_finish(at);
    }
    list_finish(&recipe->sources);
    free(recipe->name);
    free(recipe->suite);
    free(recipe->extends);
    free(recipe->memory);
    memset(recipe, 0, sizeof(*recipe));
}

static bool list_covers(const struct recipe_list *list, const char *path)
{
    for (size_t i = 0; i < list->len; i++)
        if (fnmatch(list->items[i].path, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0)
            return true;
    return false;
}

bool recipe_wants(const struct recipe *recipe, const char *path)
{
    return !list_covers(&recipe->drop, path) || list_covers(&recipe->keep, path);
}
