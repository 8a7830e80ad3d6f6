/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon that died left behind: executions that never ended. */
#ifndef SKILLVM_API_DAEMON_ENGINE_RECOVER_H
#define SKILLVM_API_DAEMON_ENGINE_RECOVER_H

#include "api/daemon/registry/registry.h"
#include "base/err.h"

/*
 * Ends the executions that were accepted by a daemon that is no more: status failed, with the
 * reason, and no files. What cannot be written now is left for the next start. node: what this
 * one is called in a cluster, which is told, and where others may run what waited; NULL: it is
 * on its own, and what others were to run fails too. 0 or -errno.
 */
int recover_executions(struct registry *registry, const char *node, struct err *err);

#endif
