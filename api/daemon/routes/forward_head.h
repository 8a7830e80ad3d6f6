/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node says when it gives an execution to another: a line of JSON, and behind it the
 * request byte for byte as it came. A broken or hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_FORWARD_HEAD_H
#define SKILLVM_API_DAEMON_ROUTES_FORWARD_HEAD_H

#include "api/daemon/terms/record.h"
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FORWARD_SCHEMA 1u

struct forward_head {
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
    char digest[RECORD_DIGEST_SIZE]; /* of all that its request said; "" without a key */
    uint64_t seen;                   /* as of struct record */
    uint64_t sent_ns;                /* realtime */
    char from[FLEET_NODE_SIZE];      /* who sends it; "" of an earlier version */
    /* Where it waits, and was accepted: no request comes with it, it lies at the servers. "":
       it is a new one. */
    char node[FLEET_NODE_SIZE];
    char instance[RECORD_INSTANCE_SIZE];
};

/* Appends the line. 0, -E2BIG or -ENOMEM. */
int forward_head_write(const struct forward_head *head, struct buf *out);
/* Reads it. Where the request begins, or -EINVAL. */
ssize_t forward_head_parse(const char *data, size_t len, struct forward_head *ret);

#endif
