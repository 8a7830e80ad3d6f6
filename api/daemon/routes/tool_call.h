/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of POST /v1/tools/call, and the body of POST /v1/executions that it stands for.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_TOOL_CALL_H
#define SKILLVM_API_DAEMON_ROUTES_TOOL_CALL_H

#include "api/daemon/routes/tool_catalog.h"
#include "api/json/json_text.h"
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

#define TOOL_CALL_OPTIONS 10u

struct tool_call {
    char *name; /* owned */
    /* Borrowed from the body: an object, or a string that holds one; of length 0 where absent.
     */
    struct json_slice arguments;
    /* What goes on to the execution as it is, borrowed too. */
    struct json_member options[TOOL_CALL_OPTIONS];
    size_t n_options;
};

/*
 * Parses {name, arguments?, async?, timeout?, limits?, env?, files?, idempotency_key?};
 * arguments may also be a string that holds the object, as some models' APIs give them. 0;
 * -EINVAL; -EFBIG; -ENOMEM. The caller finishes *ret on success.
 */
int tool_call_parse(const char *body, size_t len, struct tool_call *ret, struct err *err);
/* Safe on a zeroed or finished one. */
void tool_call_finish(struct tool_call *call);
#define _cleanup_tool_call_ __attribute__((cleanup(tool_call_finish)))

/*
 * Writes the request of the execution. The arguments become the input, checked against the
 * skill's own schema where it has one, or the command line of a script; those of run_code are
 * members of the request. 0; -EINVAL naming the
 * argument; -EFBIG; -E2BIG; -ENOMEM.
 */
int tool_call_translate(const struct tool_call *call, const struct tool *tool, struct buf *ret,
                        struct err *err);

#endif
