/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits in the engine of a node that is full, given away: it leaves the queue for as long
 * as another node is asked, so that it cannot begin at both.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_ENGINE_LEND_H
#define SKILLVM_API_DAEMON_ENGINE_ENGINE_LEND_H

#include "api/daemon/engine/engine.h"

struct lending {
    struct execution *e; /* borrowed, and nobody else's so long */
    struct fair_tenant *place;
};
/* One that waits and that others can run. False: there is none. Each is ended by what follows.
 */
bool engine_lend(struct engine *engine, struct lending *ret);
/* Another node has it, and readers were told of it; or it is here as before. */
void engine_lend_end(struct engine *engine, const struct lending *lending, bool is_given);

#endif
