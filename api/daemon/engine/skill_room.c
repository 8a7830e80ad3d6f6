/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/skill_room.h"

#include "api/daemon/registry/registry_skill_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GONE_MAX 1024u /* of a tenant; of what is past these only the bytes are counted */

/* An object that no row named. */
struct gone {
    char digest[CHANGE_DIGEST_SIZE];
    uint64_t bytes;
    uint64_t until_ns;
};

/* A tenant for which something is counted. */
struct holder {
    struct holder *next;
    char tenant[TENANT_ID_SIZE];
    uint64_t taken;
    struct gone *gone; /* the oldest first */
    size_t n_gone;
    struct gone rest; /* "" is no object's digest */
};

struct skill_room {
    struct registry *registry;
    struct store *store;
    pthread_mutex_t lock; /* of what follows */
    struct holder *first;
};

struct skill_room *skill_room_create(struct registry *registry, struct store *store)
{
    struct skill_room *room = calloc(1, sizeof(*room));

    if (!room)
        return NULL;
    room->registry = registry;
    room->store = store;
    (void)pthread_mutex_init(&room->lock, NULL);
    return room;
}

static void holder_free(struct holder *h)
{
    free(h->gone);
    free(h);
}

void skill_room_destroy(struct skill_room *room)
{
    struct holder *next;

    if (!room)
        return;
    for (struct holder *h = room->first; h; h = next) {
        next = h->next;
        holder_free(h);
    }
    (void)pthread_mutex_destroy(&room->lock);
    free(room);
}

/* Under the lock, as all below. */
static struct holder *find_or_make(struct skill_room *room, const char *tenant)
{
    struct holder *h = room->first;

    while (h && strcmp(h->tenant, tenant) != 0)
        h = h->next;
    if (h)
        return h;
    h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    (void)snprintf(h->tenant, sizeof(h->tenant), "%s", tenant);
    h->next = room->first;
    room->first = h;
    return h;
}

static void remove_gone(struct holder *h, size_t at)
{
    memmove(&h->gone[at], &h->gone[at + 1], (h->n_gone - at - 1) * sizeof(h->gone[0]));
    h->n_gone--;
}

static void forget_digest(struct holder *h, const char *digest)
{
    for (size_t i = h->n_gone; i-- > 0;) {
        if (strcmp(h->gone[i].digest, digest) == 0)
            remove_gone(h, i);
    }
}

/* Forgets what the servers have no more, and who has nothing. */
static void expire(struct skill_room *room, uint64_t now_ns)
{
    for (struct holder **at = &room->first, *h; (h = *at);) {
        size_t n = 0;

        while (n < h->n_gone && h->gone[n].until_ns <= now_ns)
            n++;
        if (n > 0)
            memmove(h->gone, h->gone + n, (h->n_gone - n) * sizeof(h->gone[0]));
        h->n_gone -= n;
        if (h->rest.until_ns <= now_ns)
            h->rest.bytes = 0;
        if (h->n_gone > 0 || h->taken > 0 || h->rest.bytes > 0) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        holder_free(h);
    }
}

static bool is_named(struct skill_room *room, const char *digest)
{
    struct registry_naming naming = {0};
    struct err ignored = {0};

    return registry_object_naming(room->registry, digest, &naming, &ignored) < 0 ||
           naming.by_changes;
}

/* What is named again counts by its row. */
static void forget_named(struct skill_room *room, struct holder *h)
{
    for (size_t i = h->n_gone; i-- > 0;) {
        if (is_named(room, h->gone[i].digest))
            remove_gone(h, i);
    }
}

/* But for what the row is about to name. */
static uint64_t sum_gone(const struct holder *h, const struct skill_room_row *row)
{
    uint64_t sum = h->rest.bytes;

    for (size_t i = 0; i < h->n_gone; i++) {
        const struct gone *gone = &h->gone[i];

        if (strcmp(gone->digest, row->digest) != 0 &&
            strcmp(gone->digest, row->packages_digest) != 0)
            sum += gone->bytes;
    }
    return sum;
}

static int refuse(const struct holder *h, const struct skill_room_row *row, uint64_t bytes,
                  struct err *err)
{
    return err_set(
        err, EDQUOT,
        "storage_bytes: %llu bytes do not fit beside what is stored, %llu of skills "
        "and files that are being stored and %llu of such that were removed and stay "
        "at the servers for up to two hours",
        (unsigned long long)bytes, (unsigned long long)h->taken,
        (unsigned long long)sum_gone(h, row));
}

static int check(struct skill_room *room, struct holder *h, const struct skill_room_row *row,
                 uint64_t bytes, struct err *err)
{
    struct err ignored = {0};
    int r = registry_tenant_check_room(room->registry, row->tenant,
                                       bytes + h->taken + sum_gone(h, row), &ignored);

    if (r == -EDQUOT && h->n_gone > 0) {
        forget_named(room, h);
        ignored = (struct err){0};
        r = registry_tenant_check_room(room->registry, row->tenant,
                                       bytes + h->taken + sum_gone(h, row), &ignored);
    }
    if (r == -EDQUOT && h->taken + sum_gone(h, row) > 0)
        return refuse(h, row, bytes, err);
    if (r < 0)
        *err = ignored;
    return r;
}

int skill_room_take(struct skill_room *room, const struct skill_room_row *row, uint64_t bytes,
                    uint64_t monotonic_ns, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&room->lock);
    struct holder *h;
    int r;

    expire(room, monotonic_ns);
    h = find_or_make(room, row->tenant);
    if (!h)
        return err_no_memory(err);
    r = bytes == 0 ? 0 : check(room, h, row, bytes, err);
    if (r < 0)
        return r;
    forget_digest(h, row->digest);
    forget_digest(h, row->packages_digest);
    h->taken += bytes;
    return 0;
}

void skill_room_give(struct skill_room *room, const char *tenant, uint64_t bytes)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&room->lock);

    for (struct holder *h = room->first; h; h = h->next) {
        if (strcmp(h->tenant, tenant) == 0)
            h->taken -= bytes < h->taken ? bytes : h->taken;
    }
}

int skill_room_hold(struct skill_room *room, const struct skill_room_row *row, uint64_t bytes,
                    skill_room_fill *fill, void *ctx, struct err *err)
{
    bool is_sent = false;
    int r = skill_room_take(room, row, bytes, clock_monotonic_ns(), err);

    if (r < 0)
        return r;
    r = fill(ctx, &is_sent, err);
    if (r < 0 && is_sent)
        skill_room_left(room, row, clock_monotonic_ns());
    skill_room_give(room, row->tenant, bytes);
    return r;
}

static void add(struct skill_room *room, const char *tenant, const char *digest, uint64_t bytes,
                uint64_t until_ns)
{
    struct holder *h = find_or_make(room, tenant);
    struct gone *more;

    if (!h)
        return;
    forget_digest(h, digest);
    more = h->n_gone < GONE_MAX ? reallocarray(h->gone, h->n_gone + 1, sizeof(*more)) : NULL;
    if (more) {
        h->gone = more;
        more[h->n_gone] = (struct gone){.bytes = bytes, .until_ns = until_ns};
        (void)snprintf(more[h->n_gone++].digest, CHANGE_DIGEST_SIZE, "%s", digest);
        return;
    }
    h->rest.bytes += bytes;
    h->rest.until_ns = until_ns;
}

/* 0 where it is not here. */
static uint64_t size_here(struct skill_room *room, const char *digest)
{
    struct err ignored = {0};
    _cleanup_fd_ int fd = *digest ? store_get(room->store, digest, &ignored) : -1;
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void skill_room_left(struct skill_room *room, const struct skill_room_row *row,
                     uint64_t monotonic_ns)
{
    uint64_t packages = size_here(room, row->packages_digest);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&room->lock);

    expire(room, monotonic_ns);
    packages = packages < row->bytes ? packages : row->bytes;
    if (!is_named(room, row->digest))
        add(room, row->tenant, row->digest, row->bytes - packages,
            monotonic_ns + SKILL_ROOM_GONE_NS);
    if (packages > 0 && !is_named(room, row->packages_digest))
        add(room, row->tenant, row->packages_digest, packages,
            monotonic_ns + SKILL_ROOM_GONE_NS);
}
