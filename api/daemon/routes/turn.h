/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn at what takes memory and time: of each kind a few requests have one at once, and
 * tenants get theirs by turns.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_TURN_H
#define SKILLVM_API_DAEMON_ROUTES_TURN_H

#include "api/daemon/engine/fair_gate.h"
#include "api/daemon/routes/daemon.h"
#include "base/err.h"

/* A skill with a smaller archive takes little memory, and no turns. */
#define TURN_SKILL_BYTES (64u * 1024u)
/* Nor does a smaller result or log. */
#define TURN_LOOK_BYTES (256u * 1024u)

struct turn {
    bool is_hasty;          /* for who keeps others by waiting: it does not wait */
    struct fair_gate *gate; /* NULL: it was not taken */
    struct fair_gate_entry entry;
};

/* Makes d->turns. 0 or -ENOMEM. */
int turns_create(struct daemon *d);
/* Nobody may have one or wait. Safe on zeroed ones. */
void turns_destroy(struct daemon *d);

/*
 * Waits for one. *turn is zeroed but for is_hasty, and stays where it is until it ends. 0;
 * -EBUSY; -ENOMEM.
 */
int turn_take(struct turn *turn, struct daemon *d, enum daemon_turn kind, const char *tenant,
              struct err *err);
/* One at the archive of a registered skill in fd (borrowed), if that is no small one. */
int turn_take_at(struct turn *turn, struct daemon *d, int fd, const char *tenant,
                 struct err *err);
/* Safe on a zeroed one. */
void turn_end(struct turn *turn);
#define _cleanup_turn_ __attribute__((cleanup(turn_end)))

#endif
