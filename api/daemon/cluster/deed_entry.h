/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the audit as it lies in the bucket of it: JSON under its entry, which begins with
 * the name of the node that wrote it. A broken or hostile node may have.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_DEED_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_DEED_ENTRY_H

#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/terms/deed.h"

#define DEED_ENTRY_SCHEMA    1u
#define DEED_ENTRY_BYTES_MAX 16384u

/* What is under a key. 0, or -EINVAL with *ret_why, NODE_WRONG_NAME where that is no entry. */
int deed_entry_parse(const char *key, const char *data, size_t len, struct deed *ret,
                     enum node_refusal *ret_why);
/* What is put there. 0, -E2BIG or -ENOMEM. */
int deed_entry_write(const struct deed *deed, struct buf *ret);

#endif
