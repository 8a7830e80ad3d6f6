/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small skill of our own, run in a machine that was restored with a file to record in, so
 * that the VMM learns which pages every run uses. Only the making of a snapshot calls this.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_WARMUP_H
#define SKILLVM_API_DAEMON_ENGINE_WARMUP_H

#include "api/daemon/engine/vm.h"
#include "base/err.h"

#include <stdint.h>

/*
 * Runs it in a machine that was just started, and has the machine end by itself, which writes
 * the record. vm_finish is the caller's in any case. 0, or -errno with the reason: then there
 * is no record to trust.
 */
int warmup_run(struct vm *vm, int tmp_fd, uint64_t grace_ms, struct err *err);

#endif
