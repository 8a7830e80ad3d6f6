/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn at looking into archives, which takes memory and time: a few requests have one at
 * once, and tenants get theirs by turns.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_TURN_H
#define SKILLVM_API_DAEMON_ROUTES_TURN_H

#include "api/daemon/engine/fair_gate.h"
#include "api/daemon/routes/daemon.h"
#include "base/err.h"

struct turn {
    struct fair_gate *gate; /* NULL: it was not taken */
    struct fair_gate_entry entry;
};

/* Waits for it. *turn is zeroed, and stays where it is until it ends. 0; -EBUSY; -ENOMEM. */
int turn_take(struct turn *turn, struct daemon *d, const char *tenant, struct err *err);
/* Safe on a zeroed one. */
void turn_end(struct turn *turn);
#define _cleanup_turn_ __attribute__((cleanup(turn_end)))

#endif
