/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The skill's network: a resolver that gives each name which the host permits a loopback
 * address of its own, listeners there, and connections that are relayed to the host as NET
 * frames (guest-init/proto.h). What is permitted is the host's to know. Nothing here waits for
 * the skill or the host, but net_drain for a while, and what it holds is bounded.
 */
#ifndef SKILLVM_GUEST_NET_H
#define SKILLVM_GUEST_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "guest-init/frame.h"

/* Where the resolver listens; /etc/resolv.conf of the image has it. */
#define NET_RESOLVER "127.0.0.53"
#define NET_DNS_PORT 53

struct net;

/* dns_port is NET_DNS_PORT outside of tests. NULL with err set. */
struct net *net_open(uint16_t dns_port, struct err *err);
/* Closes every connection. NULL is fine. */
void net_close(struct net *n);
/* Readable when net_work is due. */
int net_fd(const struct net *n);
/* Does what can be done without waiting. */
void net_work(struct net *n);
/* Takes a frame of the host's. 0; -EPROTO; -ENOMEM. */
int net_take(struct net *n, const struct frame *frame);
/*
 * Adds frames for the host, and leaves room for the skill's output. True when more is to be
 * done at once than fitted.
 */
bool net_send(struct net *n, struct frame_writer *w);
/* True where the skill has connections, or waits for one. After net_work. */
bool net_is_used(const struct net *n);
/*
 * After the end of all of the skill's processes: passes on what they had sent, and their ends,
 * as long as the host takes it. Frames of the host's are read from the reader. 0, with all of
 * it sent or the deadline (monotonic) passed; -ECANCELED when CANCEL came; -EPROTO; -errno of
 * the stream.
 */
int net_drain(struct net *n, struct frame_reader *r, struct frame_writer *w,
              uint64_t deadline_ns);

#endif
