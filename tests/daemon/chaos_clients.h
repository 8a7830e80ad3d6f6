/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of several nodes that send executions of all kinds while nodes and servers come and
 * go, and what each of them was told.
 */
#ifndef SKILLVM_TESTS_DAEMON_CHAOS_CLIENTS_H
#define SKILLVM_TESTS_DAEMON_CHAOS_CLIENTS_H

#include "tests/daemon/daemon_harness.h"

#include <pthread.h>

#define CHAOS_NODES    5u
#define CHAOS_CLIENTS  8u
#define CHAOS_SENT_MAX 60000u

struct chaos_sent {
    char id[38];     /* "": nobody said which it is */
    char status[12]; /* that it ended with, as it was answered; "": not answered */
    bool other_id;   /* its key began another execution elsewhere */
    bool is_keyed;
    bool is_retried;   /* it may run several times, and is never lost */
    bool is_endless;   /* unless somebody ends it */
    bool must_not_run; /* "was not confirmed" */
};

struct chaos {
    struct harness *nodes; /* CHAOS_NODES; only their sockets are used */
    unsigned wanted;       /* executions, and more while may_end is not set */
    bool may_end;          /* atomic */
    unsigned n;            /* atomic: requests, each of which has a place in sent */
    struct chaos_sent *sent;
    unsigned codes[600]; /* atomic: answers by status; 0: none came */
    struct chaos_client {
        struct chaos *chaos;
        unsigned short seed[3];
        pthread_t thread;
    } clients[CHAOS_CLIENTS];
};

void chaos_begin(struct chaos *c, unsigned seed);
/* Waits for the clients, which end once there were enough and they may. */
void chaos_join(struct chaos *c);
/* The request that an id is of; NULL: nobody heard of it. Once they have ended. */
const struct chaos_sent *chaos_find(const struct chaos *c, const char *id);
void chaos_finish(struct chaos *c);
/*
 * A request that may come to nothing: status 0. It waits for an answer for as long as a node
 * may stand still.
 */
struct answer chaos_ask(const struct harness *h, const char *method, const char *path,
                        const char *json);

#endif
