/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to reach the relay inside the software host: connect, preamble, one byte of
 * answer. It never blocks and never sends anything but the preamble.
 */
#ifndef SKILLVM_API_HOST_DIAL_H
#define SKILLVM_API_HOST_DIAL_H

#include "api/host/wire.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct dial {
    int fd; /* -1: idle */
    size_t sent;
    uint64_t deadline_ns;
    uint8_t preamble[WIRE_PREAMBLE_SIZE];
};

#define DIAL_IDLE ((struct dial){.fd = -1})

/*
 * Begins an attempt that gives up after timeout_ms; uid as in struct wire_request. 0; or -errno
 * with d idle.
 */
int dial_start(struct dial *d, uint16_t port, enum wire_op op, uid_t uid, const uint8_t *token,
               uint32_t timeout_ms);

/* The entry for poll(2). */
struct pollfd dial_poll(const struct dial *d);

/*
 * Goes on with it. -EINPROGRESS: not finished. 0: answered WIRE_OK, and *ret_fd is the
 * connection (owned by the caller). Else it failed and d is idle: -EAGAIN when the daemon does
 * not listen, -ETIMEDOUT, -ECONNRESET or another errno of the socket.
 */
int dial_run(struct dial *d, uint64_t now_ns, int *ret_fd);

/* Gives up; safe on an idle one. */
void dial_finish(struct dial *d);

#endif
