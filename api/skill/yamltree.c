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

static int new_node(struct builder *b, enum yamltree_kind kind, const yaml_event_t *event,
                    struct yamltree **ret)
{
    unsigned line = b->first_line + (unsigned)event->start_mark.line;
    struct yamltree *node;

    if (++b->nodes > b->limits->nodes)
        return err_set(b->err, EFBIG, "line %u: more than %u values", line, b->limits->nodes);
    node = calloc(1, sizeof(*node));
    if (!node)
        return -ENOMEM;
    node->kind = kind;
    node->line = line;
    *ret = node;
    return 0;
}

static int fill_scalar(struct builder *b, const yaml_event_t *event, struct yamltree *node)
{
    const char *text = (const char *)event->data.scalar.value;

    node->tagged = event->data.scalar.tag != NULL;
    node->anchored = event->data.scalar.anchor != NULL;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->len = event->data.scalar.length;
    if (memchr(text, '\0', node->len))
        return err_set(b->err, EINVAL, "line %u: a value holds a NUL", node->line);
    node->text = strndup(text, node->len);
    return node->text ? 0 : -ENOMEM;
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

static int fill_children(struct builder *b, const yaml_event_t *event, unsigned depth,
                         struct yamltree *node)
{
    bool is_map = node->kind == YAMLTREE_MAP;

    node->tagged =
        is_map ? event->data.mapping_start.tag != NULL : event->data.sequence_start.tag != NULL;
    node->anchored = is_map ? event->data.mapping_start.anchor != NULL
                            : event->data.sequence_start.anchor != NULL;
    node->flow = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                        : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    return add_children(b, node, is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT,
                        depth + 1);
}

/* The node that event begins. Recursion is bounded by limits->depth. */
static int build(struct builder *b, const yaml_event_t *event, unsigned depth,
                 struct yamltree **ret)
{
    unsigned line = b->first_line + (unsigned)event->start_mark.line;
    bool is_scalar = event->type == YAML_SCALAR_EVENT;
    enum yamltree_kind kind = is_scalar                                 ? YAMLTREE_SCALAR
                              : event->type == YAML_MAPPING_START_EVENT ? YAMLTREE_MAP
                                                                        : YAMLTREE_LIST;
    struct yamltree *node = NULL;
    int result;

    if (event->type == YAML_ALIAS_EVENT)
        return err_set(b->err, EINVAL, "line %u: aliases (*name) are refused", line);
    if (!is_scalar && depth >= b->limits->depth)
        return err_set(b->err, EFBIG, "line %u: nested over %u levels deep", line,
                       b->limits->depth);
    result = new_node(b, kind, event, &node);
    if (result < 0)
        return result;
    result = is_scalar ? fill_scalar(b, event, node) : fill_children(b, event, depth, node);
    if (result < 0)
        yamltree_destroy(node);
    else
        *ret = node;
    return result;
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
