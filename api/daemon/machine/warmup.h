/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small job of our own, which does what nearly every skill does: its machine learns or has
 * ready the pages that every run uses. No tenant's bytes are in it.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_WARMUP_H
#define SKILLVM_API_DAEMON_MACHINE_WARMUP_H

#include "api/daemon/machine/guest.h"
#include "api/skill/image_manifest.h"
#include "base/err.h"

/* What it is written in: as most skills of the image are. */
enum warmup_kind { WARMUP_PYTHON, WARMUP_BASH, WARMUP_KINDS };

/* WARMUP_BASH for an image that is known to have no Python. */
enum warmup_kind warmup_kind_of(const struct image_manifest *manifest);
/* Makes the job (caller's). 0, -E2BIG or -ENOMEM. */
int warmup_job(enum warmup_kind kind, struct job *ret, struct err *err);
/* Makes one of each kind (the caller's, in any case). The same. */
int warmup_jobs(struct job ret[WARMUP_KINDS], struct err *err);
/* Runs it. 0, or -errno with the reason: then the machine is not one to go on with. */
int warmup_run(struct guest *guest, const struct job *job, struct err *err);

#endif
