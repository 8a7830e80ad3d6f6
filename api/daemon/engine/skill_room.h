/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenants' skills and uploaded files take of the servers of a cluster and no row says:
 * what is being stored, and what no row names any more and is still there. Both count to
 * storage_bytes, at each node by itself; a daemon that starts knows of none.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_SKILL_ROOM_H
#define SKILLVM_API_DAEMON_ENGINE_SKILL_ROOM_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"

/* It stays for an hour, and goes with the next sweep, of which there is one an hour. */
#define SKILL_ROOM_GONE_NS (2 * 3600 * 1000000000ull)

struct skill_room;

/* Both are borrowed. NULL without memory. */
struct skill_room *skill_room_create(struct registry *registry, struct store *store);
/* NULL is fine. */
void skill_room_destroy(struct skill_room *room);

/* The objects of a row; texts are borrowed, and "" for none. */
struct skill_room_row {
    const char *tenant;
    const char *digest;
    const char *packages_digest;
    uint64_t bytes; /* of both */
};

/*
 * Takes so many bytes of what is left of a tenant's storage_bytes for a row that is about to
 * be, until skill_room_give. 0; -EDQUOT; -ENOENT: there is no such tenant; -ENOMEM; -EIO.
 */
int skill_room_take(struct skill_room *room, const struct skill_room_row *row, uint64_t bytes,
                    uint64_t monotonic_ns, struct err *err);
void skill_room_give(struct skill_room *room, const char *tenant, uint64_t bytes);
/* Stores the row and its objects. *ret_sent: servers have some of these. 0 or -errno. */
typedef int skill_room_fill(void *ctx, bool *ret_sent, struct err *err);
/*
 * Takes so many bytes, stores, and gives them back: what was sent in vain counts for as long as
 * it may be there. As of skill_room_take; what fill gives.
 */
int skill_room_hold(struct skill_room *room, const struct skill_room_row *row, uint64_t bytes,
                    skill_room_fill *fill, void *ctx, struct err *err);
/*
 * Counts what no row names any more of a row that went, or did not come about after all. Before
 * the store releases it, which knows how large packages are.
 */
void skill_room_left(struct skill_room *room, const struct skill_room_row *row,
                     uint64_t monotonic_ns);

#endif
