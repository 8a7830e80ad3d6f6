/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What counts as its tenant's for as long as an execution is there, which may be long after its
 * request: bytes on disk that it alone has, and its uses of objects that may be removed.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_HOLDING_H
#define SKILLVM_API_DAEMON_ROUTES_HOLDING_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/routes/daemon.h"
#include "base/err.h"

#include <stdint.h>

/* Before the others. 0 or -ENOMEM. */
int holding_begin(struct daemon *d, struct execution *e, struct err *err);
/* It uses an object by a descriptor or a link; as of uses_begin. */
int holding_use(struct execution *e, int fd, const char *link, struct err *err);
/* So many bytes that are held for its tenant are given back with it. */
void holding_keep(struct execution *e, uint64_t bytes);

#endif
