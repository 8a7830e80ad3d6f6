/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the skill's, and its place in the conversation with the host: what was
 * accepted from the skill, what may be sent to whom, and what is due. It never waits, and holds
 * at most PROTO_NET_WINDOW bytes.
 */
#ifndef SKILLVM_GUEST_NET_CONN_H
#define SKILLVM_GUEST_NET_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "guest-init/frame.h"

/* DUE: the host is to be asked for it. */
enum net_conn_state { CONN_FREE, CONN_DUE, CONN_ASKED, CONN_OPEN };

struct net_conn {
    enum net_conn_state state;
    int fd;
    unsigned name;
    uint16_t port;
    struct buf in;      /* the host's bytes, for the skill */
    uint32_t passed_on; /* since the host was told */
    uint32_t in_flight; /* bytes to the host that it has given no room for, past the end too */
    bool readable, writable;
    bool host_ended, skill_ended, broke, end_sent;
};

/* Closes and forgets it, but the room that may still come. */
void net_conn_free(struct net_conn *c);
/* The same once both sides have ended and the skill has all bytes. */
void net_conn_free_if_over(struct net_conn *c);
/* Closes it: the skill sees that it broke, and not that it ended. */
void net_conn_reset(struct net_conn *c);
/* Passes on the host's bytes, as far as the skill takes them. */
void net_conn_write(struct net_conn *c);
/* Frames of the host's, behind the connection's number. 0; -EPROTO; -ENOMEM. */
int net_conn_take_data(struct net_conn *c, struct bytes_reader *r);
int net_conn_take_end(struct net_conn *c, struct bytes_reader *r);
int net_conn_take_room(struct net_conn *c, struct bytes_reader *r);
/* Reads what the skill sent into a frame, or says what else there is. True when there was any.
 */
bool net_conn_send_data(struct net_conn *c, unsigned key, struct frame_writer *w);
bool net_conn_send_news(struct net_conn *c, unsigned key, struct frame_writer *w);
/*
 * True while there is something of the skill's that the host was not given, of which the end is
 * the last. One that is not open yet is of no use where nothing was sent on it.
 */
bool net_conn_has_to_send(const struct net_conn *c);

#endif
