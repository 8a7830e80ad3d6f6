/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/objects_cache.h"

#include "api/daemon/registry/registry_skill_plan.h"
#include "base/fd.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define OLDEST 64u /* that may go at once */

/* What there is, and of that what was not used for the longest. */
struct look {
    const struct objects_cache *cache;
    uint64_t bytes;
    struct store_object oldest[OLDEST]; /* the oldest first */
    size_t n;
    struct err err;
};

static void note_old(struct look *look, const struct store_object *object)
{
    size_t at = look->n;

    while (at > 0 && look->oldest[at - 1].used_ns > object->used_ns)
        at--;
    if (at == OLDEST)
        return;
    if (look->n < OLDEST)
        look->n++;
    memmove(&look->oldest[at + 1], &look->oldest[at],
            (look->n - at - 1) * sizeof(look->oldest[0]));
    look->oldest[at] = *object;
}

/* What executions left is none of it: that may be here alone. */
static bool may_go(const struct registry_naming *naming)
{
    return naming->by_changes && !naming->by_executions;
}

static int look_at(void *ctx, const struct store_object *object)
{
    struct look *look = ctx;
    struct registry_naming naming = {0};
    int r = registry_object_naming(look->cache->registry, object->digest, &naming, &look->err);

    if (r < 0 || !may_go(&naming))
        return r;
    look->bytes += object->bytes;
    if (strcmp(object->digest, look->cache->kept) != 0)
        note_old(look, object);
    return 0;
}

/* What else names it may have come meanwhile. */
static bool evict(const struct objects_cache *cache, const struct cluster_object *object)
{
    _cleanup_store_lock_ struct store *store = store_lock(cache->store);
    struct err ignored = {0};
    struct registry_naming naming = {0};

    if (!object->is_there) {
        /* So that it is not looked at again before all others. */
        _cleanup_fd_ int fd = store_get(store, object->digest, &ignored);

        if (fd >= 0)
            store_note_use(fd);
        return false;
    }
    if (registry_object_naming(cache->registry, object->digest, &naming, &ignored) < 0 ||
        !may_go(&naming))
        return false;
    store_evict(store, object->digest);
    log_info("objects", "evicted object=%.12s bytes=%llu", object->digest,
             (unsigned long long)object->size);
    return true;
}

/* A tenth more than has to, so that not every object that comes is looked for room for. */
static int make_room(struct look *look, struct err *err)
{
    const struct objects_cache *cache = look->cache;
    uint64_t wanted = cache->bytes_max - cache->bytes_max / 10, freed = 0;
    struct cluster_object objects[OLDEST];
    size_t n = 0;
    int r;

    for (; n < look->n && look->bytes - freed > wanted; n++) {
        objects[n] = (struct cluster_object){.digest = look->oldest[n].digest,
                                             .size = look->oldest[n].bytes};
        freed += look->oldest[n].bytes;
    }
    r = cluster_objects_look(cache->cluster, objects, n, err);
    for (size_t i = 0; i < n; i++)
        look->bytes -= evict(cache, &objects[i]) ? objects[i].size : 0;
    return r;
}

int objects_cache_trim(const struct objects_cache *cache, uint64_t *ret_bytes, struct err *err)
{
    struct look look = {.cache = cache};
    int r = store_each(cache->store, look_at, &look, err);

    if (r < 0) {
        if (look.err.code)
            *err = look.err;
        return r;
    }
    r = look.bytes > cache->bytes_max ? make_room(&look, err) : 0;
    *ret_bytes = look.bytes;
    return r;
}
