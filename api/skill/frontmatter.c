/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/frontmatter.h"

#include "api/skill/duration.h"
#include "api/skill/file_names.h"
#include "api/skill/input_schema.h"
#include "api/skill/schema_block.h"
#include "api/skill/yamltree.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/host_pattern.h"
#include "base/text.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CODE_POINTS_MAX        64u
#define NAME_BYTES_MAX              256u
#define DESCRIPTION_CODE_POINTS_MAX 1024u

static bool is_fence(struct text_span line)
{
    if (!text_begins_with(line, "---"))
        return false;
    for (size_t i = 3; i < line.len; i++) {
        if (line.text[i] != ' ' && line.text[i] != '\t')
            return false;
    }
    return true;
}

#define BLANK " \t\r\n\f\v"

static bool is_blank(struct text_span line)
{
    return text_trim(line, BLANK).len == 0;
}

/* *ret_line is that of the YAML's beginning. Empty lines may come before all. */
static int split(const char *text, size_t len, struct text_span *ret_yaml, unsigned *ret_line,
                 struct text_span *ret_body, struct err *err)
{
    struct text_span rest = {text, len}, first;
    unsigned number = 1;

    if (text_begins_with(rest, "\xef\xbb\xbf")) {
        rest.text += 3;
        rest.len -= 3;
    }
    do {
        (void)text_take_line(&rest, &first);
        number++;
    } while (rest.len && is_blank(first));
    if (!is_fence(first))
        return err_set(err, EINVAL,
                       "it must begin with a line \"---\", the front matter and "
                       "another line \"---\"");
    const char *begin = rest.text;
    for (struct text_span line; text_take_line(&rest, &line);) {
        if (is_fence(line)) {
            *ret_yaml = (struct text_span){begin, (size_t)(line.text - begin)};
            *ret_line = number;
            *ret_body = text_trim(rest, BLANK);
            return 0;
        }
    }
    return err_set(err, EINVAL, "the front matter has no closing line \"---\"");
}

int frontmatter_find(const char *text, size_t len, const char **ret_yaml, size_t *ret_len,
                     unsigned *ret_line, struct err *err)
{
    struct text_span yaml, body;
    int result = split(text, len, &yaml, ret_line, &body, err);

    if (result < 0)
        return result;
    *ret_yaml = yaml.text;
    *ret_len = yaml.len;
    return 0;
}

/*
 * The second attempt's text: a value that holds ": " or " #" or ends with ":" and has no quotes
 * gets them. Only `key: value` lines at the left edge, and those below a key without a value
 * (metadata, resources), so that block texts stay as they are. *ret_lines counts the changes.
 */
static int quote_colons(struct text_span yaml, unsigned number, struct buf *out,
                        unsigned *ret_first_line)
{
    bool in_map = false;

    *ret_first_line = 0;
    for (struct text_span rest = yaml, line; text_take_line(&rest, &line);) {
        size_t indent = 0, key;

        while (indent < line.len && line.text[indent] == ' ')
            indent++;
        key = indent;
        while (key < line.len && (isalnum((unsigned char)line.text[key]) ||
                                  line.text[key] == '_' || line.text[key] == '-'))
            key++;
        bool is_pair = key > indent && key < line.len && line.text[key] == ':' &&
                       (key + 1 == line.len || line.text[key + 1] == ' ');
        struct text_span value = {0};
        if (is_pair)
            value =
                text_trim((struct text_span){line.text + key + 1, line.len - key - 1}, BLANK);
        if (indent == 0)
            in_map = is_pair && value.len == 0;

        bool odd = value.len > 0 && !strchr("\"'|>[{&*!%@`#", value.text[0]) &&
                   (memmem(value.text, value.len, ": ", 2) ||
                    memmem(value.text, value.len, " #", 2) || value.text[value.len - 1] == ':');
        if (odd && (indent == 0 || in_map)) {
            if (!*ret_first_line)
                *ret_first_line = number;
            (void)buf_append(out, line.text, key + 1);
            (void)buf_append(out, " '", 2);
            for (size_t i = 0; i < value.len; i++) {
                (void)buf_append(out, value.text + i, 1);
                if (value.text[i] == '\'')
                    (void)buf_append(out, "'", 1);
            }
            (void)buf_append(out, "'\n", 2);
        } else {
            (void)buf_append(out, line.text, line.len);
            (void)buf_append(out, "\n", 1);
        }
        number++;
    }
    return out->error;
}

static int parse_yaml(struct text_span yaml, unsigned first_line, struct skill *skill,
                      struct yamltree **ret, struct err *err)
{
    static const struct yamltree_limits limits = {
        .depth = FRONTMATTER_DEPTH_MAX,
        .nodes = FRONTMATTER_NODES_MAX,
    };
    struct err first = {0}, second = {0};
    int result = yamltree_parse(yaml.text, yaml.len, first_line, &limits, ret, &first);

    if (result == 0)
        return 0;
    if (result == -EINVAL) {
        _cleanup_buf_ struct buf quoted = buf_init(3 * (size_t)FRONTMATTER_YAML_MAX);
        unsigned line;
        if (quote_colons(yaml, first_line, &quoted, &line) == 0 && line > 0 &&
            yamltree_parse((const char *)quoted.data, quoted.len, first_line, &limits, ret,
                           &second) == 0)
            return skill_warn(&skill->warnings,
                              "line %u: a value with a colon needs quotes; they were "
                              "added",
                              line);
    }
    if (result == -ENOMEM)
        return result;
    return err_set(err, -result, "%s", first.message);
}

/* Lists of words are as good as one string with spaces. */
static int join_words(const struct yamltree *list, char **ret_text)
{
    struct buf text = buf_init(FRONTMATTER_YAML_MAX);

    for (size_t i = 0; i < list->n; i++) {
        if (list->children[i]->kind == YAMLTREE_SCALAR)
            (void)buf_printf(&text, "%s%s", text.len ? " " : "", list->children[i]->text);
    }
    if (text.error || !buf_cstr(&text)) {
        buf_finish(&text);
        return -ENOMEM;
    }
    *ret_text = (char *)text.data;
    return 0;
}

static int to_text(const struct yamltree *node, const char *key, struct skill *skill,
                   char **ret_text)
{
    if (yamltree_is_null(node))
        return 0;
    if (node->kind == YAMLTREE_LIST && strcmp(key, "allowed-tools") == 0)
        return join_words(node, ret_text);
    if (node->kind == YAMLTREE_LIST && strcmp(key, "lang") == 0)
        return skill_warn(
            &skill->warnings,
            "line %u: \"lang\" is one language: keep that of the script which runs, "
            "or set entry_point, whose ending says it; it is ignored",
            node->line);
    if (node->kind != YAMLTREE_SCALAR)
        return skill_warn(&skill->warnings, "line %u: \"%s\" must be text; it is ignored",
                          node->line, key);
    *ret_text = strdup(node->text);
    return *ret_text ? 0 : -ENOMEM;
}

static int add_input_schema(struct skill *skill, const struct yamltree *value)
{
    struct err err = {0};
    int result;

    if (yamltree_is_null(value) || skill->input_schema)
        return 0;
    result = input_schema_read(value, &skill->input_schema, &err);
    if (result != -EINVAL)
        return result;
    return skill_warn(&skill->warnings, "line %u: \"input_schema\" cannot be used: %s",
                      value->line, err.message);
}

/* The schema that the instructions show, where the front matter has none. */
static int find_input_schema(struct skill *skill)
{
    struct err err = {0};
    const char *block;
    size_t len;
    int result;

    if (skill->input_schema ||
        !schema_block_find(skill->instructions, skill->instructions_len, &block, &len))
        return 0;
    result = input_schema_read_json(block, len, &skill->input_schema, &err);
    if (result != -EINVAL)
        return result;
    return skill_warn(&skill->warnings,
                      "the JSON below the heading \"Input schema\" cannot be used: %s",
                      err.message);
}

/* False for a value that is no map, with a warning unless it is null. */
static bool is_map(struct skill *skill, const char *key, const struct yamltree *value)
{
    if (value->kind != YAMLTREE_MAP && !yamltree_is_null(value))
        (void)skill_warn(&skill->warnings, "line %u: \"%s\" must be a map; it is ignored",
                         value->line, key);
    return value->kind == YAMLTREE_MAP;
}

static int add_pair(struct skill *skill, const struct yamltree *key,
                    const struct yamltree *value)
{
    struct skill_pair *pair = &skill->metadata[skill->n_metadata];

    if (key->kind != YAMLTREE_SCALAR || value->kind != YAMLTREE_SCALAR)
        return skill_warn(&skill->warnings,
                          "line %u: a value in \"metadata\" is no text; it is ignored",
                          key->line);
    pair->key = strdup(key->text);
    pair->value = strdup(value->text);
    skill->n_metadata++;
    return pair->key && pair->value ? 0 : -ENOMEM;
}

static int add_metadata(struct skill *skill, const struct yamltree *map)
{
    int result = 0;

    if (!is_map(skill, "metadata", map))
        return 0;
    skill->metadata = calloc(map->n / 2 + 1, sizeof(*skill->metadata));
    if (!skill->metadata)
        return -ENOMEM;
    for (size_t i = 0; i + 1 < map->n && result == 0; i += 2) {
        const struct yamltree *key = map->children[i], *value = map->children[i + 1];
        bool is_schema = key->kind == YAMLTREE_SCALAR && strcmp(key->text, "input_schema") == 0;

        if (is_schema)
            result = add_input_schema(skill, value);
        if (result == 0 && !(is_schema && value->kind != YAMLTREE_SCALAR))
            result = add_pair(skill, key, value);
    }
    return result;
}

static int warn_amount(struct skill *skill, const char *key, const struct yamltree *node,
                       const char *example)
{
    return skill_warn(&skill->warnings,
                      "line %u: \"%s\" is not an amount such as %s; it is ignored", node->line,
                      key, example);
}

static void add_resources(struct skill *skill, const struct yamltree *map)
{
    if (!is_map(skill, "resources", map))
        return;
    for (size_t i = 0; i + 1 < map->n; i += 2) {
        const struct yamltree *key = map->children[i], *value = map->children[i + 1];
        const char *text = value->kind == YAMLTREE_SCALAR ? value->text : "";

        if (key->kind != YAMLTREE_SCALAR || yamltree_is_null(value))
            continue;
        if (strcmp(key->text, "memory") == 0) {
            if (size_parse(text, &skill->memory_bytes))
                (void)warn_amount(skill, "resources.memory", value, "256Mi");
        } else if (strcmp(key->text, "cpu") == 0) {
            if (cpu_parse(text, &skill->cpu_millis))
                (void)warn_amount(skill, "resources.cpu", value, "0.5");
        } else {
            (void)skill_warn(&skill->warnings,
                             "line %u: unknown field \"resources.%s\" is ignored", key->line,
                             names_shown(key->text).text);
        }
    }
}

static int add_timeout(struct skill *skill, const struct yamltree *value)
{
    const char *text = value->kind == YAMLTREE_SCALAR ? value->text : "";

    if (yamltree_is_null(value) || duration_parse(text, &skill->timeout_ms) == 0)
        return 0;
    return warn_amount(skill, "timeout", value, "30s or 2m");
}

static bool is_word(const char *text, const char *const *words)
{
    while (*words && strcasecmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

/* Adds the hosts of one text to the list; what is none of a host gives a warning. */
static int add_hosts(struct skill *skill, const struct yamltree *value, struct buf *list)
{
    struct err err = {0};
    int r = host_list_add(list, value->text, strlen(value->text), false, &err);

    if (r == 0 || r == -ENOMEM)
        return r;
    return skill_warn(&skill->warnings, "line %u: \"network\": %s", value->line,
                      names_shown(err.message).text);
}

/* That no host is wanted. */
static bool is_no_network(const struct yamltree *value)
{
    static const char *const nothing[] = {"",   "none",     "off",  "false",
                                          "no", "disabled", "deny", NULL};

    return value->kind == YAMLTREE_LIST ? value->n == 0 : is_word(value->text, nothing);
}

/* A text that is no list of hosts, as other runners have it. */
static int add_network_text(struct skill *skill, const struct yamltree *value, struct buf *list)
{
    static const char *const everything[] = {
        "true",    "yes",          "on",    "all",    "any", "full",     "host",     "internet",
        "enabled", "unrestricted", "allow", "bridge", "*",   "required", "outbound", NULL};

    if (is_word(value->text, everything))
        return skill_warn(&skill->warnings,
                          "line %u: \"network: %s\" names no hosts, and it reaches none: "
                          "list those that it needs, as in network: [api.example.com]",
                          value->line, names_shown(value->text).text);
    return add_hosts(skill, value, list);
}

static int add_network(struct skill *skill, const struct yamltree *value)
{
    _cleanup_buf_ struct buf list = buf_init(HOST_LIST_MAX * HOST_PATTERN_SIZE);
    int r = 0;

    if (yamltree_is_null(value))
        return 0;
    if (value->kind == YAMLTREE_MAP)
        return skill_warn(&skill->warnings,
                          "line %u: \"network\" must be a list of hosts, as in network: "
                          "[api.example.com]; it is ignored",
                          value->line);
    if (is_no_network(value)) {
        skill->network = strdup("");
        return skill->network ? 0 : -ENOMEM;
    }
    if (value->kind == YAMLTREE_SCALAR)
        r = add_network_text(skill, value, &list);
    for (size_t i = 0; r == 0 && value->kind == YAMLTREE_LIST && i < value->n; i++)
        r = value->children[i]->kind == YAMLTREE_SCALAR
                ? add_hosts(skill, value->children[i], &list)
                : skill_warn(&skill->warnings,
                             "line %u: a host in \"network\" is no text; it is ignored",
                             value->line);
    if (r < 0 || list.len == 0)
        return r;
    skill->network = strndup((const char *)list.data, list.len);
    return skill->network ? 0 : -ENOMEM;
}

static int add_field(struct skill *skill, const struct yamltree *key,
                     const struct yamltree *value)
{
    const struct {
        const char *name;
        char **field;
    } texts[] = {
        {"name", &skill->name},
        {"description", &skill->description},
        {"license", &skill->license},
        {"compatibility", &skill->compatibility},
        {"allowed-tools", &skill->allowed_tools},
        {"version", &skill->version},
        {"lang", &skill->lang},
        {"entry_point", &skill->entry_point},
        {"entrypoint", &skill->entry_point},
        {"image", &skill->image},
    };

    if (key->kind != YAMLTREE_SCALAR)
        return skill_warn(&skill->warnings, "line %u: a key that is no text is ignored",
                          key->line);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(key->text, texts[i].name) != 0)
            continue;
        if (*texts[i].field)
            return skill_warn(&skill->warnings,
                              "line %u: \"%s\" is there twice; the first one counts", key->line,
                              texts[i].name);
        return to_text(value, texts[i].name, skill, texts[i].field);
    }
    if (strcmp(key->text, "metadata") == 0 && !skill->metadata)
        return add_metadata(skill, value);
    if (strcmp(key->text, "resources") == 0) {
        add_resources(skill, value);
        return 0;
    }
    if (strcmp(key->text, "input_schema") == 0)
        return add_input_schema(skill, value);
    if (strcmp(key->text, "timeout") == 0)
        return add_timeout(skill, value);
    if (strcmp(key->text, "network") == 0)
        return skill->network ? 0 : add_network(skill, value);
    return skill_warn(&skill->warnings, "line %u: unknown field \"%s\" is ignored", key->line,
                      names_shown(key->text).text);
}

/* The specification's name: letters and digits of lower case, single hyphens inside. */
static bool is_spec_name(const char *name)
{
    size_t len = strlen(name);

    if (utf8_count(name, len) > NAME_CODE_POINTS_MAX || name[0] == '-' ||
        name[len - 1] == '-' || strstr(name, "--"))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x80 && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return true;
}

static int check_name(struct skill *skill, struct err *err)
{
    if (!skill->name)
        return 0;
    struct text_span name =
        text_trim((struct text_span){skill->name, strlen(skill->name)}, BLANK);
    if (name.len == 0) {
        free(steal_ptr(&skill->name));
        return 0;
    }
    if (name.len > NAME_BYTES_MAX)
        return err_set(err, EINVAL, "its name is over %u bytes", NAME_BYTES_MAX);
    memmove(skill->name, name.text, name.len);
    skill->name[name.len] = '\0';
    if (!text_is_plain(skill->name))
        return err_set(err, EINVAL, "its name \"%s\" holds a control character",
                       names_shown(skill->name).text);
    if (!is_spec_name(skill->name))
        (void)skill_warn(&skill->warnings,
                         "name \"%s\": the specification asks for at most %u lower-case "
                         "letters, digits and single hyphens",
                         names_shown(skill->name).text, NAME_CODE_POINTS_MAX);
    return 0;
}

static int check(struct skill *skill, struct err *err)
{
    int result = check_name(skill, err);

    if (result < 0)
        return result;
    if (!skill->description ||
        text_trim((struct text_span){skill->description, strlen(skill->description)}, BLANK)
                .len == 0)
        return err_set(err, EINVAL, "the front matter has no description");
    if (utf8_count(skill->description, strlen(skill->description)) >
        DESCRIPTION_CODE_POINTS_MAX)
        (void)skill_warn(&skill->warnings, "the description is over %u characters",
                         DESCRIPTION_CODE_POINTS_MAX);
    if (skill->version && !*skill->version)
        free(steal_ptr(&skill->version));
    /* The specification has no version of its own; skills keep it in metadata. */
    for (size_t i = 0; i < skill->n_metadata && !skill->version; i++) {
        if (strcmp(skill->metadata[i].key, "version") != 0 || !*skill->metadata[i].value)
            continue;
        skill->version = strdup(skill->metadata[i].value);
        if (!skill->version)
            return -ENOMEM;
    }
    skill->is_floating = !skill->version;
    return skill->warnings.error;
}

static int parse(const char *text, size_t len, struct skill *skill, struct err *err)
{
    struct text_span yaml = {0}, body = {0};
    struct yamltree *root = NULL;
    unsigned first_line = 0;

    if (len > FRONTMATTER_FILE_MAX)
        return err_set(err, EFBIG, "it is over %u bytes", FRONTMATTER_FILE_MAX);
    if (!utf8_valid(text, len) || memchr(text, '\0', len))
        return err_set(err, EINVAL, "it is not UTF-8 text");
    int result = split(text, len, &yaml, &first_line, &body, err);
    if (result < 0)
        return result;
    if (yaml.len > FRONTMATTER_YAML_MAX)
        return err_set(err, EFBIG, "its front matter is over %u bytes", FRONTMATTER_YAML_MAX);
    result = parse_yaml(yaml, first_line, skill, &root, err);
    if (result < 0)
        return result;

    if (!root)
        result = err_set(err, EINVAL, "the front matter is empty");
    else if (root->kind != YAMLTREE_MAP)
        result = err_set(err, EINVAL, "line %u: the front matter must be \"key: value\" lines",
                         root->line);
    for (size_t i = 0; !result && i + 1 < root->n; i += 2)
        result = add_field(skill, root->children[i], root->children[i + 1]);
    yamltree_destroy(root);
    if (result < 0)
        return result;

    skill->instructions = strndup(body.text, body.len);
    skill->instructions_len = body.len;
    if (!skill->instructions)
        return -ENOMEM;
    result = find_input_schema(skill);
    return result < 0 ? result : check(skill, err);
}

int frontmatter_parse(const char *text, size_t len, struct skill *ret_skill, struct err *err)
{
    struct skill skill = {0};
    int result = parse(text, len, &skill, err);

    if (result < 0) {
        skill_finish(&skill);
        if (result == -ENOMEM)
            return err_no_memory(err);
        err_prefix(err, "SKILL.md");
        return result;
    }
    *ret_skill = skill;
    return 0;
}
