/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input files of an execution, from what its request says of them to links. What was
 * uploaded is linked to; what comes with the request, and what another execution left, is
 * written to the same folder, held for the request before it is.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_INPUTS_H
#define SKILLVM_API_DAEMON_ROUTES_INPUTS_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/http/http.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/request.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Gives an execution, whose job has them, on failure too, the files of its request; body is the
 * text that this was parsed from. 0 with the bytes that are held; -EINVAL for a file that is
 * not there, content that cannot be read or paths that exclude each other; -EFBIG when they are
 * too large together; -EDQUOT where they may not be held, and then there is a reply; -ENOMEM;
 * -EIO.
 */
int inputs_open(struct daemon *d, struct http_request *http, const struct request *request,
                const char *body, struct execution *e, uint64_t *ret_held, struct err *err);

/*
 * Whether another node can give an execution what this one has: nothing that was uploaded for
 * it was removed since.
 */
bool inputs_are_shared(struct daemon *d, const struct execution *e);

#endif
