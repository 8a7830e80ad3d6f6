/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small job of our own, which does what nearly every skill does: its machine learns or has
 * ready the pages that every run uses. No tenant's bytes are in it.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_WARMUP_H
#define SKILLVM_API_DAEMON_MACHINE_WARMUP_H

#include "api/daemon/machine/guest.h"
#include "base/err.h"

/* Makes the job (caller's). 0, -E2BIG or -ENOMEM. */
int warmup_job(struct job *ret, struct err *err);
/* Runs it. 0, or -errno with the reason: then the machine is not one to go on with. */
int warmup_run(struct guest *guest, const struct job *job, struct err *err);

#endif
