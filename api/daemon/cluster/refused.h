/* SPDX-License-Identifier: Apache-2.0 */
/* What others wrote and nobody here took: how much, why, and what of it is said in the log. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_REFUSED_H
#define SKILLVM_API_DAEMON_CLUSTER_REFUSED_H

#include "api/daemon/cluster/driver.h"
#include "api/daemon/cluster/node_entry.h"
#include "base/log.h"

#include <stdint.h>

/* Beside the reasons of node_refusal: it contradicts what is there. */
#define REFUSED_CONFLICT NODE_REFUSALS

/* Zeroed at first. Whoever has it brings a lock. */
struct refused {
    uint64_t n[NODE_REFUSALS + 1]; /* by why */
    /* The last one, "newer_schema at \"KEY\"", or "". */
    char last[CLUSTER_KEY_SIZE + 32];
    struct log_limit lines;
};

/*
 * Notes n that were left out, and why: a node_refusal, or REFUSED_CONFLICT. where: the bucket
 * or the subject; key: of the last of them, or "". A line of the log says so, after a few once
 * a second.
 */
void refused_note(struct refused *refused, const char *where, const char *key, unsigned why,
                  unsigned n);

#endif
