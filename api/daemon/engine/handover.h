/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution of the engine as a cluster's: whose it is while it waits, and whether it may
 * begin here. Nothing of it concerns a daemon on its own.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_HANDOVER_H
#define SKILLVM_API_DAEMON_ENGINE_HANDOVER_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/ledger.h"

/*
 * Makes the cluster and the registry have it, with what others need to run it. As of
 * ledger_accept.
 */
int handover_accept(struct ledger *ledger, struct execution *e,
                    const struct registry_execution *acceptance, struct err *err);
/*
 * Its turn has come. 0: it begins; -EEXIST: another node has it, and readers were told;
 * -ECANCELED: it is to end, and it is not known whose it is. Waits as long as the cluster
 * cannot be asked.
 */
int handover_begin(struct ledger *ledger, struct execution *e);
/*
 * Another node says that it took one that waits. True: it has it, and readers were told. False:
 * it is this node's still, or that is not known yet.
 */
bool handover_is_gone(struct ledger *ledger, struct execution *e);
/* It does not begin, or go on, here: others may begin it. False where nobody can. */
bool handover_leave(struct ledger *ledger, struct execution *e);
/*
 * Its run is over, and was cancelled or not. True: others may begin it, for which it was ended,
 * or have begun it again, and readers were told. False: how it ended is to be told.
 */
bool handover_resign(struct ledger *ledger, struct execution *e, bool is_cancelled);

#endif
