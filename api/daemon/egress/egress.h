/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one execution to the internet, by name: what a guest asks for in NET
 * frames (guest-init/proto.h) is looked up, checked, connected to and relayed here, and
 * counted. It knows names, addresses and limits, and nothing of skills, tenants or machines.
 * The guest is hostile: what it can make this hold is PROTO_NET_WINDOW bytes for each of
 * PROTO_NET_CONNECTIONS connections and a fixed table of names; nothing here waits.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_EGRESS_H
#define SKILLVM_API_DAEMON_EGRESS_EGRESS_H

#include "api/daemon/egress/records.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct egress;

/* What holds for all executions. Borrowed. */
struct egress_settings {
    const char *fixed_names; /* as of fixed_names.h */
    const char *servers;     /* DNS servers, "ADDRESS:PORT" with commas; "": the system's */
    uint64_t connections_max;
    uint64_t bytes_max; /* in both directions together */
};

/*
 * What may be reached: what all three permit, which are lists as of host_pattern.h; NULL
 * restricts nothing. Borrowed.
 */
struct egress_rules {
    const char *declared; /* never NULL; its ports are those that there are */
    const char *policy;
    const char *asked;
};

/* Nothing is looked up or connected before a guest asks. NULL with the reason. */
struct egress *egress_open(const struct egress_settings *settings,
                           const struct egress_rules *rules, struct err *err);
/* Closes all of its connections: whose bytes have not all gone is reset. NULL is fine. */
void egress_close(struct egress *e);

/* Readable, as poll knows it, when egress_work is due. */
int egress_fd(const struct egress *e);
/* When egress_work is due whether it is readable or not (monotonic); UINT64_MAX: never. */
uint64_t egress_deadline_ns(const struct egress *e);
/* Does what can be done without waiting. */
void egress_work(struct egress *e);

/*
 * Takes a frame of the guest's. It only notes it: egress_work is due then. 0; -EPROTO for what
 * a guest may not say; -ENOMEM.
 */
int egress_take(struct egress *e, uint8_t type, const uint8_t *payload, size_t len,
                struct err *err);
/*
 * Writes the payload of the next frame to the guest, of at most PROTO_CHUNK_MAX bytes. Its
 * length, or 0 when there is none now.
 */
size_t egress_next(struct egress *e, uint8_t *ret_type, uint8_t *payload);

/*
 * The guest has ended, and says and hears nothing more: what it sent on connections that it
 * ended goes on to peers as egress_work is called, until the deadline (monotonic). All others
 * are reset.
 */
void egress_end(struct egress *e, uint64_t deadline_ns);
/* True while there is something left to send on. */
bool egress_is_sending(const struct egress *e);

/* What was reached and what was refused so far. Borrowed. */
const struct egress_records *egress_log(const struct egress *e);

#endif
