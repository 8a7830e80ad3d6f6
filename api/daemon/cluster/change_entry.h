/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a tenant, a key, a skill, an uploaded file or a session as it lies in the bucket
 * of changes: JSON under "tenant.ID", "key.ID", "skill.ID", "file.ID" or "session.ID", or the
 * mark that it was removed. A broken or hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_CHANGE_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_CHANGE_ENTRY_H

#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/terms/change.h"

#define CHANGE_ENTRY_SCHEMA    1u
#define CHANGE_ENTRY_BYTES_MAX 16384u
#define CHANGE_KEY_SIZE        48u
/* Under which lies who the bucket is: made last, so without it the bucket is not whole. */
#define CHANGE_BEGIN_KEY "begin"

/* Its key in the bucket. */
void change_entry_key(enum change_kind kind, const char *id, char ret[CHANGE_KEY_SIZE]);
/* The reverse: kind and id. 0, or -EINVAL where it is of nothing. */
int change_entry_parse_key(const char *key, struct change *ret);
/*
 * What is under a key. 0, or -EINVAL with *ret_why: NODE_WRONG_NAME where the key is of
 * nothing.
 */
int change_entry_parse(const char *key, const char *data, size_t len, bool is_removed,
                       struct change *ret, enum node_refusal *ret_why);
/* What is put there for a change that removes nothing. 0, or -E2BIG or -ENOMEM. */
int change_entry_write(const struct change *change, struct buf *ret);

/* The same for who the bucket is. -EINVAL also for what is of a newer version. */
int change_entry_parse_begin(const char *data, size_t len, char ret_bucket[CHANGE_MARK_SIZE]);
int change_entry_write_begin(const char *bucket, struct buf *ret);

#endif
