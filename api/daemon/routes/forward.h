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
    const struct execution *e; /* a draft */
    const char *digest;        /* as of execution_given */
    const char *text;          /* the JSON of the request */
    size_t len;
    bool is_kept; /* unless a node takes it that has its snapshot */
};

enum forward_result {
    FORWARD_NOBODY, /* took it, or will */
    FORWARD_TAKEN,  /* it is a row here */
    FORWARD_UNSEEN, /* another node says that it took it, and it is no row here yet */
    FORWARD_DOUBT,  /* somebody may have taken it, or may yet, in the next few seconds */
};
enum forward_result forward_send(struct daemon *d, const struct forward_wish *wish);
/* Of a daemon that stops: waits for those that are being sent, for 8 s at most. */
void forward_finish(const struct daemon *d);

/* What the image that it runs in is called by other nodes. Borrowed. */
const char *forward_image(const struct execution *e);

/* What takes those of others. */
struct forward_place {
    struct daemon *daemon;
    struct http_server *http;
};
/* Whether machines start here now, as /ready says: others' executions are for who says so. */
bool forward_can_start(void *daemon);
/* Whether an execution begins here from what holds what it needs, or nowhere from more. */
bool forward_has_snapshot(struct daemon *d, const struct execution *e);
/* What this node does for others, at a place that is there until the last of it is done. */
struct cluster_service forward_service(struct forward_place *place);
/* Runs what waited at a process that is gone: a waiting_resume_fn of a place. */
waiting_resume_fn forward_resume;

#endif
