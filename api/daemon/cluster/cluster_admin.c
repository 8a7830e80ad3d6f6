/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator does to a cluster. Each goes over a connection of its own, which it opens
 * and closes: the thread's is busy, and may not be there when it is needed most.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/cluster/deed_entry.h"
#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <string.h>

#define BUCKET_BYTES  (64ull * 1024 * 1024)
#define RECORDS_BYTES (256ull * 1024 * 1024)
#define AUDIT_ENTRIES 100000u

int cluster_result(enum cluster_fault fault, const struct err *why, struct err *err)
{
    char message[ERR_MESSAGE_MAX];

    if (fault == CLUSTER_OK)
        return 0;
    cluster_explain(fault, why, message);
    return err_set(err, EAGAIN, "%s", message);
}

int cluster_connect(struct cluster *c, size_t first, bool is_to_watch,
                    struct cluster_link **ret, struct err *err)
{
    enum cluster_fault fault = CLUSTER_UNREACHABLE;
    struct err why = {.message = "the daemon is stopping"};

    for (size_t i = 0; i < c->n_servers && fault == CLUSTER_UNREACHABLE; i++) {
        if (cluster_is_stopping(c))
            break;
        why = (struct err){0};
        fault = c->driver->open(&c->access, c->servers[(first + i) % c->n_servers], is_to_watch,
                                ret, &why);
    }
    return cluster_result(fault, &why, err);
}

int cluster_connect_near(struct cluster *c, bool is_to_watch, struct cluster_link **ret,
                         struct err *err)
{
    size_t server;

    (void)pthread_mutex_lock(&c->lock);
    server = c->follow.tail.server;
    (void)pthread_mutex_unlock(&c->lock);
    return cluster_connect(c, server, is_to_watch, ret, err);
}

static void hurry(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->hurries++;
    (void)pthread_cond_broadcast(&c->wake);
}

bool cluster_is_of_objects(const char *bucket)
{
    return strcmp(bucket, CLUSTER_OBJECTS) == 0 || strcmp(bucket, CLUSTER_ARTIFACTS) == 0;
}

static int refuse_bucket(const struct cluster_bucket *wanted, enum cluster_fault fault,
                         const struct err *why, struct err *err)
{
    if (fault != CLUSTER_NO_ROOM || !cluster_is_of_objects(wanted->name))
        return cluster_result(fault, why, err);
    return err_set(err, EAGAIN,
                   "the servers have no room for %llu bytes that %s: give each a "
                   "larger max_file_store, or set cluster.%s_bytes to less: %.200s",
                   (unsigned long long)wanted->max_bytes,
                   wanted->drops_old ? "executions may leave" : "skills may hold",
                   wanted->drops_old ? "artifacts" : "objects", why->message);
}

static int make_bucket(struct cluster *c, struct cluster_link *link,
                       const struct cluster_bucket *wanted, bool *ret_made, struct err *err)
{
    bool of_objects = cluster_is_of_objects(wanted->name);
    struct cluster_bucket there = {0};
    struct err why = {0};
    enum cluster_fault fault = (of_objects ? c->driver->objects_look : c->driver->bucket_look)(
        link, wanted->name, &there, &why);
    bool is_new = fault == CLUSTER_NO_BUCKET;

    if (is_new) {
        why = (struct err){0};
        fault =
            (of_objects ? c->driver->objects_make : c->driver->bucket_make)(link, wanted, &why);
    }
    if (fault != CLUSTER_OK)
        return refuse_bucket(wanted, fault, &why, err);
    if (!is_new && there.replicas != c->replicas)
        return err_set(err, EEXIST,
                       "the bucket %s is there with %u replica%s, and cluster.replicas says "
                       "%u: change the setting, or the stream %s_%s with `nats stream edit`",
                       wanted->name, there.replicas, there.replicas == 1 ? "" : "s",
                       c->replicas, of_objects ? "OBJ" : "KV", wanted->name);
    *ret_made |= is_new;
    return 0;
}

static int make_all(struct cluster *c, struct cluster_link *link, bool *ret_made,
                    struct err *err)
{
    const struct cluster_bucket nodes = {.name = CLUSTER_BUCKET,
                                         .replicas = c->replicas,
                                         .ttl_ms = CLUSTER_TTL_MS,
                                         .max_bytes = BUCKET_BYTES,
                                         .max_value_bytes = NODE_ENTRY_BYTES_MAX};
    const struct cluster_bucket changes = {.name = CLUSTER_CHANGES,
                                           .replicas = c->replicas,
                                           .max_bytes = BUCKET_BYTES,
                                           .max_value_bytes = CHANGE_ENTRY_BYTES_MAX};
    const struct cluster_bucket records = {.name = CLUSTER_RECORDS,
                                           .replicas = c->replicas,
                                           .max_bytes = RECORDS_BYTES,
                                           .max_value_bytes = RECORD_ENTRY_BYTES_MAX,
                                           .drops_old = true};
    const struct cluster_bucket audit = {.name = CLUSTER_AUDIT,
                                         .replicas = c->replicas,
                                         .max_bytes = BUCKET_BYTES,
                                         .max_entries = AUDIT_ENTRIES,
                                         .max_value_bytes = DEED_ENTRY_BYTES_MAX,
                                         .drops_old = true};
    /* With a bound, which the servers set aside: what skills hold fills no other bucket. */
    const struct cluster_bucket objects = {
        .name = CLUSTER_OBJECTS, .replicas = c->replicas, .max_bytes = c->objects_bytes};
    const struct cluster_bucket artifacts = {.name = CLUSTER_ARTIFACTS,
                                             .replicas = c->replicas,
                                             .max_bytes = c->artifacts_bytes,
                                             .drops_old = true};
    const struct cluster_bucket *all[] = {&nodes, &changes, &records,
                                          &audit, &objects, &artifacts};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(all) / sizeof(all[0]); i++)
        r = make_bucket(c, link, all[i], ret_made, err);
    if (r < 0)
        return r;
    r = cluster_seed_objects(c, link, err);
    return r < 0 ? r : cluster_seed(c, link, ret_made, err);
}

int cluster_init(struct cluster *c, bool *ret_made, struct err *err)
{
    struct cluster_link *link;
    int r = cluster_connect(c, 0, false, &link, err);

    if (r < 0)
        return r;
    *ret_made = false;
    r = make_all(c, link, ret_made, err);
    c->driver->close(link);
    if (r == 0)
        hurry(c);
    return r;
}

/*
 * Whether it was renewed within the lease, by this machine's clock and what that may be wrong.
 * Where it is more nothing is lost: a node that lives writes its entry anew.
 */
static bool is_alive(const struct cluster_entry *entry)
{
    const uint64_t lease_ns = (CLUSTER_LEASE_MS + CLUSTER_CLOCK_MS) * NS_PER_MS;
    uint64_t now = clock_realtime_ns();

    return now < entry->stored_ns || now - entry->stored_ns < lease_ns;
}

static int refuse_alive(const char *node, struct err *err)
{
    return err_set(
        err, EEXIST,
        "the node %s is alive: end its skillvmd, or take cluster: out of its settings", node);
}

static int remove_entry(struct cluster *c, struct cluster_link *link, const char *node,
                        struct err *err)
{
    struct cluster_entry entry = {0};
    struct err why = {0};
    enum cluster_fault fault = c->driver->get(link, CLUSTER_BUCKET, node, &entry, &why);

    if (fault == CLUSTER_NO_ENTRY || (fault == CLUSTER_OK && entry.is_removed)) {
        c->driver->release(&entry);
        return err_set(err, ENOENT, "there is no node %s", node);
    }
    if (fault != CLUSTER_OK)
        return cluster_result(fault, &why, err);
    fault = is_alive(&entry) ? CLUSTER_CONFLICT
                             : c->driver->put(link, CLUSTER_BUCKET, node, NULL, 0,
                                              entry.revision, NULL, &why);
    c->driver->release(&entry);
    return fault == CLUSTER_CONFLICT ? refuse_alive(node, err)
                                     : cluster_result(fault, &why, err);
}

int cluster_remove(struct cluster *c, const char *node, struct err *err)
{
    struct cluster_link *link;
    int r;

    if (!fleet_node_valid(node))
        return err_set(err, ENOENT, "there is no node %.64s", node);
    r = cluster_connect(c, 0, false, &link, err);
    if (r < 0)
        return r;
    r = remove_entry(c, link, node, err);
    c->driver->close(link);
    return r;
}
