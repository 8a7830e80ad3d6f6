/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator wants of one node, whichever node is asked: that it takes no more
 * executions, that it does again, or to know how it is. The wish and its answer are JSON that
 * another node wrote: a stranger's.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_NODE_WISH_H
#define SKILLVM_API_DAEMON_CLUSTER_NODE_WISH_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_WISH_SCHEMA       1u
#define NODE_WISH_BYTES_MAX    1024u
#define NODE_WISH_REFUSED_SIZE 256u

enum node_wish {
    NODE_WISH_LOOK,
    NODE_WISH_DRAIN,
    NODE_WISH_UNDO,
};
#define NODE_WISHES (NODE_WISH_UNDO + 1)

/* How the node is once it did what was wished. */
struct node_drain {
    bool is_draining;
    uint32_t running, waiting;            /* executions there */
    char refused[NODE_WISH_REFUSED_SIZE]; /* why it did not; "": it did */
};

/* 0, or -ENOMEM. */
int node_wish_write(enum node_wish wish, struct buf *ret);
/* 0 or -EINVAL; *ret is untouched then. */
int node_wish_parse(const char *data, size_t len, enum node_wish *ret);
/* 0, -E2BIG or -ENOMEM. */
int node_drain_write(const struct node_drain *drain, struct buf *ret);
/* 0 or -EINVAL; *ret is untouched then. */
int node_drain_parse(const char *data, size_t len, struct node_drain *ret);

#endif
