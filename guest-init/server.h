/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the host's, from READY to DONE, in the order guest-init/proto.h gives.
 * It must never run anything before WAKE has been applied, nor serve a second execution.
 */
#ifndef SKILLVM_GUEST_SERVER_H
#define SKILLVM_GUEST_SERVER_H

#include "base/err.h"
#include "guest-init/sandbox.h"
#include "guest-init/zygote.h"

struct server {
    struct sandbox *sandbox; /* all borrowed */
    struct zygote *zygotes;  /* RUN_LANGS of them */
    int signals;             /* non-blocking signalfd of SIGCHLD, which is blocked */
};

enum server_end {
    SERVER_UNUSED, /* closed before WAKE: serve the next connection */
    SERVER_SPENT,  /* an execution began: this machine serves no other */
};

/* Serves conn (borrowed) until its end. What went wrong is also told to the host by FAIL. */
enum server_end server_serve(struct server *s, int conn, struct err *err);

#endif
