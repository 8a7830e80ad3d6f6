/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stream sockets joined: bytes and ends of file of each go to the other. It never looks at
 * the bytes, never holds more than PUMP_BUFFER of them a direction, and never blocks.
 */
#ifndef SKILLVM_API_HOST_PUMP_H
#define SKILLVM_API_HOST_PUMP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUMP_BUFFER 65536u

struct pump_way {
    uint8_t *data; /* owned, PUMP_BUFFER bytes */
    size_t at;
    size_t len;
    bool eof;  /* nothing more comes from the source */
    bool done; /* nothing more goes to the target */
};

struct pump {
    int fd[2];
    struct pump_way way[2]; /* way[i]: from fd[i] to fd[1 - i] */
};

/* Takes both descriptors over, also on failure. 0 or -ENOMEM, or -errno of fcntl(2). */
int pump_init(struct pump *p, int fd_a, int fd_b);

/* Puts len bytes (at most PUMP_BUFFER) before all others that go from fd[side] to the other. */
void pump_preload(struct pump *p, int side, const void *data, size_t len);

/* Fills two entries for poll(2); an end that nothing is wanted of gets fd -1. */
void pump_poll(const struct pump *p, struct pollfd *ret_pollfds);

/* Moves what can be moved. True while the pump is alive; false when it can be finished. */
bool pump_run(struct pump *p);

/* Closes and frees; safe on a pump of zeroes with both fd -1. */
void pump_finish(struct pump *p);

#endif
