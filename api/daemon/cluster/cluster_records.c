/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing records of executions, each on condition that the one before is the last: so an
 * execution ends once, whoever says so.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/cleanup.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8u /* where others write of the same meanwhile, or a connection was lost */

void record_copy_finish(struct record_copy *copy)
{
    free(copy->text); /* NOLINT(clang-analyzer-unix.Malloc): of what was finished it is NULL. */
    *copy = (struct record_copy){0};
}

void cluster_sign_record(struct cluster *c, struct record *record)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    memcpy(record->node, c->self.node, sizeof(record->node));
    memcpy(record->instance, c->self.instance, sizeof(record->instance));
    record->seen = c->follow.tail.revision;
}

/* What an entry has, as a copy. 0; -ENOENT where it is no record of this id; -ENOMEM. */
static int copy_record(const struct cluster_entry *entry, const char *id,
                       struct record_copy *ret)
{
    _cleanup_free_ char *text = NULL;
    enum node_refusal unused;

    if (entry->is_removed || entry->len == 0)
        return -ENOENT;
    text = malloc(entry->len);
    if (!text)
        return -ENOMEM;
    memcpy(text, entry->data, entry->len);
    if (record_entry_parse(id, text, entry->len, &ret->record, &unused) < 0)
        return -ENOENT;
    ret->text = steal_ptr(&text);
    ret->record.revision = entry->revision;
    return 0;
}

/*
 * The record that the servers have, and its revision; CLUSTER_NO_ENTRY where there is none, or
 * nonsense, which is written over.
 */
static enum cluster_fault read_record(struct cluster *c, struct cluster_link *link,
                                      const char *id, struct record_copy *ret,
                                      uint64_t *ret_revision, struct err *err)
{
    struct cluster_entry entry = {0};
    enum cluster_fault fault = c->driver->get(link, CLUSTER_RECORDS, id, &entry, err);
    int r;

    *ret = (struct record_copy){0};
    *ret_revision = fault == CLUSTER_OK ? entry.revision : 0;
    r = fault == CLUSTER_OK ? copy_record(&entry, id, ret) : 0;
    c->driver->release(&entry);
    /* What could not be looked at is not written over. */
    if (r == -ENOMEM) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    if (r < 0)
        fault = CLUSTER_NO_ENTRY;
    if (fault == CLUSTER_NO_ENTRY)
        *err = (struct err){0};
    return fault;
}

enum cluster_fault cluster_record_write(struct cluster *c, struct cluster_link *link,
                                        const struct record *record, uint64_t revision,
                                        struct err *err)
{
    _cleanup_buf_ struct buf text = {0};
    enum cluster_fault fault;
    uint64_t written = 0;

    if (record_entry_write(record, &text) < 0) {
        (void)err_set(err, E2BIG, "the record of %s does not fit an entry", record->id);
        return CLUSTER_OTHER;
    }
    fault = c->driver->put(link, CLUSTER_RECORDS, record->id, buf_cstr(&text), text.len,
                           revision, &written, err);
    if (fault == CLUSTER_OK)
        cluster_note_written(c, written);
    return fault;
}

/* Once over a connection. *ret_fault says whether it may be tried again. */
static int update_over(struct cluster *c, struct cluster_link *link, const char *id,
                       cluster_next_record *next, const void *ctx, struct record_copy *there,
                       enum cluster_fault *ret_fault, struct err *err)
{
    uint64_t revision = 0;
    struct record wanted;
    int r;

    *ret_fault = read_record(c, link, id, there, &revision, err);
    if (*ret_fault != CLUSTER_OK && *ret_fault != CLUSTER_NO_ENTRY)
        return -EAGAIN;
    *ret_fault = CLUSTER_OK;
    r = next(ctx, &there->record, &wanted);
    if (r < 0)
        return r;
    *ret_fault = cluster_record_write(c, link, &wanted, revision, err);
    return *ret_fault == CLUSTER_OK ? 0 : -EAGAIN;
}

int cluster_record_update(struct cluster *c, const char *id, cluster_next_record *next,
                          const void *ctx, struct record_copy *there, struct err *err)
{
    enum cluster_fault fault = CLUSTER_CONFLICT;
    struct err why = {0};
    int r = cluster_check_joined(c, err);

    if (r < 0)
        return r;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct cluster_link *link;
        bool is_used;

        r = cluster_link_take(c, &link, &is_used, err);
        if (r < 0)
            return r;
        why = (struct err){0};
        r = update_over(c, link, id, next, ctx, there, &fault, &why);
        if (fault != CLUSTER_CONFLICT && fault != CLUSTER_UNREACHABLE)
            fault = cluster_tell_apart(c, link, CLUSTER_RECORDS, fault, &why);
        cluster_link_give(c, link, fault == CLUSTER_OK || fault == CLUSTER_CONFLICT);
        if (r != -EAGAIN ||
            (fault != CLUSTER_CONFLICT && !(is_used && fault == CLUSTER_UNREACHABLE)))
            break;
        record_copy_finish(there);
    }
    if (r != -EAGAIN)
        return r;
    record_copy_finish(there);
    return cluster_result(fault == CLUSTER_OK ? CLUSTER_CONFLICT : fault, &why, err);
}

/*
 * The same, and a look at what is there then: servers may also take what another node writes on
 * the same condition, and the last is true. next says -EALREADY of what was written.
 */
static int update_surely(struct cluster *c, const char *id, cluster_next_record *next,
                         const void *ctx, struct record_copy *there, struct err *err)
{
    int r = cluster_record_update(c, id, next, ctx, there, err);

    if (r == 0) {
        record_copy_finish(there);
        r = cluster_record_update(c, id, next, ctx, there, err);
    }
    return r;
}

static int next_ended(const void *ctx, const struct record *there, struct record *ret)
{
    const struct record *record = ctx;

    if (there->status[0])
        return there->finished_ns == record->finished_ns &&
                       strcmp(there->status, record->status) == 0 &&
                       there->accepted_ns == record->accepted_ns
                   ? -EALREADY
                   : -EEXIST;
    /* Not confirmed here, another node began it under its key, or took it over: it ends it. */
    if (there->id[0] &&
        (there->accepted_ns != record->accepted_ns || strcmp(there->node, record->node) != 0))
        return -EBUSY;
    *ret = *record;
    ret->is_cancelled = there->is_cancelled;
    /* The process that had it is told of, also where another one ends it. */
    if (there->id[0])
        memcpy(ret->instance, there->instance, sizeof(ret->instance));
    return 0;
}

/* Others may begin it; is_lost: the process that has it is gone. */
static bool may_be_begun(const struct record *there, bool is_lost)
{
    return (there->waits || (is_lost && there->retries > 0)) && !there->is_cancelled;
}

/* What is said to have failed. */
struct loss {
    const struct record *record;
    bool is_left; /* not where others may begin it */
};

static int next_lost(const void *ctx, const struct record *there, struct record *ret)
{
    const struct loss *loss = ctx;

    /* What the servers dropped may have ended in any way. */
    if (!there->id[0])
        return -ENOENT;
    if (!there->status[0] && (!record_is_of_same(there, loss->record) ||
                              (loss->is_left && may_be_begun(there, true))))
        return -EBUSY;
    return next_ended(loss->record, there, ret);
}

int cluster_record_lose(struct cluster *c, const struct record *record,
                        struct record_copy *ret_left, struct err *err)
{
    const struct loss loss = {record, ret_left != NULL};
    struct record_copy theirs = {0};
    int r = cluster_record_update(c, record->id, next_lost, &loss, &theirs, err);

    if (r == -EBUSY && ret_left && record_is_of_same(&theirs.record, record))
        *ret_left = theirs;
    else
        record_copy_finish(&theirs);
    return r == -EALREADY ? -EEXIST : r;
}

int cluster_record_end(struct cluster *c, const struct record *record,
                       struct record_copy *ret_theirs, struct err *err)
{
    int r = cluster_record_update(c, record->id, next_ended, record, ret_theirs, err);

    if (r == -EEXIST)
        return r;
    if (r == -EBUSY)
        return err_set(err, EBUSY, "another node has begun it anew, or under the same key");
    record_copy_finish(ret_theirs);
    return r == -EALREADY ? 0 : r;
}

/* As it waits, but that it has begun; its request stays where it may be begun again. */
static void begin_record(const struct record *there, struct record *ret)
{
    *ret = *there;
    ret->retries = record_retries_left(there);
    ret->waits = false;
    ret->was_begun = false;
    if (ret->retries > 0)
        return;
    ret->request = NULL;
    ret->request_bytes = 0;
    ret->request_object[0] = '\0';
    ret->request_image[0] = '\0';
}

static int next_begun(const void *ctx, const struct record *there, struct record *ret)
{
    const struct record *record = ctx;

    /* What the servers lost is told anew. */
    if (!there->id[0]) {
        *ret = *record;
        return 0;
    }
    if (there->status[0] || !record_is_of_same(there, record) ||
        there->accepted_ns != record->accepted_ns)
        return -EEXIST;
    if (!there->waits)
        return -EALREADY;
    begin_record(there, ret);
    return 0;
}

int cluster_record_begin(struct cluster *c, const struct record *record,
                         struct record_copy *ret_theirs, struct err *err)
{
    int r = update_surely(c, record->id, next_begun, record, ret_theirs, err);

    if (r != -EEXIST)
        record_copy_finish(ret_theirs);
    return r == -EALREADY ? 0 : r;
}

/* Who takes one over, and of whom. */
struct claim {
    struct cluster *cluster;
    const struct record *ours;
    const char *node, *instance;
    bool is_lost;
};

/* What this process took over, as it was. */
struct put_back {
    const struct record *ours, *before;
};

/* A process of this node's name that is not this one is gone. */
static bool is_left_by(const struct record *there, const struct claim *claim)
{
    if (strcmp(there->node, claim->node) != 0)
        return false;
    return strcmp(there->instance, claim->instance) == 0 ||
           (strcmp(claim->node, claim->ours->node) == 0 &&
            !record_is_of_same(there, claim->ours));
}

/* What runs at a process that is there is that one's. */
static int check_claim(const struct record *there, const struct claim *claim)
{
    if (!may_be_begun(there, claim->is_lost))
        return claim->is_lost ? -EOWNERDEAD : -EEXIST;
    return cluster_leaves_image(claim->cluster, there->request_image) ? -ENOTSUP : 0;
}

static int next_claimed(const void *ctx, const struct record *there, struct record *ret)
{
    const struct claim *claim = ctx;
    int r;

    if (!there->id[0])
        return -ENODATA;
    if (there->status[0])
        return -EEXIST;
    /* What was taken over for this node, and not confirmed. */
    if (record_is_of_same(there, claim->ours))
        return -EOWNERDEAD;
    if (!is_left_by(there, claim))
        return -EEXIST;
    r = check_claim(there, claim);
    if (r < 0)
        return r;
    /* It waits here until it begins: who is lost before that has begun nothing. */
    *ret = *there;
    ret->was_begun = !there->waits || there->was_begun;
    ret->waits = true;
    memcpy(ret->node, claim->ours->node, sizeof(ret->node));
    memcpy(ret->instance, claim->ours->instance, sizeof(ret->instance));
    return 0;
}

int cluster_record_claim(struct cluster *c, const char *id, const char *node,
                         const char *instance, bool is_lost, struct record_copy *ret,
                         struct err *err)
{
    struct record ours = {0};
    const struct claim claim = {c, &ours, node, instance, is_lost};
    int r;

    cluster_sign_record(c, &ours);
    r = cluster_record_update(c, id, next_claimed, &claim, ret, err);
    if (r != 0 && r != -EOWNERDEAD && r != -EEXIST)
        record_copy_finish(ret);
    return r;
}

static int next_none(const void *ctx, const struct record *there, struct record *ret)
{
    (void)ctx;
    (void)ret;
    return there->id[0] ? -EALREADY : -ENOENT;
}

int cluster_record_read(struct cluster *c, const char *id, struct record_copy *ret,
                        struct err *err)
{
    int r = cluster_record_update(c, id, next_none, NULL, ret, err);

    if (r == -EALREADY)
        return 0;
    record_copy_finish(ret);
    return r;
}

/* Asked for once more: servers may take two writes on one condition that come at once. */
int cluster_record_is_ours(struct cluster *c, const char *id, struct err *err)
{
    struct record_copy there = {0};
    struct record ours = {0};
    int r = cluster_record_read(c, id, &there, err);
    bool is_so;

    cluster_sign_record(c, &ours);
    is_so = r == 0 && !there.record.status[0] && record_is_of_same(&there.record, &ours);
    record_copy_finish(&there);
    return r < 0 || is_so ? r : -ENOENT;
}

static int next_offered(const void *ctx, const struct record *there, struct record *ret)
{
    const struct record *record = ctx;

    if (!there->id[0] || there->status[0] || !record_is_of_same(there, record) ||
        there->accepted_ns != record->accepted_ns)
        return -ENOENT;
    *ret = *there;
    ret->waits = true;
    ret->retries = record->retries;
    ret->request = record->request;
    ret->request_bytes = record->request_bytes;
    memcpy(ret->request_object, record->request_object, sizeof(ret->request_object));
    memcpy(ret->request_image, record->request_image, sizeof(ret->request_image));
    return 0;
}

int cluster_record_offer(struct cluster *c, const struct record *record, struct err *err)
{
    struct record_copy there = {0};
    int r = cluster_record_update(c, record->id, next_offered, record, &there, err);

    record_copy_finish(&there);
    return r;
}

/* As it was before this process took it over. */
static int next_put_back(const void *ctx, const struct record *there, struct record *ret)
{
    const struct put_back *back = ctx;

    if (!there->id[0] || there->status[0] || !record_is_of_same(there, back->ours))
        return -ENOENT;
    *ret = *back->before;
    ret->is_cancelled = there->is_cancelled;
    return 0;
}

int cluster_record_put_back(struct cluster *c, const struct record *before, struct err *err)
{
    struct record_copy there = {0};
    struct record ours = {0};
    const struct put_back back = {&ours, before};
    int r;

    cluster_sign_record(c, &ours);
    r = cluster_record_update(c, before->id, next_put_back, &back, &there, err);
    record_copy_finish(&there);
    return r;
}

static int next_cancelled(const void *ctx, const struct record *there, struct record *ret)
{
    (void)ctx;
    if (!there->id[0] || there->status[0])
        return -ENOENT;
    if (there->is_cancelled)
        return -EALREADY;
    *ret = *there;
    ret->is_cancelled = true;
    return 0;
}

int cluster_record_cancel(struct cluster *c, const char *id, struct err *err)
{
    struct record_copy there = {0};
    int r = update_surely(c, id, next_cancelled, NULL, &there, err);

    record_copy_finish(&there);
    return r == -EALREADY ? 0 : r;
}
