/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that one knows of, from what the bucket gave, and what of it was refused. No lock,
 * and no clock for nodes: whoever has it brings both.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_NODES_H
#define SKILLVM_API_DAEMON_CLUSTER_NODES_H

#include "api/daemon/cluster/driver.h"
#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/cluster/refused.h"

#define NODES_MAX 1024u

struct node {
    struct node_entry entry;
    uint64_t revision;
    uint64_t renewed_ns; /* monotonic, as far as can be told */
};

struct nodes {
    struct node **list; /* sorted by name; each is owned */
    size_t n;
    struct refused refused;
};

void nodes_finish(struct nodes *nodes);
/* The bucket is watched anew, and may be another one: its revisions begin anew too. */
void nodes_begin(struct nodes *nodes);
/*
 * Takes what was watched: an entry, or the mark that one was removed. renewed_ns is when it was
 * written. One that is refused takes the place of none: what was known of its node stays.
 */
void nodes_take(struct nodes *nodes, const struct cluster_entry *entry, uint64_t renewed_ns);
/* The place of a node among all, its own name among them or not. */
size_t nodes_place(const struct nodes *nodes, const char *name, size_t *ret_n);
/* Whether a process has an entry among them. */
bool nodes_have(const struct nodes *nodes, const char *node, const char *instance);
/* Forgets those that were not renewed since a time. */
void nodes_forget_before(struct nodes *nodes, uint64_t renewed_ns);

#endif
