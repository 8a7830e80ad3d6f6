/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution as Server-Sent Events: status, stdout and stderr as they come, then result.
 * A reader holds a place in the execution's log and nothing else, so a slow one costs a place,
 * and one that is gone costs nothing.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_EVENT_STREAM_H
#define SKILLVM_API_DAEMON_ROUTES_EVENT_STREAM_H

#include "api/daemon/callers/held.h"
#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/ledger.h"
#include "api/daemon/http/http.h"
#include "api/daemon/registry/registry.h"

/*
 * Makes the reply a stream of the execution's events; takes the reference over. held is
 * borrowed: a large result counts there until its reader has it. ledger (borrowed; NULL on its
 * own) tells the end where another node takes it over.
 */
void event_stream_reply(struct execution *e, struct ledger *ledger, struct held *held,
                        struct http_reply *reply);
/*
 * The same events of an execution that has ended, from its row, which has a result: each stream
 * in one event. The row stays the caller's.
 */
void event_stream_reply_stored(const struct registry_execution *row, struct http_reply *reply);
/*
 * The same of one that another node has, which a row says: its log comes when it has ended.
 * ledger and held are borrowed, the row stays the caller's.
 */
void event_stream_reply_elsewhere(struct ledger *ledger, struct held *held,
                                  const struct registry_execution *row,
                                  struct http_reply *reply);

#endif
