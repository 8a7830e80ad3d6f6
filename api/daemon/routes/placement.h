/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which node of a cluster runs a request: this one where it has room and its snapshot, else one
 * that has both, else this one where it has room, else one that has, else whoever has room
 * first, if what waits can be run by others too.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_PLACEMENT_H
#define SKILLVM_API_DAEMON_ROUTES_PLACEMENT_H

#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/request.h"

/* Borrowed. */
struct placement_wish {
    const struct request *request;
    const char *digest; /* as of execution_given */
    const char *text;   /* the JSON of the request */
    size_t len;
};

enum placement {
    PLACEMENT_HERE,
    PLACEMENT_DOUBTFUL,  /* here, but another node may have taken it */
    PLACEMENT_ELSEWHERE, /* it is a row here */
    PLACEMENT_FAILED,    /* the reply says why */
};
/* For a draft, which gets what others need to run it where it will wait. */
enum placement placement_choose(struct daemon *d, struct http_request *http,
                                const struct placement_wish *wish, struct execution *e,
                                struct http_reply *reply);
/* The reply where another node may have it, and this one does not begin it. False. */
bool placement_refuse(const struct execution *e, struct http_reply *reply);

#endif
