/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with executions that were accepted, each in the way that was asked for. */
#ifndef SKILLVM_API_DAEMON_ROUTES_EXECUTION_REPLY_H
#define SKILLVM_API_DAEMON_ROUTES_EXECUTION_REPLY_H

#include "api/daemon/routes/daemon.h"

/* With one that waits or runs here; takes the reference over. */
void execution_reply(struct daemon *d, struct http_request *http, struct http_reply *reply,
                     struct execution *e, bool is_async);
/* With one that has ended, or that another node has; the row stays the caller's. */
void execution_reply_row(struct daemon *d, struct http_request *http, struct http_reply *reply,
                         struct registry_execution *row, bool is_async);
/* 202 with its id and a word. */
void execution_reply_status(struct http_reply *reply, const char *id, const char *status);

#endif
