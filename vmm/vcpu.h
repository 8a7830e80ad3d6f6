/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the vCPU. Used by machine.c and snapshot.c only.
 */
#ifndef SKILLVM_VMM_VCPU_H
#define SKILLVM_VMM_VCPU_H

#include "base/err.h"
#include "vmm/machine.h"

/* Makes the thread, which waits for vcpu_start. 0 or -errno. */
int vcpu_create(struct machine *m, struct err *err);
/* Lets it enter the guest; it returns when the guest ended or vcpu_stop was called. */
void vcpu_start(struct machine *m);
/* Makes the thread leave the guest and joins it. No effect without a thread. */
void vcpu_stop(struct machine *m);
/*
 * Finishes what the last exit left half done (the result of a read not yet in a register), with
 * the thread stopped and without running the guest. Then the vCPU's state may be read. 0 or
 * -errno.
 */
int vcpu_complete_exit(struct machine *m, struct err *err);

#endif
