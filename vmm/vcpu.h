/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the vCPU. Used by machine.c and snapshot.c only.
 */
#ifndef SKILLVM_VMM_VCPU_H
#define SKILLVM_VMM_VCPU_H

#include "base/err.h"
#include "vmm/harden.h"
#include "vmm/machine.h"

/*
 * Makes the thread, which waits for vcpu_start. plan is borrowed for the machine's life: what
 * the thread gives up before it first enters the guest. 0 or -errno.
 */
int vcpu_create(struct machine *m, const struct harden_plan *plan, struct err *err);
/*
 * Lets it enter the guest, for the first time or after vcpu_pause. A thread that could not give
 * up what it has to ends the machine instead.
 */
void vcpu_start(struct machine *m);
/*
 * Makes the thread leave the guest, finish what its last exit left half done, and wait for
 * vcpu_start. Then the vCPU's state may be read or replaced. 0, or -EIO for a guest that ended.
 * Only once for each vcpu_start.
 */
int vcpu_pause(struct machine *m, struct err *err);
/* Makes the thread leave the guest and joins it. No effect without a thread. */
void vcpu_stop(struct machine *m);

#endif
