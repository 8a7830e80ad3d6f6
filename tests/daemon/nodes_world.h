/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that share tenants and keys, and what tests ask of them. */
#ifndef SKILLVM_TESTS_DAEMON_NODES_WORLD_H
#define SKILLVM_TESTS_DAEMON_NODES_WORLD_H

#include "tests/daemon/nats_world.h"

#define NODE_JOINED       "\"state\":\"joined\",\"reason\":null"
#define NODE_CUT_OFF(why) "\"state\":\"cut_off\",\"reason\":\"" why "\""

/*
 * Starts one server and the nodes a and b, with more lines of cluster: each, and makes them a
 * cluster; both are joined then, and ready.
 */
void nodes_begin_two(struct nats_world *w, struct harness *a, const char *a_lines,
                     struct harness *b, const char *b_lines);
/* The same with another name of the first, or NULL for its host's. */
void nodes_begin_named(struct nats_world *w, struct harness *a, const char *a_name,
                       const char *a_lines, struct harness *b, const char *b_lines);
/* The same one by one: the first is a node of a new cluster, or will be, and then b comes. */
void nodes_begin_first(struct nats_world *w, struct harness *a, const char *a_name,
                       const char *a_lines);
void nodes_begin_second(struct nats_world *w, struct harness *a, struct harness *b,
                        const char *b_lines);
/* As nats_start_node, with its log in a file of the servers' folder, whose path it gives. */
void nodes_start_logged(struct harness *h, const struct nats_world *w, const char *name,
                        const char *more, char ret_path[128]);
/* How often a log says something. */
unsigned nodes_count_log(const char *path, const char *text);
/* Waits until it says it at least so often. */
void nodes_wait_log(const char *path, const char *text, unsigned times);
/* Has a node end in order, and waits until it is about to. */
void nodes_begin_stop(const struct harness *h);
/* Ends a node; its folder stays for nodes_start, or goes. */
void nodes_stop(struct harness *h);
void nodes_end(struct harness *h);

/* A request of the operator; JSON or "". The same until it is not a 503 any more. */
struct answer nodes_admin(const struct harness *h, const char *method, const char *path,
                          const char *json);
struct answer nodes_admin_sure(const struct harness *h, const char *method, const char *path,
                               const char *json);
/* Registers a skill of version 1.0, once servers that were just started, or one of which was
   lost, have leaders of all that it takes. */
void nodes_push_sure(const struct harness *h, const char *name);
/* Makes a tenant of this name, or a key of a tenant of it. */
void nodes_tenant(const struct harness *h, const char *name);
void nodes_key(const struct harness *h, const char *tenant, char ret_key[80], char ret_id[64]);
/* What a node answers to somebody with a key. */
int nodes_try_key(const struct harness *h, const char *key);
/* Waits until it answers so. */
void nodes_wait_key(const struct harness *h, const char *key, int status);
/* Sets limits of the tenant that the operator works for; another node knows them then, too. */
void nodes_set_limits(const struct harness *h, const struct harness *other, const char *limits);
/* Waits until a GET of the operator's gives this status and this part. */
void nodes_wait(const struct harness *h, const char *path, int status, const char *part);
/* With as many pauses, a minute: for what one node hears of another. */
#define NODES_LOOKS 600u
/* Waits until a node answers a GET as another does now. */
void nodes_wait_same(const struct harness *one, const struct harness *other, const char *path);
/* Waits until it keeps so many objects, which go a moment after the last name that they had. */
void nodes_wait_objects(const struct harness *h, unsigned n);
/* The path of an execution: one of two that are good at once. */
const char *nodes_path_of(const char *id);
/* What the servers have of an execution, the caller's; NULL: nothing. */
char *nodes_record_of(const struct nats_world *w, const char *id);
/* What POST /v1/executions gives; sent again where servers did not answer in time. */
struct answer nodes_run(const struct harness *h, const char *json);
/* The same with headers, all of them. */
struct answer nodes_run_as(const struct harness *h, const char *headers, const char *json);
/* Sends an asynchronous one, which is accepted; again where servers did not answer in time. */
void nodes_submit(const struct harness *h, const char *json, char ret[38]);
/* Has one run at a node, whoever else is free; it must not end by itself. */
void nodes_fill(const struct harness *h, const char *json, char ret[38]);
/* Asks a node to end one, in the same way. */
void nodes_ask_end(const struct harness *h, const char *id);
/* Ends one at a node, and waits until it says so. */
void nodes_cancel(const struct harness *h, const char *id);
/* The id of the execution that an answer names; finishes the answer. */
void nodes_take_id(struct answer *a, char ret[38]);

#endif
