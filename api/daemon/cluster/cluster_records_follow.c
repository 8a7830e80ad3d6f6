/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the bucket of executions: each record is true by itself. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define BATCH     4096u
#define FUTURE_NS (3600 * NS_PER_SECOND)
/* What ended so long ago servers that lost their last seconds have. */
#define ANEW_NS (3600 * NS_PER_SECOND)
/*
 * What servers of one cluster lose of each other when another leads: so many revisions before
 * the last, and what was told so long before everything was here.
 */
#define AGAIN     1024u
#define UNSURE_NS (60 * NS_PER_SECOND)

static int look(struct cluster *c, struct change_place *ret, struct err *err)
{
    return c->ledger.look(c->ledger.ctx, ret, err);
}

static bool is_ours(const struct cluster *c, const struct record *record)
{
    return strcmp(record->node, c->self.node) == 0 &&
           strcmp(record->instance, c->self.instance) == 0;
}

/* A clock is never so far ahead: what stands there would never grow old. */
static bool is_of_future(const struct cluster_entry *entry, const struct record *record)
{
    const uint64_t latest_ns = entry->stored_ns + FUTURE_NS;

    return record->accepted_ns > latest_ns || record->finished_ns > latest_ns;
}

static enum cluster_fault check(struct tail_session *s, const struct cluster_entry *entry,
                                struct err *err)
{
    struct cluster *c = s->cluster;
    enum node_refusal why = NODE_MALFORMED;
    struct record record;

    /* Who has a session is asked for when somebody wants it. */
    if (hold_entry_is_key(entry->key))
        return CLUSTER_OK;
    if (entry->is_removed ||
        record_entry_parse(entry->key, entry->data, entry->len, &record, &why) < 0 ||
        is_of_future(entry, &record)) {
        if (why == NODE_NEWER)
            tail_note_unread(s, entry->revision);
        tail_refuse(s->tail, entry->key, why, 1);
        return CLUSTER_OK;
    }
    if (is_ours(c, &record)) {
        if (record.is_cancelled || record.status[0])
            c->ledger.stop(c->ledger.ctx, &record);
        /*
         * Its end may be one that others wrote at the same moment, and what others may begin
         * one that another process took, and put back, or had before.
         */
        if (!record.status[0] && s->is_leaders)
            c->ledger.unended(c->ledger.ctx, &record);
        if (!record.status[0] &&
            !((record.waits || record.retries > 0) && c->ledger.has(c->ledger.ctx, &record)))
            return CLUSTER_OK;
    } else {
        c->ledger.taken(c->ledger.ctx, &record);
    }
    if (record.seen > s->seen)
        s->seen = record.seen;
    if (staged_add_record(&s->staged, &record, entry->revision, entry->data, entry->len) == 0)
        return CLUSTER_OK;
    (void)err_set(err, ENOMEM, "there is no memory for the executions of others");
    return CLUSTER_OTHER;
}

static enum cluster_fault apply(struct tail_session *s, const struct change_place *place,
                                struct err *err)
{
    const struct change_place noted = tail_place_to_note(s, place);
    struct cluster *c = s->cluster;
    unsigned conflicts = 0;

    (void)cluster_await_seen(c, &c->records_distrust_ns, s->seen);
    s->seen = 0;
    if (c->ledger.apply(c->ledger.ctx, &s->staged, &noted, &conflicts, err) < 0)
        return CLUSTER_OTHER;
    if (conflicts > 0)
        tail_refuse(s->tail, "", REFUSED_CONFLICT, conflicts);
    return CLUSTER_OK;
}

static void went_back(struct tail_session *s)
{
    log_warn("cluster",
             "executions=\"are fewer at the servers than here\" node=%s revision=%llu",
             s->cluster->self.node, (unsigned long long)s->place.revision);
    s->cluster->ledger.tell_anew(s->cluster->ledger.ctx, clock_realtime_ns() - ANEW_NS);
}

static void began(struct tail_session *s, uint64_t whole_ns)
{
    if (whole_ns > UNSURE_NS)
        s->cluster->ledger.tell_anew(s->cluster->ledger.ctx, whole_ns - UNSURE_NS);
}

static void tick(struct tail_session *s)
{
    s->cluster->ledger.tick(s->cluster->ledger.ctx);
}

int cluster_follow_records(struct cluster *c, const struct cluster_ledger *ledger,
                           struct err *err)
{
    static const struct tail_kind kind = {.bucket = CLUSTER_RECORDS,
                                          .what = "executions",
                                          .batch = BATCH,
                                          .identify = tail_identify_created,
                                          .look = look,
                                          .check = check,
                                          .apply = apply,
                                          .note = tail_note_place,
                                          .went_back = went_back,
                                          .again = AGAIN,
                                          .began = began,
                                          .tick = tick};
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->ledger = *ledger;
    return tail_start(c, &c->records, &kind, err);
}
