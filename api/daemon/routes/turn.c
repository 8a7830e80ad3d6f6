/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/turn.h"

#include "base/clock.h"

#include <errno.h>

/* How long one waits. */
#define WAIT_NS (10 * NS_PER_SECOND)

int turn_take(struct turn *turn, struct daemon *d, const char *tenant, struct err *err)
{
    int r = fair_gate_enter(d->ingest_gate, tenant, &turn->entry,
                            clock_monotonic_ns() + WAIT_NS, NULL);

    if (r == -EBUSY)
        return err_set(err, EBUSY,
                       "too many archives are being looked at already: try again in a moment");
    if (r < 0)
        return err_no_memory(err);
    turn->gate = d->ingest_gate;
    return 0;
}

void turn_end(struct turn *turn)
{
    if (turn->gate)
        fair_gate_leave(turn->gate, &turn->entry);
    turn->gate = NULL;
}
