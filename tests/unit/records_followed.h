/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node "a" that follows the executions of servers which are a test's stand-in, and have
 * nothing else. Of the test is what the ledger makes of them.
 */
#ifndef SKILLVM_TESTS_UNIT_RECORDS_FOLLOWED_H
#define SKILLVM_TESTS_UNIT_RECORDS_FOLLOWED_H

#include "tests/unit/fake_links.h"
#include "tests/unit/node_begun.h"

#include <string.h>

/* What bucket_look says of executions that have so many revisions. */
static inline enum cluster_fault records_look(const char *bucket, uint64_t last_revision,
                                              struct cluster_bucket *ret)
{
    if (strcmp(bucket, CLUSTER_RECORDS) != 0)
        return CLUSTER_NO_BUCKET;
    ret->replicas = 1;
    ret->last_revision = last_revision;
    return CLUSTER_OK;
}

static inline int records_no_place(void *ctx, struct change_place *ret, struct err *err)
{
    (void)ctx;
    (void)ret;
    (void)err;
    return 0;
}

static inline void records_ignore(void *ctx, const struct record *record)
{
    (void)ctx;
    (void)record;
}

static inline bool records_has_none(void *ctx, const struct record *record)
{
    (void)ctx;
    (void)record;
    return false;
}

static inline void records_tell_none(void *ctx, uint64_t since_ns)
{
    (void)ctx;
    (void)since_ns;
}

static inline void records_no_tick(void *ctx)
{
    (void)ctx;
}

/* A ledger that has nothing, and does nothing with what it hears. */
static inline struct cluster_ledger records_ledger(void)
{
    return (struct cluster_ledger){.look = records_no_place,
                                   .stop = records_ignore,
                                   .has = records_has_none,
                                   .taken = records_ignore,
                                   .unended = records_ignore,
                                   .tell_anew = records_tell_none,
                                   .tick = records_no_tick};
}

/* From now on the node follows. Fails the test where it cannot. */
static inline void records_follow(struct cluster *c, const struct cluster_ledger *ledger)
{
    /* Its bucket is not there. */
    const struct cluster_replica replica = {.look = records_no_place};
    struct err err = {0};

    if (cluster_follow(c, &replica, 60000, &err) < 0 ||
        cluster_follow_records(c, ledger, &err) < 0)
        fail_msg("%s", err.message);
}

#endif
