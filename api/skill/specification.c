/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/specification.h"

#include "api/skill/file_names.h"
#include "api/skill/frontmatter.h"
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

static bool is_lower(const char *name, struct skill_strings *errors)
{
    size_t n = 0;
    uint8_t *lower = u8_tolower((const uint8_t *)name, strlen(name), NULL, NULL, NULL, &n);
    bool same = lower && n == strlen(name) && memcmp(lower, name, n) == 0;

    if (!lower && errno == ENOMEM)
        errors->error = -ENOMEM;
    free(lower);
    return same;
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

static void check_folder(const char *folder, const char *name, struct skill_strings *errors)
{
    char *normal = normalize((const uint8_t *)folder, strlen(folder));

    if (!normal)
        errors->error = -ENOMEM;
    else if (strcmp(normal, name) != 0)
        (void)skill_strings_add(errors, "the folder is called \"%s\" but the skill \"%s\"",
                                names_shown(folder).text, names_shown(name).text);
    free(normal);
}

static void check_normal_name(const char *name, const char *folder,
                              struct skill_strings *errors)
{
    const struct names_shown shown = names_shown(name);
    size_t len = strlen(name);

    if (code_points(name) > NAME_MAX_CODE_POINTS)
        (void)skill_strings_add(errors, "the name is over %u characters", NAME_MAX_CODE_POINTS);
    if (!is_lower(name, errors))
        (void)skill_strings_add(errors, "the name \"%s\" is not in lower case", shown.text);
    if (name[0] == '-' || name[len - 1] == '-')
        (void)skill_strings_add(errors, "the name \"%s\" begins or ends with a hyphen",
                                shown.text);
    if (strstr(name, "--"))
        (void)skill_strings_add(errors, "the name \"%s\" has two hyphens in a row", shown.text);
    if (!has_good_characters(name))
        (void)skill_strings_add(
            errors, "the name \"%s\" has other characters than letters, digits and hyphens",
            shown.text);
    if (folder)
        check_folder(folder, name, errors);
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

static void check_name(const struct yamltree *node, const char *folder,
                       struct skill_strings *errors)
{
    char *name;

    if (!node) {
        (void)skill_strings_add(errors, "there is no name");
        return;
    }
    if (node->kind != YAMLTREE_SCALAR || is_blank(node->text)) {
        (void)skill_strings_add(errors, "line %u: the name must be a text", node->line);
        return;
    }
    name = normalize_name(node->text);
    if (name)
        check_normal_name(name, folder, errors);
    else
        errors->error = -ENOMEM;
    free(name);
}

static void check_description(const struct yamltree *node, struct skill_strings *errors)
{
    if (!node)
        (void)skill_strings_add(errors, "there is no description");
    else if (node->kind != YAMLTREE_SCALAR || is_blank(node->text))
        (void)skill_strings_add(errors, "line %u: the description must be a text", node->line);
    else if (code_points(node->text) > DESCRIPTION_MAX_CODE_POINTS)
        (void)skill_strings_add(errors, "the description is over %u characters",
                                DESCRIPTION_MAX_CODE_POINTS);
}

static void check_compatibility(const struct yamltree *node, struct skill_strings *errors)
{
    if (node && node->kind != YAMLTREE_SCALAR)
        (void)skill_strings_add(errors, "line %u: compatibility must be a text", node->line);
    else if (node && code_points(node->text) > COMPATIBILITY_MAX_CODE_POINTS)
        (void)skill_strings_add(errors, "compatibility is over %u characters",
                                COMPATIBILITY_MAX_CODE_POINTS);
}

static void check_allowed_tools(const struct yamltree *node, struct skill_strings *errors)
{
    bool good = !node || node->kind != YAMLTREE_MAP;

    for (size_t i = 0; good && node && i < node->n; i++)
        good = node->children[i]->kind == YAMLTREE_SCALAR;
    if (!good)
        (void)skill_strings_add(
            errors, "line %u: allowed-tools must be a text or a list of texts", node->line);
}

static void check_keys(const struct yamltree *map, struct skill_strings *errors)
{
    static const char *const known[] = {"name",          "description", "license",
                                        "allowed-tools", "metadata",    "compatibility"};

    for (size_t i = 0; i + 1 < map->n; i += 2) {
        const struct yamltree *key = map->children[i];
        const char *name = key->kind == YAMLTREE_SCALAR ? key->text : "?";
        bool is_known = false;

        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            is_known = is_known || strcmp(name, known[k]) == 0;
        if (!is_known)
            (void)skill_strings_add(errors,
                                    "line %u: the specification has no field \"%s\"; it "
                                    "belongs into metadata",
                                    key->line, names_shown(name).text);
    }
}

/* Its YAML has no brackets, no tags, no anchors and no key twice, at any depth. */
static void check_form(const struct yamltree *node, struct skill_strings *errors)
{
    if (node->tagged)
        (void)skill_strings_add(errors, "line %u: a tag (!name) is refused: values are texts",
                                node->line);
    if (node->anchored)
        (void)skill_strings_add(errors, "line %u: an anchor (&name) is refused", node->line);
    if (node->flow) {
        (void)skill_strings_add(errors,
                                "line %u: lists and maps are written below each other, without "
                                "brackets",
                                node->line);
        return;
    }
    for (size_t i = 0; node->kind == YAMLTREE_MAP && i + 1 < node->n; i += 2) {
        const struct yamltree *key = node->children[i];

        if (key->kind == YAMLTREE_SCALAR &&
            yamltree_find(node, key->text) != node->children[i + 1])
            (void)skill_strings_add(errors, "line %u: \"%s\" is there twice", key->line,
                                    names_shown(key->text).text);
    }
    for (size_t i = 0; i < node->n; i++)
        check_form(node->children[i], errors);
}

static void check_map(const struct yamltree *map, const char *folder,
                      struct skill_strings *errors)
{
    check_form(map, errors);
    check_keys(map, errors);
    check_name(yamltree_find(map, "name"), folder, errors);
    check_description(yamltree_find(map, "description"), errors);
    check_compatibility(yamltree_find(map, "compatibility"), errors);
    check_allowed_tools(yamltree_find(map, "allowed-tools"), errors);
}

static int parse(const char *skill_md, size_t len, struct yamltree **ret_root, struct err *err)
{
    static const struct yamltree_limits limits = {
        .depth = FRONTMATTER_DEPTH_MAX,
        .nodes = FRONTMATTER_NODES_MAX,
    };
    const char *yaml = NULL;
    size_t yaml_len = 0;
    unsigned line = 0;
    int result = frontmatter_find(skill_md, len, &yaml, &yaml_len, &line, err);

    return result < 0 ? result : yamltree_parse(yaml, yaml_len, line, &limits, ret_root, err);
}

/* Nothing comes before the line "---". */
static void check_beginning(const char *skill_md, size_t len, struct skill_strings *errors)
{
    if (len >= 3 && memcmp(skill_md, "\xef\xbb\xbf", 3) == 0)
        (void)skill_strings_add(errors,
                                "it begins with a byte order mark: save it without one");
    else if (len > 0 && skill_md[0] != '-')
        (void)skill_strings_add(errors,
                                "line 1: it begins with \"---\", without an empty line before");
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
        (void)skill_strings_add(errors, "%s", err.message);
    else if (!root || root->kind != YAMLTREE_MAP)
        (void)skill_strings_add(errors, "the front matter must be \"key: value\" lines");
    else
        check_map(root, folder, errors);
    if (result == 0)
        check_beginning(skill_md, len, errors);
    yamltree_destroy(root);
    return errors->error;
}
