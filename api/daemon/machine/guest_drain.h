/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill sent to hosts before its end, on its way to peers that take it slowly: for as
 * long as the skill's own time would have lasted, within bounds.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_GUEST_DRAIN_H
#define SKILLVM_API_DAEMON_MACHINE_GUEST_DRAIN_H

#include "api/daemon/egress/egress.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The skill has ended, by itself or not, whose time is over at over_ns (monotonic). From here
 * on egress_work passes on what there is.
 */
void guest_drain_begin(struct egress *egress, uint64_t over_ns, bool was_ended);
/* Waits until all of it was passed on or given up, or cancel_fd (or -1) becomes readable. */
void guest_drain_wait(struct egress *egress, int cancel_fd);

#endif
