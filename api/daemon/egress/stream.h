/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a peer, and its place in the conversation with the guest: what may be sent
 * to whom, and what is due. It never waits, and holds at most PROTO_NET_WINDOW bytes.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_STREAM_H
#define SKILLVM_API_DAEMON_EGRESS_STREAM_H

#include "api/daemon/egress/reachable.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_state {
    STREAM_FREE,
    STREAM_CONNECTING,
    STREAM_REFUSED, /* the guest is to be told */
    STREAM_OPEN,
    STREAM_DRAINING, /* over for the guest; the peer takes the rest */
};

/* So many addresses are tried beside each other. */
#define STREAM_ATTEMPTS 4u

struct stream_attempt {
    int fd;            /* -1: none */
    uint64_t since_ns; /* monotonic */
};

struct stream {
    enum stream_state state;
    int fd; /* once it is connected; -1 */
    struct stream_attempt attempts[STREAM_ATTEMPTS];
    uint16_t port;
    char host[HOST_NAME_SIZE];
    union ip_address addresses[NAME_ADDRESSES_MAX];
    size_t n_addresses, tried;
    uint64_t next_ns;     /* when the next address is tried */
    uint64_t deadline_ns; /* while it connects or drains */
    int error;            /* of the attempt that failed last */
    struct egress_record *record;
    struct buf out;     /* the guest's bytes, for the peer */
    uint32_t may_take;  /* bytes of the guest's, and so how many it may still send */
    uint32_t passed_on; /* since the guest was told */
    uint32_t in_flight; /* bytes to the guest that it has given no room for, past the end too */
    bool readable, writable;
    bool opened_due;
    bool guest_ended, peer_ended, broke, end_sent;
    bool opens_again; /* the guest has this number for another, which waits for this one */
    unsigned next_name;
    uint16_t next_port;
};

/* What a connection shares with the others of its execution. */
struct stream_shared {
    struct egress_records *records;
    uint64_t bytes, bytes_max; /* in both directions */
    int epoll_fd;
};

/* One that is free. */
struct stream stream_init(void);
/* Begins to connect to a name that is good. key: what the epoll instance calls it. */
void stream_connect(struct stream *s, struct stream_shared *shared, const struct name *name,
                    uint16_t port, unsigned key);
/* The guest is to be told that it is none. */
void stream_refuse(struct stream *s);
/* What epoll said of it. */
void stream_note(struct stream *s, uint32_t events);
/* When stream_work is due whatever comes (monotonic); UINT64_MAX: never. */
uint64_t stream_due_ns(const struct stream *s);
/* Connects, and passes on what the guest sent, as far as it goes. */
void stream_work(struct stream *s, struct stream_shared *shared, unsigned key);
/* The guest's bytes. 0; -EPROTO for more than it may send; -ENOMEM. */
int stream_take(struct stream *s, const uint8_t *data, size_t len);
/* The guest's end. 0, or -EPROTO where it was said before. */
int stream_take_end(struct stream *s, bool broke);
/*
 * Reads bytes of the peer's for the guest, at most max and what the guest may be sent. How
 * many; 0 when there are none now.
 */
size_t stream_read(struct stream *s, struct stream_shared *shared, uint8_t *data, size_t max);
/* True when the guest is to be told the end. */
bool stream_end_is_due(const struct stream *s);
/* The guest was told: whose number is free, where nothing of it is left to do. */
void stream_told_end(struct stream *s);
/*
 * There is no guest any more: one that it ended drains where there is something to send on. Any
 * other is closed, which is no end for its peer.
 */
void stream_end(struct stream *s, uint64_t deadline_ns);
/* The same where nothing drains any more: whose bytes have not all gone is reset. */
void stream_abort(struct stream *s);
/* Closes and forgets it, but what waits to be opened and the room that may still come. */
void stream_reset(struct stream *s);

#endif
