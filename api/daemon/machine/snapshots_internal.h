/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What snapshots.c, which gives snapshots out, and snapshots_work.c, the thread that makes and
 * drops them, share. Functions are called under the lock unless they say otherwise.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_INTERNAL_H
#define SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_INTERNAL_H

#include "api/daemon/machine/renewal.h"
#include "api/daemon/machine/snapshot_maker.h"
#include "api/daemon/machine/snapshots.h"
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the snapshot of one name is, or shall be. The first is the common plain one's. */
struct snapshot_place {
    bool is_taken;
    bool is_leaving; /* another name needs the place */
    struct snapshot_name name;
    char key[SNAPSHOT_KEY_SIZE]; /* of its folder; "": there is none */
    struct snapshot *current;
    struct renewal renewal;
    uint64_t disk_bytes; /* of the snapshot, current or not loaded yet */
    uint64_t asked_ns;   /* when somebody asked for it */
    uint64_t begin_ns;   /* when the current one came into use */
    uint64_t settle_ns;  /* when its digests can be remembered; 0: that was seen to */
    unsigned waiters;
    unsigned failures;         /* tries that made none, for who waits */
    char why[ERR_MESSAGE_MAX]; /* the last of them */
};

struct snapshots {
    struct snapshots_config config;
    pthread_t thread;
    struct snapshot_maker maker; /* the thread's own */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    enum snapshots_state state; /* of the first */
    char text[ERR_MESSAGE_MAX];
    struct config_snapshots limits;
    struct snapshot_place places[SNAPSHOTS_PLACES_MAX];
    struct snapshot_place *busy; /* which the thread works on; it stays what it is */
    uint64_t rest_ns;            /* none that nobody waits for is made before */
    uint64_t made;
    uint64_t failed;
    uint64_t dropped;
    bool stopping;
};

/* The place of a name; NULL: it has none. */
struct snapshot_place *snapshots_find(struct snapshots *s, const struct snapshot_name *name);
/* One that is free, for a name. NULL: none is. */
struct snapshot_place *snapshots_take(struct snapshots *s, const struct snapshot_name *name);
/* Of those beside the first that nobody is at, the one not asked for since then the longest; of
 * those with packages only where it is said so. */
struct snapshot_place *snapshots_oldest(struct snapshots *s, uint64_t before_ns,
                                        bool with_packages);

/* The thread: arg is a struct snapshots. Without the lock. */
void *snapshots_work(void *arg);

#endif
