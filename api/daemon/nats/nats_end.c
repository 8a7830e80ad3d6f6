/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that breaks is ended by a thread of libnats's, and natsConnection_Close does not
 * wait for that then: what the thread that reads still has in its hands would be freed. Once it
 * has ended nobody reads.
 */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

/* Within which a connection has ended. In slices: this process may have stood still. */
#define END_SLICES   100u
#define END_SLICE_NS 100000000L
#define SECOND_NS    1000000000L

struct nats_ending {
    sem_t over;
};

void nats_note_end(natsConnection *connection, void *closure)
{
    struct nats_ending *ending = closure;

    (void)connection;
    (void)sem_post(&ending->over);
}

struct nats_ending *nats_ending_create(void)
{
    struct nats_ending *ending = calloc(1, sizeof(*ending));

    if (ending)
        (void)sem_init(&ending->over, 0, 0);
    return ending;
}

static bool is_over(struct nats_ending *ending)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += END_SLICE_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    while (sem_clockwait(&ending->over, CLOCK_MONOTONIC, &until) < 0) {
        if (errno != EINTR)
            return false;
    }
    return true;
}

bool nats_end_connection(struct cluster_link *link)
{
    if (!link->connection) {
        free(link->ending);
        return true;
    }
    natsConnection_Close(link->connection);
    for (unsigned n = 0; n < END_SLICES; n++) {
        if (is_over(link->ending)) {
            free(link->ending);
            return true;
        }
    }
    return false;
}
