/* SPDX-License-Identifier: Apache-2.0 */
/* The first record of an execution: nobody else has accepted its id, or its key. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/lock.h"

#include <errno.h>

/* Whether it is ours, whose confirmation was lost. */
static bool is_same(const struct record *there, const struct record *record)
{
    return record_is_of_same(there, record) && there->accepted_ns == record->accepted_ns;
}

static int next_accepted(const void *ctx, const struct record *there, struct record *ret)
{
    const struct record *record = ctx;

    if (!there->id[0]) {
        *ret = *record;
        return 0;
    }
    return is_same(there, record) ? -EALREADY : -EEXIST;
}

static int not_confirmed(const char *id, struct err *err)
{
    return err_set(err, ETIMEDOUT,
                   "execution %s was not confirmed by the servers of the cluster, and does not "
                   "run here",
                   id);
}

/* With a look at what is there: what is not confirmed may be there all the same. */
static int accept_by_look(struct cluster *c, const char *id, cluster_next_record *next,
                          const void *ctx, struct err *err)
{
    struct record_copy there = {0};
    struct err why = {0};
    int r = cluster_record_update(c, id, next, ctx, &there, &why);

    record_copy_finish(&there);
    if (r == -EALREADY)
        return 0;
    if (r == -EAGAIN)
        return not_confirmed(id, err);
    return r < 0 && why.message[0] ? err_set(err, -r, "%s", why.message) : r;
}

/*
 * Of first records of one key that come at once servers may take more than one, and the last
 * one is true. Where they cannot be asked now, what they confirmed counts. 0 or -EEXIST.
 */
static int check_last(struct cluster *c, const char *id)
{
    struct err ignored = {0};

    return cluster_record_is_ours(c, id, &ignored) == -ENOENT ? -EEXIST : 0;
}

/* No other node has the id of one without a key. */
static int check_key(struct cluster *c, const struct record *record, struct err *err)
{
    int r = record->idempotency_key[0]
                ? cluster_check_unknown(c, record->tenant, record->id, err)
                : 0;

    return r == -EEXIST ? -EALREADY : r;
}

/* What other nodes know may be this very record. */
static int check_known(struct cluster *c, const struct record *record, struct err *err)
{
    struct record_copy there = {0};
    int r = cluster_record_read(c, record->id, &there, err);
    bool is_ours = r == 0 && is_same(&there.record, record);

    record_copy_finish(&there);
    if (is_ours)
        return 0;
    return r == -EAGAIN ? r : -EALREADY;
}

/* Servers that did not answer may have another leader by now. */
static int check_key_again(struct cluster *c, const struct record *record, struct err *err)
{
    struct err why = {0};
    int r = check_key(c, record, &why);

    if (r == -EALREADY)
        r = check_known(c, record, &why);
    return r == -EAGAIN ? not_confirmed(record->id, err) : r;
}

/*
 * Nobody has its id, but where somebody used its key: so it is written without a look. What
 * came of that is asked where it is not known.
 */
int cluster_record_accept(struct cluster *c, const struct record *record, bool is_new,
                          struct err *err)
{
    struct cluster_link *link;
    struct err why = {0};
    enum cluster_fault fault;
    bool is_used;
    int r = cluster_check_joined(c, err);

    if (r == 0 && is_new)
        r = check_key(c, record, err);
    if (r < 0)
        return r;
    r = cluster_link_take(c, &link, &is_used, err);
    if (r < 0)
        return r;
    fault = cluster_record_write(c, link, record, 0, &why);
    if (fault != CLUSTER_OK && fault != CLUSTER_CONFLICT && fault != CLUSTER_UNREACHABLE)
        fault = cluster_tell_apart(c, link, CLUSTER_RECORDS, fault, &why);
    cluster_link_give(c, link, fault == CLUSTER_OK || fault == CLUSTER_CONFLICT);
    if (fault == CLUSTER_OK)
        return record->idempotency_key[0] ? check_last(c, record->id) : 0;
    if (fault != CLUSTER_CONFLICT && !cluster_fault_passes(fault))
        return cluster_result(fault, &why, err);
    r = is_new && fault != CLUSTER_CONFLICT ? check_key_again(c, record, err) : 0;
    if (r < 0)
        return r;
    return accept_by_look(c, record->id, next_accepted, record, err);
}

/* What is to take the place of what this node knew, and forgot. */
struct forgotten {
    const struct record *record;
    uint64_t known; /* up to this revision */
};

static int next_after_forgotten(const void *ctx, const struct record *there, struct record *ret)
{
    const struct forgotten *forgotten = ctx;

    if (there->id[0] && (!there->status[0] || there->revision > forgotten->known))
        return next_accepted(forgotten->record, there, ret);
    *ret = *forgotten->record;
    return 0;
}

int cluster_record_replace(struct cluster *c, const struct record *record, uint64_t known,
                           struct err *err)
{
    const struct forgotten forgotten = {record, known};

    return accept_by_look(c, record->id, next_after_forgotten, &forgotten, err);
}

uint64_t cluster_records_known(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return c->records.revision;
}
