/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a session, or had it last, as that lies in the bucket of executions: JSON under a key
 * of the session. A broken or hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_HOLD_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_HOLD_ENTRY_H

#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/terms/record.h"

#define HOLD_ENTRY_SCHEMA    1u
#define HOLD_ENTRY_BYTES_MAX 1024u
#define HOLD_KEY_SIZE        (sizeof(ID_SESSION) + ID_DIGITS)

struct hold {
    char node[FLEET_NODE_SIZE];
    char instance[RECORD_INSTANCE_SIZE];
    char execution[RECORD_ID_SIZE]; /* that has it; "": a caller of that process has */
    uint64_t seen; /* up to which revision that node knew of changes when it wrote this */
    bool is_over;
};

/* Whether a key is one of these. */
bool hold_entry_is_key(const char *key);
/* What is under one. 0 or -EINVAL. */
int hold_entry_parse(const char *data, size_t len, struct hold *ret);
/* What is put there. 0, -E2BIG or -ENOMEM. */
int hold_entry_write(const struct hold *hold, struct buf *ret);

#endif
