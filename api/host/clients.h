/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections on the public socket, each relayed to the daemon inside. One that arrives
 * while the host is down waits for it, and is told 503 when that takes too long.
 */
#ifndef SKILLVM_API_HOST_CLIENTS_H
#define SKILLVM_API_HOST_CLIENTS_H

#include "api/host/dial.h"
#include "api/host/pump.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENTS_MAX 128
/* How long a client waits for a host that boots. */
#define CLIENTS_PATIENCE_MS 120000u

struct client {
    bool joined;
    uid_t uid;        /* as whom it is known inside */
    int fd;           /* until joined */
    struct dial dial; /* until joined */
    uint64_t retry_ns;
    uint64_t deadline_ns;
    struct pump pump; /* once joined */
};

/* Zero it. */
struct clients {
    struct client list[CLIENTS_MAX]; /* the first n */
    unsigned n;
    unsigned n_joined;
};

bool clients_full(const struct clients *c);
/* True while a client waits to be joined: the loop then has to turn often. */
bool clients_waiting(const struct clients *c);
/* Takes one connection from the listening socket; does nothing when there is none. */
void clients_accept(struct clients *c, int listen_fd, uint64_t now_ns);
/* Fills entries for poll(2), 2 * CLIENTS_MAX at most. How many. */
size_t clients_poll(struct clients *c, struct pollfd *ret_pollfds);
/* Goes on with every client. port 0: there is no host to reach now. */
void clients_run(struct clients *c, uint16_t port, const uint8_t *token, uint64_t now_ns);
/* Answers those that wait and have asked with 503 and this message, of plain text. */
void clients_refuse(struct clients *c, const char *message);
/* The host is gone: ends what was joined to it. */
void clients_drop_joined(struct clients *c);
void clients_finish(struct clients *c);

#endif
