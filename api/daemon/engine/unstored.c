/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/unstored.h"

#include "api/daemon/engine/lost.h"
#include "api/daemon/terms/record.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct unstored_entry {
    STAILQ_ENTRY(unstored_entry) link;
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
    char reason[ERR_MESSAGE_MAX];
};

void unstored_init(struct unstored *u)
{
    (void)pthread_mutex_init(&u->lock, NULL);
    STAILQ_INIT(&u->all);
    u->n = 0;
}

void unstored_finish(struct unstored *u)
{
    struct unstored_entry *entry;

    while ((entry = STAILQ_FIRST(&u->all))) {
        STAILQ_REMOVE_HEAD(&u->all, link);
        free(entry);
    }
    (void)pthread_mutex_destroy(&u->lock);
}

void unstored_note(struct unstored *u, const char *tenant, const char *id, const char *why)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&u->lock);
    struct unstored_entry *entry = u->n < UNSTORED_MAX ? calloc(1, sizeof(*entry)) : NULL;

    if (!entry) {
        log_error("engine", "execution=%s is=\"not ended before the next start\"", id);
        return;
    }
    (void)snprintf(entry->tenant, sizeof(entry->tenant), "%s", tenant);
    (void)snprintf(entry->id, sizeof(entry->id), "%s", id);
    (void)snprintf(entry->reason, sizeof(entry->reason), "its result could not be stored: %s",
                   why);
    STAILQ_INSERT_TAIL(&u->all, entry, link);
    u->n++;
}

/* 0 also where there is nothing to end any more. */
static int end_one(const struct unstored_entry *entry, struct registry *registry,
                   bool is_shared, struct err *err)
{
    struct registry_execution row;
    struct err why = {0};
    int r = registry_execution_get(registry, entry->tenant, entry->id, &row, &why);

    if (r == 0) {
        /* What could not be confirmed may have been stored. */
        if (row.finished_ns == 0)
            r = lost_end(registry, &row, entry->reason, is_shared, &why);
        registry_execution_finish(&row);
    }
    /* Its tenant was deleted, or it is another process's. */
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        *err = why;
    else
        log_warn("engine", "execution=%s lost=\"%s\"", entry->id, entry->reason);
    return r;
}

static struct unstored_entry *first(struct unstored *u)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&u->lock);

    return STAILQ_FIRST(&u->all);
}

/* Takes the first one out, or puts it behind the others. */
static void settle_first(struct unstored *u, bool is_ended)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&u->lock);
    struct unstored_entry *entry = STAILQ_FIRST(&u->all);

    STAILQ_REMOVE_HEAD(&u->all, link);
    if (!is_ended) {
        STAILQ_INSERT_TAIL(&u->all, entry, link);
        return;
    }
    u->n--;
    free(entry);
}

static unsigned count(struct unstored *u)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&u->lock);

    return u->n;
}

int unstored_end(struct unstored *u, struct registry *registry, bool is_shared, struct err *err)
{
    int result = 0;

    /* Others only add behind. One that cannot be ended is in nobody's way. */
    for (unsigned left = count(u); left > 0; left--) {
        int r = end_one(first(u), registry, is_shared, err);

        settle_first(u, r == 0);
        result = r < 0 ? r : result;
    }
    return result;
}
