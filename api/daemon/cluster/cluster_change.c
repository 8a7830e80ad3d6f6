/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a change for all nodes. It is worked out from the rows of this node and written on
 * condition that nothing was written after what they are made of: so changes of all nodes come
 * one after the other, each from what the one before left, and names stay unique. Where
 * somebody else was quicker it is worked out anew.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/terms/ids.h"
#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRIES 16u

uint64_t cluster_revision_now(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return c->follow.tail.revision;
}

static enum cluster_fault send_change(struct cluster *c, struct cluster_link *link,
                                      const struct change *change, uint64_t seen,
                                      uint64_t *ret_revision, struct err *err)
{
    _cleanup_buf_ struct buf text = {0};
    char key[CHANGE_KEY_SIZE];

    change_entry_key(change->kind, change->id, key);
    if (change->is_removed)
        return c->driver->put_next(link, CLUSTER_CHANGES, key, NULL, 0, seen, ret_revision,
                                   err);
    if (change_entry_write(change, &text) < 0) {
        (void)err_set(err, E2BIG, "the change does not fit an entry");
        return CLUSTER_OTHER;
    }
    return c->driver->put_next(link, CLUSTER_CHANGES, key, buf_cstr(&text), text.len, seen,
                               ret_revision, err);
}

static bool is_same(const struct change *one, const struct change *other)
{
    _cleanup_buf_ struct buf a = {0}, b = {0};

    return change_entry_write(one, &a) == 0 && change_entry_write(other, &b) == 0 &&
           a.len == b.len && memcmp(buf_cstr(&a), buf_cstr(&b), a.len) == 0;
}

/*
 * Whether a change that was not confirmed came back all the same, as where the server that had
 * it was lost before it could say so.
 */
static bool came_back(struct cluster *c, const struct change *change, uint64_t seen)
{
    const struct cluster_replica *replica = &c->follow.replica;
    struct change there;
    int r;

    if (!tail_wait(&c->follow.tail, seen + 1))
        return false;
    r = replica->row(replica->ctx, change->kind, change->id, &there, NULL);
    return change->is_removed ? r == -ENOENT : r == 0 && is_same(change, &there);
}

/* The operator hears of it too, and not only who wanted the change. */
static void note_full(struct cluster *c, struct cluster_link *link, const char *message)
{
    struct cluster_bucket bucket = {0};
    struct err ignored = {0};
    bool is_known =
        c->driver->bucket_look(link, CLUSTER_CHANGES, &bucket, &ignored) == CLUSTER_OK;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    struct cluster_follow *f = &c->follow;
    uint64_t unsaid = 0;

    f->full_bytes = is_known ? bucket.bytes : 0;
    f->full_max = is_known ? bucket.max_bytes : UINT64_MAX;
    f->tail.bytes = bucket.bytes;
    f->tail.max_bytes = bucket.max_bytes;
    (void)snprintf(f->full, sizeof(f->full), "%s", message);
    f->full_lines.per_second = f->full_lines.burst = 1;
    if (log_limit_allow(&f->full_lines, clock_monotonic_ns(), &unsaid))
        log_warn("cluster", "changes=refused node=%s message=\"%s\" unsaid=%llu", c->self.node,
                 message, (unsigned long long)unsaid);
}

static void note_made(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->follow.full[0] = '\0';
}

/* What was not confirmed may have been written all the same. */
static int refuse(struct cluster *c, struct cluster_link *link, enum cluster_fault fault,
                  const struct err *why, struct err *err)
{
    char message[ERR_MESSAGE_MAX];

    cluster_explain(fault, why, message);
    if (fault == CLUSTER_NO_ROOM)
        note_full(c, link, message);
    if (fault != CLUSTER_UNREACHABLE && fault != CLUSTER_NO_QUORUM)
        return err_set(err, EAGAIN, "nothing was changed: %.400s", message);
    return err_set(err, EAGAIN,
                   "the change was not confirmed; it is made at all nodes or at none, so look "
                   "before you ask again: %.300s",
                   message);
}

static int change_over(struct cluster *c, struct cluster_link *link, change_plan *plan,
                       void *ctx, struct err *err)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct change change = {0};
        struct err why = {0};
        enum cluster_fault fault;
        uint64_t seen = cluster_revision_now(c), revision = seen + 1;
        int r = plan(ctx, &change, err);

        if (r < 0)
            return r;
        r = cluster_check_room(c, link, &change, err);
        if (r < 0)
            return r;
        fault = send_change(c, link, &change, seen, &revision, &why);
        if (cluster_fault_passes(fault) && came_back(c, &change, seen))
            return 0;
        if (fault == CLUSTER_OTHER && why.code == E2BIG)
            return err_set(err, E2BIG, "%s", why.message);
        if (fault != CLUSTER_OK && fault != CLUSTER_CONFLICT)
            return refuse(c, link, cluster_tell_apart(c, link, CLUSTER_CHANGES, fault, &why),
                          &why, err);
        if (fault == CLUSTER_OK)
            note_made(c);
        if (!tail_wait(&c->follow.tail, revision))
            return err_set(err, EAGAIN,
                           fault == CLUSTER_OK
                               ? "the change is made, but did not come back to this node in "
                                 "time: look before you ask again"
                               : "nothing was changed: this node is behind the others");
        if (fault == CLUSTER_OK)
            return 0;
    }
    return err_set(err, EAGAIN, "nothing was changed: others change too much at once");
}

int cluster_check_joined(struct cluster *c, struct err *err)
{
    struct cluster_status status;

    cluster_look(c, &status);
    if (status.state == CLUSTER_JOINED)
        return 0;
    return err_set(
        err, EAGAIN,
        "nothing is accepted or changed while this node is not joined to its cluster, and "
        "nothing read from its servers: %.320s",
        status.state == CLUSTER_CONNECTING ? "it is connecting" : status.message);
}

int cluster_change(struct cluster *c, change_plan *plan, void *ctx, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->follow.writer);
    struct cluster_link *link;
    int r = cluster_check_joined(c, err);

    if (r < 0)
        return r;
    r = cluster_connect_near(c, false, &link, err);
    if (r < 0)
        return r;
    r = change_over(c, link, plan, ctx, err);
    c->driver->close(link);
    return r;
}

struct seed {
    struct cluster *cluster;
    struct cluster_link *link;
    enum cluster_fault fault;
    struct err why;
};

/* What is there already stays: somebody else began, and did not come to the end. */
static int seed_row(void *ctx, const struct change *change)
{
    _cleanup_buf_ struct buf text = {0};
    struct seed *seed = ctx;
    char key[CHANGE_KEY_SIZE];

    change_entry_key(change->kind, change->id, key);
    if (change_entry_write(change, &text) < 0)
        return err_set(&seed->why, E2BIG, "%s %s %s does not fit an entry of a cluster", key,
                       change->kind == CHANGE_SKILL ? change->skill.name : "",
                       change->kind == CHANGE_SKILL ? change->skill.version : "");
    seed->fault = seed->cluster->driver->put(seed->link, CLUSTER_CHANGES, key, buf_cstr(&text),
                                             text.len, 0, NULL, &seed->why);
    return seed->fault == CLUSTER_OK || seed->fault == CLUSTER_CONFLICT ? 0 : -EAGAIN;
}

static enum cluster_fault write_begin(struct cluster *c, struct cluster_link *link,
                                      uint64_t last, struct err *err)
{
    _cleanup_buf_ struct buf text = {0};
    char bucket[CHANGE_MARK_SIZE];

    if (ids_make_digits((CHANGE_MARK_SIZE - 1) / 2, bucket) < 0 ||
        change_entry_write_begin(bucket, &text) < 0) {
        (void)err_set(err, EIO, "no random bytes, or no memory");
        return CLUSTER_OTHER;
    }
    return c->driver->put(link, CLUSTER_CHANGES, CHANGE_BEGIN_KEY, buf_cstr(&text), text.len,
                          last, NULL, err);
}

int cluster_seed(struct cluster *c, struct cluster_link *link, bool *ret_made, struct err *err)
{
    struct seed seed = {.cluster = c, .link = link};
    struct cluster_entry begin = {0};
    char bucket[CHANGE_MARK_SIZE];
    enum cluster_fault fault =
        c->driver->get(link, CLUSTER_CHANGES, CHANGE_BEGIN_KEY, &begin, &seed.why);
    bool is_whole = fault == CLUSTER_OK && !begin.is_removed &&
                    change_entry_parse_begin(begin.data, begin.len, bucket) == 0;
    uint64_t last = begin.revision;
    int r;

    if (fault == CLUSTER_OK)
        c->driver->release(&begin);
    if (is_whole || (fault != CLUSTER_OK && fault != CLUSTER_NO_ENTRY))
        return cluster_result(fault, &seed.why, err);
    seed.why = (struct err){0};
    r = c->follow.replica.each(c->follow.replica.ctx, seed_row, &seed, err);
    if (r == -EAGAIN)
        return cluster_result(seed.fault, &seed.why, err);
    if (r < 0 && seed.why.code)
        *err = seed.why;
    if (r < 0)
        return r;
    seed.why = (struct err){0};
    fault = write_begin(c, link, last, &seed.why);
    *ret_made |= fault == CLUSTER_OK;
    /* Somebody else came to the end of it. */
    return fault == CLUSTER_CONFLICT ? 0 : cluster_result(fault, &seed.why, err);
}
