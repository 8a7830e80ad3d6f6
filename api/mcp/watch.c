/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/watch.h"

#include "api/mcp/call.h"
#include "api/skill/sha256.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/cond.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX (16u << 20)

struct mcp_watch {
    const struct mcp_config *config;
    void (*on_change)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* this and the next under the lock */
    bool ended;
    atomic_bool abandon;
    char digest[SHA256_HEX_SIZE]; /* of the list as it was last seen; "" before */
};

static void look(struct mcp_watch *w)
{
    _cleanup_buf_ struct buf list = buf_init(LIST_MAX);
    struct skillvm_error error = {0};
    char digest[SHA256_HEX_SIZE];

    if (mcp_get(w->config, &w->abandon, "/v1/skills", 30000, &list, NULL, &error) < 0 ||
        sha256_of(list.data, list.len, digest) < 0)
        return;
    if (w->digest[0] && strcmp(digest, w->digest) != 0)
        w->on_change(w->ctx);
    memcpy(w->digest, digest, sizeof(digest));
}

static void *run(void *ctx)
{
    struct mcp_watch *w = ctx;
    uint64_t next_ns;

    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        pthread_mutex_unlock(&w->lock);
        look(w);
        next_ns = clock_monotonic_ns() + w->config->watch_ms * NS_PER_MS;
        pthread_mutex_lock(&w->lock);
        while (!w->stopping && cond_wait_until(&w->wake, &w->lock, next_ns))
            ;
    }
    w->ended = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void free_watch(struct mcp_watch *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct mcp_watch *mcp_watch_start(const struct mcp_config *config, void (*on_change)(void *ctx),
                                  void *ctx)
{
    struct mcp_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->config = config;
    w->on_change = on_change;
    w->ctx = ctx;
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->wake);
    if (pthread_create(&w->thread, NULL, run, w)) {
        free_watch(w);
        return NULL;
    }
    return w;
}

bool mcp_watch_stop(struct mcp_watch *w, uint64_t deadline_ns)
{
    w->abandon = true;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    while (!w->ended && cond_wait_until(&w->wake, &w->lock, deadline_ns))
        ;
    bool ended = w->ended;
    pthread_mutex_unlock(&w->lock);
    if (!ended)
        return false;
    pthread_join(w->thread, NULL);
    free_watch(w);
    return true;
}
