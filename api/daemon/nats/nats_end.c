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

#define END_S 10 /* within which a connection has ended */

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

bool nats_end_connection(struct cluster_link *link)
{
    struct timespec until;

    if (!link->connection) {
        free(link->ending);
        return true;
    }
    natsConnection_Close(link->connection);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    while (sem_clockwait(&link->ending->over, CLOCK_MONOTONIC, &until) < 0) {
        if (errno != EINTR)
            return false;
    }
    free(link->ending);
    return true;
}
