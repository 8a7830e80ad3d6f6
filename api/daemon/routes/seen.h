/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller has seen at one node of a cluster he finds at the others: each answer says how
 * far its node is (the header Skillvm-Seen), and a request that says so waits until this one is
 * as far.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_SEEN_H
#define SKILLVM_API_DAEMON_ROUTES_SEEN_H

#include "api/daemon/routes/daemon.h"

/* As of struct http_others; ctx is a struct daemon that is in a cluster. */
bool seen_await(void *ctx, const char *seen, struct http_reply *reply);
void seen_stamp(void *ctx, char ret[HTTP_SEEN_SIZE]);

#endif
