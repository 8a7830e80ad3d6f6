/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small tree from untrusted YAML by libyaml's events. Scalars stay the strings they were
 * written as, tags are ignored, aliases are refused (they are how small files become large).
 */
#ifndef SKILLVM_API_SKILL_YAMLTREE_H
#define SKILLVM_API_SKILL_YAMLTREE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum yamltree_kind { YAMLTREE_SCALAR, YAMLTREE_LIST, YAMLTREE_MAP };

struct yamltree_limits {
    unsigned depth; /* nested lists and maps */
    unsigned nodes; /* scalars, lists and maps together */
};

struct yamltree {
    enum yamltree_kind kind;
    unsigned line; /* from 1 */
    bool plain;    /* a scalar without quotes: "~", "null" and "" then mean nothing */
    bool flow;     /* a list or map in brackets */
    bool tagged;   /* it has a tag, such as !!str */
    bool anchored; /* it has an anchor, such as &name */
    char *text;    /* scalars: owned, valid UTF-8, no NUL */
    size_t len;
    struct yamltree **children; /* lists: the items; maps: key, value, key, value… */
    size_t n;
};

/*
 * Parses the first document of text. *ret is the caller's to destroy, NULL for an empty
 * document. 0; -EINVAL with "line N: …" (counted from first_line); -EFBIG over a limit;
 * -ENOMEM.
 */
int yamltree_parse(const char *text, size_t len, unsigned first_line,
                   const struct yamltree_limits *limits, struct yamltree **ret,
                   struct err *err);
/* The value of a map's first key of this text, or NULL. */
const struct yamltree *yamltree_find(const struct yamltree *map, const char *key);
/* True for a scalar that stands for no value. */
bool yamltree_is_null(const struct yamltree *node);
/* NULL is fine. */
void yamltree_destroy(struct yamltree *node);

#endif
