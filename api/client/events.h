/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose answer comes as events: what each of them says is taken apart here, and
 * passed on as it comes. Whoever makes the request owns the stream; no thread and no
 * connection.
 */
#ifndef SKILLVM_API_CLIENT_EVENTS_H
#define SKILLVM_API_CLIENT_EVENTS_H

#include "api/client/skillvm.h"
#include "base/buf.h"

struct event_stream {
    const struct skillvm_events *events; /* borrowed */
    struct buf text;                     /* a piece of output, decoded */
    struct buf result;                   /* the result's JSON */
    struct buf lost;                     /* the JSON of why there will be no result */
};

/* Makes the request's answer come to the stream; both live until the request has ended. */
void event_stream_begin(struct event_stream *s, const struct skillvm_events *events,
                        size_t max_bytes, struct skillvm_request *request);
void event_stream_finish(struct event_stream *s);

#define _cleanup_event_stream_ __attribute__((cleanup(event_stream_finish)))

#endif
