/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that have not ended, from node to node: what one has here is told to who asks, and
 * what another one has is asked of it. Nothing is kept of who asks, and each question is
 * answered with what fits into one message, so nobody who reads slowly costs anything.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_LIVE_H
#define SKILLVM_API_DAEMON_ROUTES_LIVE_H

#include "api/daemon/routes/daemon.h"

/* For struct cluster_service, with a struct forward_place. */
bool live_look(void *place, const struct live_ask *ask, bool is_last, struct buf *answer);

/* An execution, wherever it is. */
struct live {
    struct execution *e;           /* a reference where it is here, else NULL and */
    struct registry_execution row; /* as of lookup_execution */
    struct live_copy copy;         /* what the node says that has it, of state NONE: nothing */
};
void live_finish(struct live *live);
#define _cleanup_live_ __attribute__((cleanup(live_finish)))

/*
 * As lookup_execution, and asks the node that has it. Where that does not answer within a
 * second the row is all that is known. False when *reply says why not.
 */
bool live_lookup(struct daemon *d, const char *tenant, const char *id, uint32_t log_at,
                 struct live *ret, struct http_reply *reply);
/*
 * Asks the node that a row names, which has not ended; tenant and id of the question come from
 * the row. As cluster_ask_live.
 */
int live_ask_owner(struct daemon *d, const struct registry_execution *row, struct live_ask *ask,
                   struct live_copy *ret, struct err *err);
/*
 * Appends the log so far of one that another node has, which counts as held for an answer while
 * it comes. 0; -E2BIG; -ENOMEM; -EDQUOT with a reply.
 */
int live_copy_log(struct daemon *d, struct http_request *http, struct live *live,
                  struct buf *out);

#endif
