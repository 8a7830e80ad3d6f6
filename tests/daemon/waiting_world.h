/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes, and executions that wait there. */
#ifndef SKILLVM_TESTS_DAEMON_WAITING_WORLD_H
#define SKILLVM_TESTS_DAEMON_WAITING_WORLD_H

#include "tests/daemon/nodes_world.h"

/* Settings of a node with one slot, what a request of the skill of both has, and one that does
   not end by itself. */
#define WAITING_LINES   "limits:\n  max_running: 1\n  max_queued: 200\n"
#define WAITING_OF(how) "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define WAITING_BUSY    "{" WAITING_OF("ticks") ",\"timeout\":600,\"async\":true}"
/* One that may be begun again once, and what its result says then. */
#define WAITING_RETRIED                                                                        \
    "{" WAITING_OF("ticks") ",\"timeout\":600,\"async\":true,\"retries\":1,"                   \
                            "\"idempotency_key\":\"again\"}"
#define WAITING_AGAIN "a node was lost while this ran there: it was begun again"

struct waiting_world {
    struct nats_world nats;
    struct harness a, b;
    char busy_a[38], busy_b[38]; /* what runs there */
};

/*
 * Begins two nodes that have a skill and run nothing. The first is called so, or NULL: as its
 * host is.
 */
void waiting_begin_free(struct waiting_world *w, const char *a_name, const char *a_lines,
                        const char *b_lines);
/* The same where each has one slot, which is taken; with more lines of the first. */
void waiting_begin_as(struct waiting_world *w, const char *a_name, const char *a_lines);
void waiting_begin(struct waiting_world *w);
void waiting_finish(struct waiting_world *w);

/* Takes a slot until that is ended, which waiting_end asks for. */
void waiting_fill(const struct harness *h, char ret[38]);
void waiting_end(const struct harness *h, const char *id);
/* Whether what the servers have of one has such a part. */
void waiting_expect(const struct waiting_world *w, const char *id, const char *part,
                    bool there);
/* Waits until it has these two. */
void waiting_until(const struct waiting_world *w, const char *id, const char *part,
                   const char *other);
/* Sends one that the server, which stands still from then on, does not confirm to a; again
   where a saw that before it sent it on. The answer, a 503. */
struct answer waiting_unconfirmed(const struct waiting_world *w, const char *json);
/* Begins one that waits at a, where others may take it. */
void waiting_at_a(const struct waiting_world *w, char ret[38]);
/* Waits until one waits at b so. */
void waiting_at_b(const struct waiting_world *w, const char *id);
/* Tells b to take over one of a's, as a would that gives it away. */
void waiting_tell_b(const struct waiting_world *w, const char *id);
/* Asks b to begin a new one, as a node of this name would. Whether it does. */
bool waiting_ask_b(const struct waiting_world *w, const char *from);
/* Answers calls in b's place, once neither node has room for them. */
struct nats_answering waiting_answer_as_b(const struct waiting_world *w, char *answer);
/* Has a end in order, and waits until it is about to. */
void waiting_stop_a(const struct waiting_world *w);
/* Begins a node, with these lines, that runs such a request, and then another one, which may
   not take it so; waits until that knows of it. */
void waiting_begin_running(struct waiting_world *w, const char *a_lines, const char *request,
                           char ret[38]);
/* Begins two nodes with a slot, and WAITING_RETRIED, which runs at a; waits until b has it. */
void waiting_begin_retried(struct waiting_world *w, char ret[38]);
void waiting_again_at_b(const struct waiting_world *w, const char *id);

#endif
