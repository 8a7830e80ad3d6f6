/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is particular to the bucket of the audit: its entries are written once and never change,
 * and who follows it tells what this node wrote, too. Nobody waits for that: what cannot be
 * told now is told later, and a node is joined without it.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/cluster/deed_entry.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>

#define BATCH    256u
#define TELL_MAX 64u /* rows that one tick tells, so that what comes waits for no more */
/* As of executions: what servers of one cluster lose of each other when another leads. */
#define AGAIN     1024u
#define UNSURE_NS (60 * NS_PER_SECOND)
#define FUTURE_NS (3600 * NS_PER_SECOND)

static int look(struct cluster *c, struct change_place *ret, struct err *err)
{
    return c->auditor.look(c->auditor.ctx, ret, err);
}

static enum cluster_fault check(struct tail_session *s, const struct cluster_entry *entry,
                                struct err *err)
{
    enum node_refusal why = NODE_MALFORMED;
    struct deed deed;

    /* A clock is never so far ahead: what stands there would be the newest for long. */
    if (entry->is_removed ||
        deed_entry_parse(entry->key, entry->data, entry->len, &deed, &why) < 0 ||
        deed.at_ns > entry->stored_ns + FUTURE_NS) {
        if (why == NODE_NEWER)
            tail_note_unread(s, entry->revision);
        tail_refuse(s->tail, entry->key, why, 1);
        return CLUSTER_OK;
    }
    if (staged_add(&s->staged, entry->key, entry->revision, entry->data, entry->len, false) ==
        0)
        return CLUSTER_OK;
    (void)err_set(err, ENOMEM, "there is no memory for the audit of others");
    return CLUSTER_OTHER;
}

static enum cluster_fault apply(struct tail_session *s, const struct change_place *place,
                                struct err *err)
{
    const struct cluster_auditor *auditor = &s->cluster->auditor;
    const struct change_place noted = tail_place_to_note(s, place);

    return auditor->apply(auditor->ctx, &s->staged, &noted, err) < 0 ? CLUSTER_OTHER
                                                                     : CLUSTER_OK;
}

static void went_back(struct tail_session *s)
{
    log_warn("cluster", "audit=\"is less at the servers than here\" node=%s revision=%llu",
             s->cluster->self.node, (unsigned long long)s->place.revision);
    s->cluster->auditor.tell_anew(s->cluster->auditor.ctx, 0);
}

static void began(struct tail_session *s, uint64_t whole_ns)
{
    if (whole_ns > UNSURE_NS)
        s->cluster->auditor.tell_anew(s->cluster->auditor.ctx, whole_ns - UNSURE_NS);
}

/*
 * Its key is nobody else's: where something is there it was told before. What fits no entry
 * keeps nobody else from being told.
 */
static bool tell(struct tail_session *s, const struct deed *deed)
{
    _cleanup_buf_ struct buf text = {0};
    struct err ignored = {0};
    enum cluster_fault fault;

    if (deed_entry_write(deed, &text) < 0) {
        log_error("audit", "id=%llu action=%s is=\"never told\" reason=\"it fits no entry\"",
                  (unsigned long long)deed->id, deed->action);
        return true;
    }
    fault = s->cluster->driver->put(s->link, CLUSTER_AUDIT, deed->entry, buf_cstr(&text),
                                    text.len, 0, NULL, &ignored);
    return fault == CLUSTER_OK || fault == CLUSTER_CONFLICT;
}

static void tick(struct tail_session *s)
{
    const struct cluster_auditor *auditor = &s->cluster->auditor;
    struct err ignored = {0};
    struct deed deed;
    uint64_t told = 0;

    if (!cluster_is_joined(s->cluster))
        return;
    for (unsigned n = 0; n < TELL_MAX && !cluster_is_stopping(s->cluster); n++) {
        if (auditor->untold(auditor->ctx, told, &deed, &ignored) < 0 || !tell(s, &deed))
            break;
        told = deed.id;
    }
    if (told > 0 && auditor->told(auditor->ctx, told, &ignored) < 0)
        log_warn("cluster", "audit=\"told, and told again\" reason=\"%s\"", ignored.message);
}

int cluster_follow_audit(struct cluster *c, const struct cluster_auditor *auditor,
                         struct err *err)
{
    static const struct tail_kind kind = {.bucket = CLUSTER_AUDIT,
                                          .what = "audit",
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

    c->auditor = *auditor;
    return tail_start(c, &c->audit, &kind, err);
}
