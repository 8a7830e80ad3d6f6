/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an execution's id to its row and, while it lasts, to the execution itself. Between the
 * two it is nowhere for a moment; nobody here sees that moment.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_LOOKUP_H
#define SKILLVM_API_DAEMON_ROUTES_LOOKUP_H

#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/turn.h"

#include <stdbool.h>

/*
 * Finds the row of an id of a stranger's. Another tenant's is not there. False when *reply says
 * why not.
 */
bool lookup_row(struct daemon *d, const char *tenant, const char *id,
                struct registry_execution *ret, struct http_reply *reply);
/*
 * Reads the result of a row, which counts as held for an answer from before that; as
 * ledger_read_result. For a large one *turn (zeroed) is taken, the caller's until it has made
 * its reply of it. False when *reply says why not.
 */
bool lookup_result(struct daemon *d, struct http_request *http, struct registry_execution *row,
                   struct turn *turn, struct http_reply *reply);
/* Replies with the result that a row has, which it has no longer. */
void lookup_reply_result(struct daemon *d, const struct http_request *http,
                         struct registry_execution *row, struct http_reply *reply);
/* Whether a row is of an execution that another node has, and that has not ended. */
bool lookup_is_elsewhere(const struct registry_execution *row);

/*
 * Opens the archive of what an execution left: a descriptor, the caller's, or -ENOENT with the
 * reason where there is none; as of objects_get; or -EIO.
 */
int lookup_files(struct daemon *d, const char *tenant, const char *id, struct err *err);

/*
 * Finds the execution: either a reference in *ret_e while it is queued or runs, or NULL there
 * and its row in *ret_row, which has ended unless that was lost, or another node has it. False
 * when *reply says why not.
 */
bool lookup_execution(struct daemon *d, const char *tenant, const char *id,
                      struct execution **ret_e, struct registry_execution *ret_row,
                      struct http_reply *reply);

#endif
