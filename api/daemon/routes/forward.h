/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that another node of the cluster runs because this one has no room. The node that
 * was asked gives it an id, accepts it nowhere, and answers with what the cluster says of it.
 * Whoever writes the record of that id first runs it: where an answer is lost both try.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_FORWARD_H
#define SKILLVM_API_DAEMON_ROUTES_FORWARD_H

#include "api/daemon/routes/daemon.h"

/* Borrowed. */
struct forward_wish {
    const char *tenant;
    const char *id;
    const char *digest; /* as of execution_given */
    const char *image;
    const char *text; /* the JSON of the request */
    size_t len;
};

enum forward_result {
    FORWARD_NOBODY, /* took it, or will */
    FORWARD_TAKEN,  /* it is a row here */
    FORWARD_DOUBT,  /* somebody may have taken it, or may yet, in the next few seconds */
};
enum forward_result forward_send(struct daemon *d, const struct forward_wish *wish);

/* What takes those of others. */
struct forward_place {
    struct daemon *daemon;
    struct http_server *http;
};
/* Whether machines start here now, as /ready says: others' executions are for who says so. */
bool forward_can_start(void *daemon);
bool forward_has_room(void *place);
int forward_wish(void *place, enum node_wish wish, struct node_drain *ret, struct err *err);
void forward_take(void *place, const char *data, size_t len, struct buf *answer);
/* Gives one that waits here to a node that has room. False: there is none. */
bool forward_lend(void *place);
/* Runs what waited at a process that is gone: a waiting_resume_fn of a place. */
waiting_resume_fn forward_resume;

#endif
