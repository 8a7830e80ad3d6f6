/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/held.h"

#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/terms/limits.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_TAKEN_S 1u /* what others of the tenant's hold goes soon */

/* A tenant for which something is held. */
struct holder {
    struct holder *next;
    char tenant[TENANT_ID_SIZE];
    uint64_t bodies, answers; /* bytes */
};

struct held {
    struct registry *registry;
    struct watermarks *watermarks;
    pthread_mutex_t lock;
    struct holder *first; /* no more than there are connections */
};

struct held *held_create(struct registry *registry, struct watermarks *watermarks)
{
    struct held *held = calloc(1, sizeof(*held));

    if (!held)
        return NULL;
    held->registry = registry;
    held->watermarks = watermarks;
    (void)pthread_mutex_init(&held->lock, NULL);
    return held;
}

void held_destroy(struct held *held)
{
    struct holder *next;

    if (!held)
        return;
    for (struct holder *h = held->first; h; h = next) {
        next = h->next;
        free(h);
    }
    (void)pthread_mutex_destroy(&held->lock);
    free(held);
}

/* Where the tenant's holder is, or would be. Under the lock. */
static struct holder **find(struct held *held, const char *tenant)
{
    struct holder **at = &held->first;

    while (*at && strcmp((*at)->tenant, tenant) != 0)
        at = &(*at)->next;
    return at;
}

/* Under the lock. */
static struct holder *find_or_make(struct held *held, const char *tenant)
{
    struct holder **at = find(held, tenant);

    if (*at)
        return *at;
    *at = calloc(1, sizeof(**at));
    if (*at)
        (void)snprintf((*at)->tenant, sizeof((*at)->tenant), "%s", tenant);
    return *at;
}

/* Forgets a holder of nothing. Under the lock. */
static void forget(struct held *held, const char *tenant)
{
    struct holder **at = find(held, tenant), *h = *at;

    if (!h || h->bodies + h->answers > 0)
        return;
    *at = h->next;
    free(h);
}

static uint64_t *count_of(struct holder *h, enum http_held what)
{
    return what == HTTP_HELD_ANSWER ? &h->answers : &h->bodies;
}

int held_add(struct held *held, const char *tenant, enum http_held what, uint64_t bytes,
             uint64_t max, uint64_t *ret_held)
{
    _cleanup_lock_ pthread_mutex_t *locked = lock_hold(&held->lock);
    struct holder *h = find_or_make(held, tenant);
    uint64_t used;
    bool fits;

    if (!h)
        return -ENOMEM;
    used = h->answers + (what == HTTP_HELD_ANSWER ? 0 : h->bodies);
    *ret_held = used;
    fits = used <= max && bytes <= max - used;
    fits |= what == HTTP_HELD_ANSWER && used == 0;
    if (fits)
        *count_of(h, what) += bytes;
    forget(held, tenant);
    return fits ? 0 : -EDQUOT;
}

void held_remove(void *ctx, const char *tenant, enum http_held what, uint64_t bytes)
{
    struct held *held = ctx;
    _cleanup_lock_ pthread_mutex_t *locked = lock_hold(&held->lock);
    struct holder *h = *find(held, tenant);

    if (h)
        *count_of(h, what) -= bytes < *count_of(h, what) ? bytes : *count_of(h, what);
    forget(held, tenant);
}

bool held_admit(struct held *held, uint64_t bytes, struct http_reply *reply)
{
    struct err err = {0};

    if (watermarks_check(held->watermarks, &err) == 0 &&
        watermarks_check_room(held->watermarks, bytes, &err) == 0)
        return true;
    http_reply_error(reply, 503, "overloaded", "nothing new is accepted now: %s", err.message);
    reply->retry_after_s = HELD_RETRY_S;
    return false;
}

static enum http_place refuse_later(struct http_reply *reply, const char *why)
{
    http_reply_error(reply, 429, "overloaded", "%s", why);
    reply->retry_after_s = RETRY_TAKEN_S;
    return HTTP_PLACE_NONE;
}

/* So many bytes more of a large answer: it finds a place if it can. */
static enum http_place hold_answer(struct held *held, const char *tenant, uint64_t bytes,
                                   uint64_t already, struct http_reply *reply)
{
    struct watermarks_state state;
    struct err err = {0};
    uint64_t before;
    int r = held_add(held, tenant, HTTP_HELD_ANSWER, bytes, LIMIT_ANSWERS_BYTES, &before);

    if (r == -EDQUOT)
        return refuse_later(reply, "answers that were not read yet are as large as they may "
                                   "be together: read them, then ask again");
    if (r == 0 && watermarks_check_room(held->watermarks, already + bytes, &err) == 0)
        return HTTP_PLACE_DISK;
    watermarks_look(held->watermarks, &state);
    if (r == 0 && !state.memory.low)
        return HTTP_PLACE_MEMORY;
    if (r == 0)
        held_remove(held, tenant, HTTP_HELD_ANSWER, bytes);
    http_reply_error(reply, 503, "overloaded", "there is no room for the answer now: %s",
                     r < 0 ? "out of memory" : err.message);
    reply->retry_after_s = RETRY_TAKEN_S;
    return HTTP_PLACE_NONE;
}

static enum http_place refuse_body(struct http_reply *reply,
                                   const struct registry_tenant *tenant, enum http_held what,
                                   uint64_t bytes, uint64_t already, uint64_t before)
{
    const unsigned long long limit = tenant->limits.storage_bytes;

    if (what != HTTP_HELD_FILE && already + bytes <= limit)
        return refuse_later(reply, "storage_bytes: other requests of this tenant, and its "
                                   "executions that wait, hold what is left of it");
    http_reply_error(reply, 413, "quota_exceeded",
                     "storage_bytes: %llu of %llu bytes are in use and %llu on their way, %llu "
                     "more do not fit: remove skills, files or sessions, or let executions and "
                     "downloads that still have what was removed end",
                     (unsigned long long)tenant->stored_bytes, limit,
                     (unsigned long long)before, (unsigned long long)bytes);
    return HTTP_PLACE_NONE;
}

/*
 * A file has to fit beside all that is stored. Of other bodies it is not known yet what will be
 * kept of them, and an execution is not refused for what is stored: they have to fit beside
 * what is held.
 */
static enum http_place hold_body(struct held *held, const char *id, enum http_held what,
                                 uint64_t bytes, uint64_t already, struct http_reply *reply)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    enum http_place place = HTTP_PLACE_DISK;
    struct err err = {0};
    uint64_t max = UINT64_MAX, before = 0;
    int r = registry_tenant_get(held->registry, id, &tenant, &err);

    if (r == -ENOENT)
        http_reply_error(reply, 401, "unauthorized", "the tenant was deleted");
    else if (r < 0)
        http_reply_error(reply, 500, "internal_error", "%s", err.message);
    if (r < 0)
        return HTTP_PLACE_NONE;
    if (tenant.limits.storage_bytes > 0)
        max = tenant.limits.storage_bytes;
    if (tenant.limits.storage_bytes > 0 && what == HTTP_HELD_FILE)
        max -= tenant.stored_bytes < max ? tenant.stored_bytes : max;
    r = held_add(held, id, what, bytes, max, &before);
    if (r == -EDQUOT)
        place = refuse_body(reply, &tenant, what, bytes, already, before);
    if (r == 0 || r == -EDQUOT)
        return place;
    http_reply_error(reply, 500, "internal_error", "out of memory");
    return HTTP_PLACE_NONE;
}

bool held_has_room(void *ctx, struct http_reply *reply)
{
    return held_admit(ctx, 0, reply);
}

enum http_place held_for_http(void *ctx, const char *tenant, enum http_held what,
                              uint64_t bytes, uint64_t already, struct http_reply *reply)
{
    struct held *held = ctx;

    if (what == HTTP_HELD_ANSWER)
        return hold_answer(held, tenant, bytes, already, reply);
    return held_admit(held, bytes, reply) ? hold_body(held, tenant, what, bytes, already, reply)
                                          : HTTP_PLACE_NONE;
}
