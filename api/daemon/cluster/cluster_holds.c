/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a session: one execution of all nodes, or one caller who removes something of it. It
 * is written on condition that nobody wrote since what was there was looked at. An execution
 * has it until its record says that it has ended, so that nothing more is to be written then.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <string.h>

#define TRIES 8u
/* Of one of which the servers have no record: by then it was accepted, or never will be. */
#define UNKNOWN_NS (60 * NS_PER_SECOND)

/* What is under a key. */
struct found {
    struct hold hold; /* is_over where there is none, or nonsense */
    uint64_t revision;
    uint64_t stored_ns;
};

static void sign(struct cluster *c, struct hold *hold)
{
    struct record process = {0};

    cluster_sign_record(c, &process);
    memcpy(hold->node, process.node, sizeof(hold->node));
    memcpy(hold->instance, process.instance, sizeof(hold->instance));
    hold->seen = process.seen;
}

static enum cluster_fault read_over(struct cluster *c, struct cluster_link *link,
                                    const char *key, struct found *ret, struct err *err)
{
    struct cluster_entry entry = {0};
    enum cluster_fault fault = c->driver->get(link, CLUSTER_RECORDS, key, &entry, err);

    *ret = (struct found){.hold.is_over = true};
    if (fault == CLUSTER_NO_ENTRY) {
        *err = (struct err){0};
        return CLUSTER_OK;
    }
    if (fault != CLUSTER_OK)
        return fault;
    ret->revision = entry.revision;
    ret->stored_ns = entry.stored_ns;
    if (!entry.is_removed)
        (void)hold_entry_parse(entry.data, entry.len, &ret->hold);
    c->driver->release(&entry);
    return CLUSTER_OK;
}

static enum cluster_fault write_over(struct cluster *c, struct cluster_link *link,
                                     const char *key, const struct hold *hold,
                                     uint64_t revision, struct err *err)
{
    _cleanup_buf_ struct buf text = {0};

    if (hold_entry_write(hold, &text) < 0) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    return c->driver->put(link, CLUSTER_RECORDS, key, buf_cstr(&text), text.len, revision, NULL,
                          err);
}

/* Reads what is there, or with a hold writes it in its place; an old connection may be dead. */
static int ask(struct cluster *c, const char *key, const struct hold *hold, struct found *there,
               enum cluster_fault *ret_fault, struct err *err)
{
    struct cluster_link *link;
    struct err why = {0};
    bool is_used = true;
    int r = 0;

    *ret_fault = CLUSTER_UNREACHABLE;
    while (*ret_fault == CLUSTER_UNREACHABLE && is_used) {
        r = cluster_link_take(c, &link, &is_used, err);
        if (r < 0)
            return r;
        why = (struct err){0};
        *ret_fault = hold ? write_over(c, link, key, hold, there->revision, &why)
                          : read_over(c, link, key, there, &why);
        if (*ret_fault != CLUSTER_OK && *ret_fault != CLUSTER_CONFLICT &&
            *ret_fault != CLUSTER_UNREACHABLE)
            *ret_fault = cluster_tell_apart(c, link, CLUSTER_RECORDS, *ret_fault, &why);
        cluster_link_give(c, link, *ret_fault == CLUSTER_OK || *ret_fault == CLUSTER_CONFLICT);
    }
    return *ret_fault == CLUSTER_CONFLICT ? 0 : cluster_result(*ret_fault, &why, err);
}

static bool is_of_same(const struct hold *one, const struct hold *other)
{
    return strcmp(one->node, other->node) == 0 && strcmp(one->instance, other->instance) == 0 &&
           strcmp(one->execution, other->execution) == 0;
}

/* What no record tells of is over once its process is gone, or time is. */
static bool is_forgotten(struct cluster *c, const struct found *there)
{
    struct err ignored = {0};
    bool is_gone = false;

    if (clock_realtime_ns() > there->stored_ns + UNKNOWN_NS)
        return true;
    return cluster_process_is_gone(c, there->hold.node, there->hold.instance, &is_gone,
                                   &ignored) == 0 &&
           is_gone;
}

/*
 * 0 where who had it does so no more, and *ret_seen is what that one knew of changes at its
 * end; -EADDRINUSE; -EAGAIN.
 */
static int check_over(struct cluster *c, const struct found *there, uint64_t *ret_seen,
                      struct err *err)
{
    struct record_copy copy = {0};
    int r;

    *ret_seen = there->hold.seen;
    if (there->hold.is_over)
        return 0;
    r = there->hold.execution[0] ? cluster_record_read(c, there->hold.execution, &copy, err)
                                 : -ENOENT;
    if (r == -ENOENT)
        return is_forgotten(c, there) ? 0 : -EADDRINUSE;
    if (r == 0 && copy.record.seen > *ret_seen)
        *ret_seen = copy.record.seen;
    if (r == 0 && !copy.record.status[0])
        r = -EADDRINUSE;
    record_copy_finish(&copy);
    return r;
}

static int refuse(const struct hold *holder, const char *session, struct err *err)
{
    if (!holder->execution[0])
        return err_set(err, EADDRINUSE,
                       "session %s is being changed by a caller of node %s: ask again", session,
                       holder->node);
    return err_set(err, EADDRINUSE,
                   "execution %s has session %s; this one can begin when it has ended",
                   holder->execution, session);
}

int cluster_hold_take(struct cluster *c, const char *key, const char *session,
                      const char *execution, struct err *err)
{
    struct hold ours = {0};
    enum cluster_fault fault;
    int r = cluster_check_joined(c, err);

    if (r < 0)
        return r;
    memcpy(ours.execution, execution, strlen(execution) + 1);
    sign(c, &ours);
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct found there;
        uint64_t seen;

        r = ask(c, key, NULL, &there, &fault, err);
        if (r < 0)
            return r;
        /* Ours, whose confirmation was lost. */
        if (tries > 0 && !there.hold.is_over && is_of_same(&there.hold, &ours))
            return 0;
        r = check_over(c, &there, &seen, err);
        if (r < 0)
            return r == -EADDRINUSE ? refuse(&there.hold, session, err) : r;
        r = ask(c, key, &ours, &there, &fault, err);
        if (fault == CLUSTER_OK) {
            /* What it left is to be found: it is a row here in a moment. */
            (void)cluster_has_seen(c, seen);
            return 0;
        }
        if (r < 0 && !cluster_fault_passes(fault))
            return r;
        *err = (struct err){0};
    }
    return err_set(err, EAGAIN,
                   "session %s: the servers of the cluster do not confirm who has it", session);
}

void cluster_hold_give(struct cluster *c, const char *key, const char *execution)
{
    struct hold ours = {.is_over = true};
    enum cluster_fault fault;
    struct err ignored = {0};
    struct found there;

    memcpy(ours.execution, execution, strlen(execution) + 1);
    sign(c, &ours);
    /* What stays is forgotten after a while. */
    if (ask(c, key, NULL, &there, &fault, &ignored) == 0 && !there.hold.is_over &&
        is_of_same(&there.hold, &ours))
        (void)ask(c, key, &ours, &there, &fault, &ignored);
}
