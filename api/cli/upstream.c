/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/upstream.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

/* A daemon that could not be started is not tried again for each request. */
#define RETRY_NS (10 * NS_PER_SECOND)

void upstream_init(struct upstream *u, const struct cli *cli, const char *host)
{
    *u = (struct upstream){.cli = cli, .host = host};
    pthread_mutex_init(&u->lock, NULL);
}

/* Under the lock. */
static int begin_use(struct upstream *u)
{
    if (u->using)
        return 0;
    if (u->failure.code == 0 || clock_monotonic_ns() - u->failed_ns >= RETRY_NS) {
        u->failure = (struct err){0};
        if (daemon_use_begin(u->cli, u->host, &u->use, &u->failure) == 0) {
            u->using = true;
            u->uses++;
            return 0;
        }
        u->failed_ns = clock_monotonic_ns();
        cli_say("%s", u->failure.message);
    }
    return -u->failure.code;
}

/* The daemon of that use is gone: the next request looks for another one. */
static void forget(struct upstream *u, unsigned use)
{
    pthread_mutex_lock(&u->lock);
    if (u->using && u->uses == use) {
        daemon_use_end(u->cli, &u->use);
        u->using = false;
    }
    pthread_mutex_unlock(&u->lock);
}

/* Makes sure that a daemon is there; *ret_use says which one it is. */
static int perform_once(struct upstream *u, const struct skillvm_request *request,
                        unsigned *ret_use, struct skillvm_error *error)
{
    pthread_mutex_lock(&u->lock);
    int r = begin_use(u);
    *ret_use = u->uses;
    if (r < 0) {
        error->code = -r;
        snprintf(error->message, sizeof(error->message), "%s", u->failure.message);
    }
    pthread_mutex_unlock(&u->lock);
    return r < 0 ? r : skillvm_perform(u->cli->client, request, NULL, error);
}

int upstream_perform(struct upstream *u, const struct skillvm_request *request,
                     struct skillvm_error *error)
{
    unsigned use;
    int r;

    if (u->cli->server[0])
        return skillvm_perform(u->cli->client, request, NULL, error);
    /* Nobody listened, so nothing was sent, and it can be sent again. */
    for (int tries = 0; tries < 2; tries++) {
        r = perform_once(u, request, &use, error);
        if (r != -ENOENT && r != -ECONNREFUSED)
            return r;
        forget(u, use);
    }
    return r;
}

void upstream_finish(struct upstream *u)
{
    if (u->using)
        daemon_use_end(u->cli, &u->use);
    pthread_mutex_destroy(&u->lock);
}
