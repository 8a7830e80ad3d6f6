/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may take how much of the bucket of changes. Skills, files and sessions are what tenants
 * write, so they have half of it, and each tenant of this half no more than is left: however
 * many take all they may, there is room for one more.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include <errno.h>

/* What a server keeps beside an entry: its key, and what finds it. */
#define BESIDE_BYTES 160u

/* What an entry takes; 0 where it cannot be one, which who writes it tells. */
static uint64_t entry_bytes(const struct change *change)
{
    _cleanup_buf_ struct buf text = {0};

    return change_entry_write(change, &text) < 0 ? 0 : text.len + BESIDE_BYTES;
}

/* What the entry in whose place it comes takes. */
static int bytes_before(const struct cluster_replica *replica, const struct change *change,
                        uint64_t *ret, struct err *err)
{
    struct change before = {0};
    int r = replica->row(replica->ctx, change->kind, change->id, &before, err);

    if (r < 0 && r != -ENOENT)
        return r;
    *ret = r == 0 ? entry_bytes(&before) : 0;
    return 0;
}

int cluster_check_room(struct cluster *c, struct cluster_link *link,
                       const struct change *change, struct err *err)
{
    const struct cluster_replica *replica = &c->follow.replica;
    struct cluster_bucket bucket = {0};
    const char *tenant = change->is_removed ? NULL : change_owner(change);
    uint64_t more, before = 0, used = 0, left;
    enum cluster_fault fault;
    struct err why = {0};
    int r;

    if (!tenant)
        return 0;
    r = bytes_before(replica, change, &before, err);
    more = entry_bytes(change);
    if (r < 0 || more <= before)
        return r;
    more -= before;
    fault = c->driver->bucket_look(link, CLUSTER_CHANGES, &bucket, &why);
    if (fault != CLUSTER_OK)
        return cluster_result(fault, &why, err);
    if (bucket.max_bytes == 0)
        return 0;
    r = replica->owned_bytes(replica->ctx, tenant, &used, err);
    if (r < 0)
        return r;
    left = bucket.bytes < bucket.max_bytes / 2 ? bucket.max_bytes / 2 - bucket.bytes : 0;
    if (used + more <= left)
        return 0;
    return err_set(
        err, EDQUOT,
        "the list of skills, files and sessions that the cluster keeps has no room for "
        "another of this tenant, whose own take %llu bytes of it while %llu are left for "
        "all: remove versions, files or sessions",
        (unsigned long long)used, (unsigned long long)left);
}
