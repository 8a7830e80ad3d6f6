/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of an execution as it lies in the bucket of executions: JSON under its id. A
 * broken or hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_RECORD_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_RECORD_ENTRY_H

#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/terms/record.h"

#define RECORD_ENTRY_SCHEMA    1u
#define RECORD_ENTRY_BYTES_MAX 65536u

/*
 * What is under a key; ret->result and ret->request lie in data. 0, or -EINVAL with *ret_why,
 * NODE_WRONG_NAME where the key is no execution's id.
 */
int record_entry_parse(const char *key, const char *data, size_t len, struct record *ret,
                       enum node_refusal *ret_why);
/* What is put there. 0, or -E2BIG, -EINVAL or -ENOMEM. */
int record_entry_write(const struct record *record, struct buf *ret);

#endif
