/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/specification.h"

#include "api/skill/frontmatter.h"
#include "api/skill/names.h"
#include "api/skill/yamltree.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

#define NAME_MAX_CODE_POINTS          64u
#define DESCRIPTION_MAX_CODE_POINTS   1024u
#define COMPATIBILITY_MAX_CODE_POINTS 500u

static size_t code_points(const char *text)
{
    return u8_mbsnlen((const uint8_t *)text, strlen(text));
}

/* Takes white space off the end of what is left of a text. */
static size_t trim_end(const uint8_t *at, size_t len)
{
    const uint8_t *before;
    ucs4_t c;

    while ((before = u8_prev(&c, at + len, at)) && uc_is_property_white_space(c))
        len = (size_t)(before - at);
    return len;
}

/* The text in NFKC, NUL-terminated; NULL without memory. */
static char *normalize(const uint8_t *text, size_t len)
{
    size_t n = 0;
    uint8_t *normal = u8_normalize(UNINORM_NFKC, text, len, NULL, &n);
    char *given = normal || len == 0 ? strndup(normal ? (const char *)normal : "", n) : NULL;

    free(normal);
    return given;
}

/* The same without white space at its ends. */
static char *normalize_name(const char *text)
{
    const uint8_t *at = (const uint8_t *)text, *next;
    ucs4_t c;

    while ((next = u8_next(&c, at)) && uc_is_property_white_space(c))
        at = next;
    return normalize(at, trim_end(at, strlen((const char *)at)));
}

static int is_lower(const char *name, bool *ret_yes)
{
    size_t n = 0;
    uint8_t *lower = u8_tolower((const uint8_t *)name, strlen(name), NULL, NULL, NULL, &n);

    if (!lower && errno == ENOMEM)
        return -ENOMEM;
    *ret_yes = lower && n == strlen(name) && memcmp(lower, name, n) == 0;
    free(lower);
    return 0;
}

/* A letter, or what has a numeric value, of any script; or a hyphen. */
static bool has_good_characters(const char *name)
{
    const uint8_t *at = (const uint8_t *)name;
    ucs4_t c;

    while ((at = u8_next(&c, at))) {
        if (c != '-' && !uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L) &&
            uc_numeric_value(c).denominator == 0)
            return false;
    }
    return true;
}

static int check_folder(const char *folder, const char *name, struct skill_strings *errors)
{
    char shown[NAMES_SHOWN_MAX], other[NAMES_SHOWN_MAX];
    char *normal = folder ? normalize((const uint8_t *)folder, strlen(folder)) : NULL;
    int result = 0;

    if (folder && !normal)
        return -ENOMEM;
    if (folder && strcmp(normal, name) != 0)
        result = skill_strings_add(errors, "the folder is called \"%s\" but the skill \"%s\"",
                                   names_show(folder, shown), names_show(name, other));
    free(normal);
    return result;
}

static int check_normal_name(const char *name, const char *folder, struct skill_strings *errors)
{
    char shown[NAMES_SHOWN_MAX];
    size_t len = strlen(name);
    bool lower;
    int result = is_lower(name, &lower);

    names_show(name, shown);
    if (result == 0 && code_points(name) > NAME_MAX_CODE_POINTS)
        result =
            skill_strings_add(errors, "the name is over %u characters", NAME_MAX_CODE_POINTS);
    if (result == 0 && !lower)
        result = skill_strings_add(errors, "the name \"%s\" is not in lower case", shown);
    if (result == 0 && (name[0] == '-' || name[len - 1] == '-'))
        result =
            skill_strings_add(errors, "the name \"%s\" begins or ends with a hyphen", shown);
    if (result == 0 && strstr(name, "--"))
        result = skill_strings_add(errors, "the name \"%s\" has two hyphens in a row", shown);
    if (result == 0 && !has_good_characters(name))
        result = skill_strings_add(
            errors, "the name \"%s\" has other characters than letters, digits and hyphens",
            shown);
    return result ? result : check_folder(folder, name, errors);
}

static bool is_blank(const char *text)
{
    ucs4_t c;

    for (const uint8_t *at = (const uint8_t *)text; (at = u8_next(&c, at));) {
        if (!uc_is_property_white_space(c))
            return false;
    }
    return true;
}

static int check_name(const struct yamltree *node, const char *folder,
                      struct skill_strings *errors)
{
    char *name;
    int result;

    if (!node)
        return skill_strings_add(errors, "there is no name");
    if (node->kind != YAMLTREE_SCALAR || is_blank(node->text))
        return skill_strings_add(errors, "line %u: the name must be a text", node->line);
    name = normalize_name(node->text);
    result = name ? check_normal_name(name, folder, errors) : -ENOMEM;
    free(name);
    return result;
}

static int check_description(const struct yamltree *node, struct skill_strings *errors)
{
    if (!node)
        return skill_strings_add(errors, "there is no description");
    if (node->kind != YAMLTREE_SCALAR || is_blank(node->text))
        return skill_strings_add(errors, "line %u: the description must be a text", node->line);
    if (code_points(node->text) > DESCRIPTION_MAX_CODE_POINTS)
        return skill_strings_add(errors, "the description is over %u characters",
                                 DESCRIPTION_MAX_CODE_POINTS);
    return 0;
}

static int check_compatibility(const struct yamltree *node, struct skill_strings *errors)
{
    if (!node)
        return 0;
    if (node->kind != YAMLTREE_SCALAR)
        return skill_strings_add(errors, "line %u: compatibility must be a text", node->line);
    if (code_points(node->text) > COMPATIBILITY_MAX_CODE_POINTS)
        return skill_strings_add(errors, "compatibility is over %u characters",
                                 COMPATIBILITY_MAX_CODE_POINTS);
    return 0;
}

static int check_allowed_tools(const struct yamltree *node, struct skill_strings *errors)
{
    bool good = !node || node->kind == YAMLTREE_SCALAR || node->kind == YAMLTREE_LIST;

    for (size_t i = 0; good && node && node->kind == YAMLTREE_LIST && i < node->n; i++)
        good = node->children[i]->kind == YAMLTREE_SCALAR;
    if (good)
        return 0;
    return skill_strings_add(errors, "line %u: allowed-tools must be a text or a list of texts",
                             node->line);
}

/* The value of a key of the map, or NULL. */
static const struct yamltree *find(const struct yamltree *map, const char *key)
{
    for (size_t i = 0; i + 1 < map->n; i += 2) {
        if (map->children[i]->kind == YAMLTREE_SCALAR &&
            strcmp(map->children[i]->text, key) == 0)
            return map->children[i + 1];
    }
    return NULL;
}

static int check_keys(const struct yamltree *map, struct skill_strings *errors)
{
    static const char *const known[] = {"name",          "description", "license",
                                        "allowed-tools", "metadata",    "compatibility"};
    int result = 0;

    for (size_t i = 0; result == 0 && i + 1 < map->n; i += 2) {
        const struct yamltree *key = map->children[i];
        char shown[NAMES_SHOWN_MAX];
        bool is_known = false;

        names_show(key->kind == YAMLTREE_SCALAR ? key->text : "?", shown);
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            is_known = is_known || strcmp(shown, known[k]) == 0;
        if (!is_known)
            result = skill_strings_add(errors,
                                       "line %u: the specification has no field \"%s\"; it "
                                       "belongs into metadata",
                                       key->line, shown);
    }
    return result;
}

/* Its YAML has no brackets and no key twice, at any depth. */
static int check_form(const struct yamltree *node, struct skill_strings *errors)
{
    char shown[NAMES_SHOWN_MAX];
    int result = 0;

    if (node->flow)
        return skill_strings_add(
            errors,
            "line %u: lists and maps are written below each other, without "
            "brackets",
            node->line);
    for (size_t i = 0; result == 0 && node->kind == YAMLTREE_MAP && i + 1 < node->n; i += 2) {
        const struct yamltree *key = node->children[i];

        if (key->kind == YAMLTREE_SCALAR && find(node, key->text) != node->children[i + 1])
            result = skill_strings_add(errors, "line %u: \"%s\" is there twice", key->line,
                                       names_show(key->text, shown));
    }
    for (size_t i = 0; result == 0 && i < node->n; i++)
        result = check_form(node->children[i], errors);
    return result;
}

static int check_map(const struct yamltree *map, const char *folder,
                     struct skill_strings *errors)
{
    int result = check_form(map, errors);

    if (result < 0)
        return result;
    result = check_keys(map, errors);
    if (result < 0)
        return result;
    result = check_name(find(map, "name"), folder, errors);
    if (result < 0)
        return result;
    result = check_description(find(map, "description"), errors);
    if (result < 0)
        return result;
    result = check_compatibility(find(map, "compatibility"), errors);
    return result < 0 ? result : check_allowed_tools(find(map, "allowed-tools"), errors);
}

static int parse(const char *skill_md, size_t len, struct yamltree **ret_root, struct err *err)
{
    static const struct yamltree_limits limits = {
        .depth = FRONTMATTER_DEPTH_MAX,
        .nodes = FRONTMATTER_NODES_MAX,
    };
    const char *yaml = NULL;
    size_t yaml_len = 0;
    int result = frontmatter_find(skill_md, len, &yaml, &yaml_len, err);

    return result < 0 ? result : yamltree_parse(yaml, yaml_len, 2, &limits, ret_root, err);
}

int specification_check(const char *skill_md, size_t len, const char *folder,
                        struct skill_strings *errors)
{
    struct yamltree *root = NULL;
    struct err err = {0};
    int result;

    if (!utf8_valid(skill_md, len) || memchr(skill_md, '\0', len))
        return skill_strings_add(errors, "it is not UTF-8 text");
    result = parse(skill_md, len, &root, &err);
    if (result == -ENOMEM)
        return result;
    if (result < 0)
        result = skill_strings_add(errors, "%s", err.message);
    else if (!root || root->kind != YAMLTREE_MAP)
        result = skill_strings_add(errors, "the front matter must be \"key: value\" lines");
    else
        result = check_map(root, folder, errors);
    yamltree_destroy(root);
    return result;
}
