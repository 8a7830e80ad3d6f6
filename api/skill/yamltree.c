/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/yamltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct builder {
    yaml_parser_t parser;
    const struct yamltree_limits *limits;
    unsigned first_line;
    unsigned nodes;
    struct err *err;
};

void yamltree_destroy(struct yamltree *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->n; i++)
        yamltree_destroy(node->children[i]);
    free(node->children);
    free(node->text);
    free(node);
}

const struct yamltree *yamltree_find(const struct yamltree *map, const char *key)
{
    for (size_t i = 0; i + 1 < map->n; i += 2) {
        if (map->children[i]->kind == YAMLTREE_SCALAR &&
            strcmp(map->children[i]->text, key) == 0)
            return map->children[i + 1];
    }
    return NULL;
}

bool yamltree_is_null(const struct yamltree *node)
{
    return node->kind == YAMLTREE_SCALAR && node->plain &&
           (node->len == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

static int next_event(struct builder *b, yaml_event_t *event)
{
    if (yaml_parser_parse(&b->parser, event))
        return 0;
    if (b->parser.error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    return err_set(b->err, EINVAL, "line %u: %s",
                   b->first_line + (unsigned)b->parser.problem_mark.line,
                   b->parser.problem ? b->parser.problem : "not YAML");
}

static struct yamltree *new_node(struct builder *b, enum yamltree_kind kind,
                                 const yaml_event_t *event, int *ret_result)
{
    unsigned line = b->first_line + (unsigned)event->start_mark.line;

    if (++b->nodes > b->limits->nodes) {
        *ret_result =
            err_set(b->err, EFBIG, "line %u: more than %u values", line, b->limits->nodes);
        return NULL;
    }
    struct yamltree *node = calloc(1, sizeof(*node));
    *ret_result = node ? 0 : -ENOMEM;
    if (node) {
        node->kind = kind;
        node->line = line;
    }
    return node;
}

static int new_scalar(struct builder *b, const yaml_event_t *event, struct yamltree **ret)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    int result;
    struct yamltree *node = new_node(b, YAMLTREE_SCALAR, event, &result);

    if (!node)
        return result;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, '\0', len)) {
        unsigned line = node->line;
        yamltree_destroy(node);
        return err_set(b->err, EINVAL, "line %u: a value holds a NUL", line);
    }
    node->text = strndup(text, len);
    node->len = len;
    if (!node->text) {
        yamltree_destroy(node);
        return -ENOMEM;
    }
    *ret = node;
    return 0;
}

static int build(struct builder *b, const yaml_event_t *event, unsigned depth,
                 struct yamltree **ret);

static int add_children(struct builder *b, struct yamltree *node, yaml_event_type_t last,
                        unsigned depth)
{
    for (;;) {
        yaml_event_t event;
        struct yamltree *child = NULL;
        int result = next_event(b, &event);

        if (result < 0)
            return result;
        yaml_event_type_t type = event.type;
        if (type != last)
            result = build(b, &event, depth, &child);
        yaml_event_delete(&event);
        if (result || type == last)
            return result;

        struct yamltree **children =
            reallocarray(node->children, node->n + 1, sizeof(struct yamltree *));
        if (!children) {
            yamltree_destroy(child);
            return -ENOMEM;
        }
        node->children = children;
        node->children[node->n++] = child;
    }
}

/* The node that event begins. Recursion is bounded by limits->depth. */
static int build(struct builder *b, const yaml_event_t *event, unsigned depth,
                 struct yamltree **ret)
{
    unsigned line = b->first_line + (unsigned)event->start_mark.line;

    if (event->type == YAML_SCALAR_EVENT)
        return new_scalar(b, event, ret);
    if (event->type == YAML_ALIAS_EVENT)
        return err_set(b->err, EINVAL, "line %u: aliases (*name) are refused", line);
    if (depth >= b->limits->depth)
        return err_set(b->err, EFBIG, "line %u: nested over %u levels deep", line,
                       b->limits->depth);

    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    int result;
    struct yamltree *node = new_node(b, is_map ? YAMLTREE_MAP : YAMLTREE_LIST, event, &result);
    if (!node)
        return result;
    node->flow = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                        : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    result = add_children(b, node, is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT,
                          depth + 1);
    if (result < 0) {
        yamltree_destroy(node);
        return result;
    }
    *ret = node;
    return 0;
}

int yamltree_parse(const char *text, size_t len, unsigned first_line,
                   const struct yamltree_limits *limits, struct yamltree **ret, struct err *err)
{
    struct builder b = {.limits = limits, .first_line = first_line, .err = err};
    struct yamltree *root = NULL;
    int result = 0;

    if (!yaml_parser_initialize(&b.parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
    for (bool done = false; !done && !result;) {
        yaml_event_t event;
        result = next_event(&b, &event);
        if (result < 0)
            break;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT:
            break;
        case YAML_DOCUMENT_END_EVENT:
        case YAML_STREAM_END_EVENT:
            done = true;
            break;
        default:
            result = root ? -EINVAL : build(&b, &event, 0, &root);
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&b.parser);
    if (result < 0) {
        yamltree_destroy(root);
        return result;
    }
    *ret = root;
    return 0;
}
