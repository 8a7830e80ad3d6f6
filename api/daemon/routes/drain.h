/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that an operator drains: it takes no more executions, and goes on with those that it
 * has. That stays so when its daemon starts again, until the operator takes it back: a file in
 * the data folder says it.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_DRAIN_H
#define SKILLVM_API_DAEMON_ROUTES_DRAIN_H

#include "api/daemon/routes/daemon.h"

/* Drains where the daemon before was being drained. Nothing on its own. */
void drain_restore(struct daemon *d);
/* Does what is wished of this node. 0; -errno where that cannot be kept in the data folder. */
int drain_wish(struct daemon *d, enum node_wish wish, struct node_drain *ret, struct err *err);

#endif
