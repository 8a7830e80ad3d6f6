/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution as Server-Sent Events: status, stdout and stderr as they come, then result.
 * A reader holds a place in the execution's log and nothing else, so a slow one costs a place,
 * and one that is gone costs nothing. Of what another node has it also holds the last that this
 * one said of it, which is a piece of the log.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_EVENT_STREAM_H
#define SKILLVM_API_DAEMON_ROUTES_EVENT_STREAM_H

#include "api/daemon/routes/daemon.h"

/*
 * Makes the reply a stream of the execution's events; takes the reference over. A large result
 * counts as held until its reader has it. Where another node takes it over it goes on as below.
 */
void event_stream_reply(struct daemon *d, struct execution *e, struct http_reply *reply);
/*
 * The same events of an execution that has ended, from its row, to which its result is read:
 * each stream in one event. The row stays the caller's.
 */
void event_stream_reply_stored(struct daemon *d, struct http_request *http,
                               struct registry_execution *row, struct http_reply *reply);
/*
 * The same of one that another node has, which a row says: that node is asked for its log as it
 * comes. While it does not answer its end is waited for. The row stays the caller's.
 */
void event_stream_reply_elsewhere(struct daemon *d, const struct registry_execution *row,
                                  struct http_reply *reply);

#endif
