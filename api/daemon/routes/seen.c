/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits up to an end. False where that is something else. */
static bool take_number(const char **at, char end, uint64_t *ret)
{
    size_t len = strspn(*at, "0123456789");

    if (len == 0 || len > 19 || (*at)[len] != end)
        return false;
    *ret = strtoull(*at, NULL, 10);
    *at += len + (end != '\0');
    return true;
}

bool seen_await(void *ctx, const char *seen, struct http_reply *reply)
{
    const struct daemon *d = ctx;
    struct cluster_seen wanted = {0};

    if (!take_number(&seen, '.', &wanted.changes) ||
        !take_number(&seen, '\0', &wanted.executions))
        return http_reply_error(reply, 400, "bad_request",
                                "Skillvm-Seen is not as an answer of this cluster said");
    if (cluster_await(d->cluster, &wanted))
        return true;
    (void)http_reply_error(reply, 503, "cluster_unavailable",
                           "this node does not have yet what Skillvm-Seen says: ask again, or "
                           "another one; where the cluster was made anew leave it out");
    reply->retry_after_s = 1;
    return false;
}

void seen_stamp(void *ctx, char ret[HTTP_SEEN_SIZE])
{
    const struct daemon *d = ctx;
    struct cluster_seen now;

    cluster_seen_now(d->cluster, &now);
    (void)snprintf(ret, HTTP_SEEN_SIZE, "%llu.%llu", (unsigned long long)now.changes,
                   (unsigned long long)now.executions);
}
