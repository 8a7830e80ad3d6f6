/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an errno of the daemon means to a caller, in one table. Where the same errno means
 * something else (a tenant that is gone, a skill that is none) the route says so itself.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_FAILURE_H
#define SKILLVM_API_DAEMON_ROUTES_FAILURE_H

#include "api/daemon/http/http.h"
#include "api/json/json_write.h"
#include "base/err.h"

#include <stdbool.h>

/*
 * Fills the reply to what failed with result (-errno): err's message, or where it is not set
 * what the errno is called. What the table does not have is our fault, a 500. False, as
 * http_reply_error.
 */
bool failure_reply(struct http_reply *reply, int result, const struct err *err);
/* True where result is 0, and else the same. */
bool failure_or_true(struct http_reply *reply, int result, const struct err *err);
/* failure_reply for a thing that a caller knows by its id: of -ENOENT it says that there is
 * none.
 */
bool failure_of(struct http_reply *reply, int result, const char *thing, const char *id,
                struct err *err);

/*
 * Ends what was written, and replies with it unless result or the writing is a failure. True
 * where it did.
 */
bool failure_or_json(struct http_reply *reply, unsigned status, struct json_writer *w,
                     int result, const struct err *err);

#endif
