/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/serve.h"
#include "api/daemon/engine/recover.h"

#include "api/daemon/callers/audit.h"
#include "api/daemon/callers/auth.h"
#include "api/daemon/callers/uses.h"
#include "api/daemon/cluster/host_facts.h"
#include "api/daemon/engine/audit_share.h"
#include "api/daemon/engine/retention.h"
#include "api/daemon/engine/shared_sessions.h"
#include "api/daemon/lifecycle.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_records.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/drain.h"
#include "api/daemon/routes/forward.h"
#include "api/daemon/routes/seen.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/store/data_folder.h"
#include "api/daemon/terms/limits.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_TIMEOUT_PER_GRACE 20000u /* ms for each second of grace */
#define SNAPSHOT_RETRY_MS      30000u
#define PLACE_ROOM             128u /* for what is in a folder */

/* Paths of what belongs to this installation. */
struct places {
    char vmm[PATH_MAX];
    char jail[PATH_MAX];
    char kernel[PATH_MAX];
    char share[PATH_MAX];  /* where the images are */
    char images[PATH_MAX]; /* and those that were made here */
};

/* Of what it is: as it is set, or name in the folder. */
static int put_path(const char *what, char *ret, size_t size, const char *set,
                    const char *folder, const char *name, struct err *err)
{
    int len =
        *set ? snprintf(ret, size, "%s", set) : snprintf(ret, size, "%s/%s", folder, name);

    return len < 0 || (size_t)len >= size
               ? err_set(err, ENAMETOOLONG, "the path of %s is too long", what)
               : 0;
}

static int find_places(const struct config *config, struct places *ret, struct err *err)
{
    char folder[PATH_MAX];
    int r = process_folder(folder, sizeof(folder));

    if (r < 0)
        return err_set_errno(err, -r, "cannot find this program");
    if (put_path("the share folder", ret->share, sizeof(ret->share) - PLACE_ROOM,
                 config->share_path, folder, "../share/skillvm", err) < 0 ||
        put_path("skillvm-vmm", ret->vmm, sizeof(ret->vmm), config->vmm_path, folder,
                 "skillvm-vmm", err) < 0 ||
        put_path("skillvm-jail", ret->jail, sizeof(ret->jail), config->jail_path, folder,
                 "skillvm-jail", err) < 0 ||
        put_path("the folder of images", ret->images, sizeof(ret->images) - PLACE_ROOM,
                 config->images_path, config->data_path, "images", err) < 0)
        return -ENAMETOOLONG;
    (void)snprintf(ret->kernel, sizeof(ret->kernel), "%.4000s/vmlinux", ret->share);
    if (access(ret->vmm, X_OK) < 0)
        return err_set_errno(err, errno, "cannot run %s", ret->vmm);
    return 0;
}

static int read_images(struct daemon *d, const struct places *places, struct err *err)
{
    int r = image_tables_create(places->share, places->images, &d->images, err);

    if (r < 0)
        return r;
    d->choices = choices_create();
    d->profiles = profiles_create();
    return d->choices && d->profiles ? 0 : err_no_memory(err);
}

static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    return registry_digest_used(ctx, digest, ret_named, err);
}

/* The store, without objects that nothing names. Before anything is stored. */
static int open_store(struct daemon *d, const struct data_folder *folder, struct err *err)
{
    unsigned removed;
    int r = store_create(folder, is_named, d->registry, &d->store, err);

    return r < 0 ? r : store_sweep(d->store, &removed, err);
}

static int start_retention(struct daemon *d, const struct config *config, struct err *err)
{
    const struct retention_env env = {.registry = d->registry,
                                      .store = d->store,
                                      .objects = d->objects,
                                      .in_cluster = *config->cluster.servers != '\0'};
    int r = retention_create(&env, &config->retention, &d->retention, err);

    return r < 0 ? r : retention_start(d->retention, err);
}

static bool is_memory_short(void *ctx)
{
    struct watermarks_state state;

    watermarks_look(ctx, &state);
    return state.memory.low;
}

static int start_pool(struct daemon *d, const struct config *config, struct err *err)
{
    const struct pool_config pool = {.snapshots = d->snapshots,
                                     .jail = d->jail,
                                     .grace_ms = config->grace_ms,
                                     .limits = config->machines,
                                     .is_short = is_memory_short,
                                     .ctx = d->watermarks};

    return pool_create(&pool, &d->pool, err);
}

static int start_engine(struct daemon *d, const struct config *config, struct err *err)
{
    const struct engine_config engine = {
        .env = {.registry = d->registry,
                .pool = d->pool,
                .metrics = d->metrics,
                .store = d->store,
                .retention = d->retention,
                .ledger = d->ledger,
                .sessions = d->sessions,
                .egress = {.fixed_names = config->network.allow_private,
                           .servers = config->network.dns,
                           .connections_max = config->network.connections,
                           .bytes_max = config->network.bytes},
                .reuse = (enum tenant_reuse)config->machines.reuse,
                .scope_tenant = config->snapshots.scope != 0},
        .max_running = (unsigned)config->max_running,
        .max_queued = (unsigned)config->max_queued,
        .can_start = forward_can_start,
        .ctx = d,
    };

    return engine_create(&engine, &d->engine, err);
}

/* What this node tells the others of itself. */
static void tell_facts(struct daemon *d, const struct config *config, struct node_entry *ret)
{
    *ret = (struct node_entry){.slots = (uint32_t)config->max_running};
    (void)snprintf(ret->version, sizeof(ret->version), "%s", SKILLVM_VERSION);
    host_facts_read(ret);
    daemon_list_images(d, ret);
}

/* Where the settings name servers; without, nothing of this is there. */
static int start_cluster(struct daemon *d, const struct config *config, struct err *err)
{
    struct node_entry facts;
    const struct cluster_config cluster = {.servers = config->cluster.servers,
                                           .credentials = config->cluster.credentials,
                                           .tls_ca = config->cluster.tls_ca,
                                           .tls_cert = config->cluster.tls_cert,
                                           .tls_key = config->cluster.tls_key,
                                           .labels = config->cluster.labels,
                                           .node = config->cluster.node,
                                           .replicas = config->cluster.replicas == 0 ? 1 : 3,
                                           .objects_bytes = config->cluster.objects_bytes,
                                           .artifacts_bytes = config->cluster.artifacts_bytes,
                                           .facts = &facts};

    if (!*config->cluster.servers)
        return 0;
    tell_facts(d, config, &facts);
    return cluster_create(&cluster, &d->cluster, err);
}

/* Before the workers, who tell what they end. */
static int make_ledger(struct daemon *d, struct err *err)
{
    const struct ledger_env env = {.registry = d->registry,
                                   .store = d->store,
                                   .objects = d->objects,
                                   .cluster = d->cluster};
    const struct shared_sessions_env sessions = {.registry = d->registry,
                                                 .cluster = d->cluster,
                                                 .objects = d->objects,
                                                 .room = d->skill_room};

    if (!d->cluster)
        return 0;
    d->sessions = shared_sessions_create(&sessions);
    return d->sessions ? ledger_create(&env, &d->ledger, err) : err_no_memory(err);
}

/* With the largest that a skill or its packages can be, and what a tar has around them. */
static int start_objects(struct daemon *d, const struct config *config, struct err *err)
{
    const uint64_t skill = config->expanded_bytes, packages = config->packages_bytes;
    const struct objects_env env = {.registry = d->registry,
                                    .store = d->store,
                                    .watermarks = d->watermarks,
                                    .bytes_max = 2 * (skill > packages ? skill : packages),
                                    .cache_bytes = config->cluster.cache_bytes};

    return objects_create(&env, &d->objects, err);
}

static int start_changes(struct daemon *d, const struct config *config, struct err *err)
{
    const struct changes_env env = {.registry = d->registry,
                                    .store = d->store,
                                    .engine = d->engine,
                                    .cluster = d->cluster,
                                    .skill_room = d->skill_room,
                                    .keys_timeout_ms = config->cluster.keys_timeout_ms};

    int r = changes_create(&env, &d->changes, err);

    if (r < 0 || !d->cluster)
        return r;
    shared_sessions_join(d->sessions, d->changes);
    retention_join(d->retention, d->changes, d->sessions);
    return 0;
}

static void count_unauthorized(void *ctx, enum http_unauthorized why)
{
    static const enum metrics_auth_failure reasons[] = {
        [HTTP_UNAUTHORIZED_NO_KEY] = METRICS_AUTH_NO_KEY,
        [HTTP_UNAUTHORIZED_KEY] = METRICS_AUTH_BAD_KEY,
        [HTTP_UNAUTHORIZED_ROLE] = METRICS_AUTH_NO_OPERATOR,
    };
    const struct daemon *d = ctx;

    metrics_count_auth_failure(d->metrics, reasons[why]);
}

/* What looks at the parsers of scripts. */
static int start_prober(struct daemon *d, const struct config *config, struct err *err)
{
    const struct prober_config prober = {.env = {.pool = d->pool,
                                                 .images = d->images,
                                                 .store = d->store,
                                                 .objects = d->objects,
                                                 .grace_ms = config->grace_ms,
                                                 .scope_tenant = config->snapshots.scope != 0},
                                         .registry = d->registry,
                                         .watermarks = d->watermarks};

    return prober_create(&prober, &d->prober, err);
}

/* A socket that was handed over takes the place of the one in the settings. */
static void add_listeners(const struct serve *serve, struct http_config *http)
{
    const struct config *config = serve->config;
    struct activation *sockets = serve->sockets;

    if (sockets->unix_fd >= 0)
        http->listeners[http->n_listeners++] =
            (struct http_listen){.fd = fd_steal(&sockets->unix_fd)};
    else if (*config->socket_path)
        http->listeners[http->n_listeners++] =
            (struct http_listen){.socket_path = config->socket_path,
                                 .socket_mode = (mode_t)config->socket_mode,
                                 .fd = -1};
    if (sockets->tcp_fd >= 0)
        http->listeners[http->n_listeners++] =
            (struct http_listen){.fd = fd_steal(&sockets->tcp_fd)};
    else if (*config->listen_address)
        http->listeners[http->n_listeners++] =
            (struct http_listen){.address = config->listen_address, .fd = -1};
}

static int authorize(void *ctx, const struct http_origin *origin, const char *bearer,
                     struct caller *ret)
{
    const struct daemon *d = ctx;
    const struct auth auth = {.registry = d->registry,
                              .audit = d->audit,
                              .takes_keys = cluster_takes_keys(d->cluster)};

    return auth_authorize(&auth, origin, bearer, ret);
}

static int start_http(struct daemon *d, const struct serve *serve, struct http_server **ret,
                      struct err *err)
{
    struct http_config http = {
        .max_connections = (unsigned)serve->config->max_connections,
        .tmp_fd = d->tmp_fd,
        .routes = daemon_routes,
        .archive_bytes = serve->config->archive_bytes,
        .authorize = authorize,
        .unauthorized = count_unauthorized,
        .ctx = d,
        .keeper = {held_has_room, held_for_http, held_remove, d->held},
    };

    if (d->cluster)
        http.others = (struct http_others){seen_await, seen_stamp, d};
    add_listeners(serve, &http);
    return http_start(&http, ret, err);
}

/* Keys and everything else pass as they are: that is for the loopback interface only. */
static void warn_of_plain_http(const char *address)
{
    if (*address && strncmp(address, "127.", 4) != 0 && strncmp(address, "[::1]:", 6) != 0)
        log_warn("skillvmd", "address=\"%s\" is=unencrypted needs=\"a proxy with TLS\"",
                 address);
}

/* Of other nodes that have no room. */
static int take_calls(struct daemon *d, struct forward_place *place, struct err *err)
{
    const struct cluster_service service = forward_service(place);
    int r = d->cluster ? cluster_serve(d->cluster, &service, err) : 0;

    if (r == 0 && d->ledger)
        ledger_resume_by(d->ledger, forward_resume, place);
    if (r == 0)
        return 0;
    cluster_stop(d->cluster);
    cluster_serve_end(d->cluster);
    return r;
}

static int serve_requests(struct daemon *d, const struct serve *serve, struct err *err)
{
    struct lifecycle lifecycle = {.daemon = d,
                                  .sources = serve->sources,
                                  .config = serve->config,
                                  .notify = serve->notify,
                                  .signals = serve->signals};
    struct forward_place place = {.daemon = d};
    bool has_unix = serve->sockets->unix_fd >= 0, has_tcp = serve->sockets->tcp_fd >= 0;
    int r = start_http(d, serve, &lifecycle.http, err);

    if (r < 0)
        return r;
    place.http = lifecycle.http;
    r = take_calls(d, &place, err);
    if (r < 0) {
        http_stop(lifecycle.http);
        return r;
    }
    log_info("skillvmd", "listening socket=\"%s\" address=\"%s\" version=" SKILLVM_VERSION,
             has_unix ? "(handed over)" : serve->config->socket_path,
             has_tcp ? "(handed over)" : serve->config->listen_address);
    if (!has_tcp)
        warn_of_plain_http(serve->config->listen_address);
    lifecycle_run(&lifecycle);
    prober_stop(d->prober);
    /* What another node took meanwhile is known here before its records are not followed. */
    forward_finish(d);
    /* No request waits for servers of the cluster any more. */
    cluster_stop(d->cluster);
    cluster_serve_end(d->cluster);
    if (d->ledger)
        ledger_resume_by(d->ledger, NULL, NULL);
    http_stop(lifecycle.http);
    log_info("skillvmd", "stopped");
    return jail_check(d->jail, err);
}

static int open_packages(void *ctx, const char *digest, struct err *err)
{
    const struct daemon *d = ctx;

    return objects_get(d->objects, digest, err);
}

static void forget_object(void *ctx, const char *digest, ino_t inode)
{
    const struct daemon *d = ctx;

    snapshots_forget(d->snapshots, digest);
    uses_note_removal(d->uses, inode);
}

static void forget_images(void *ctx)
{
    snapshots_forget_images(ctx);
}

static int open_jail(struct daemon *d, const struct config *config, const struct places *places,
                     struct err *err)
{
    const struct jail_config jail = {places->jail, places->vmm, .layers = JAIL_ALL,
                                     .strict = config->isolation != 0};

    return jail_open(&jail, &d->jail, err);
}

/* What others tell of executions; on its own a daemon has nobody to follow. */
static int start_ledger(struct daemon *d, struct err *err)
{
    return d->ledger ? ledger_start(d->ledger, d->engine, err)
                     : registry_place_forget(d->registry, REGISTRY_PLACE_OF_RECORDS, err);
}

static int serve_all(struct daemon *d, const struct serve *serve, struct err *err)
{
    int r = start_changes(d, serve->config, err);

    if (r < 0)
        return r;
    drain_restore(d);
    r = start_ledger(d, err);
    if (r < 0)
        return r;
    r = d->cluster ? audit_share_start(d->registry, d->cluster, err) : 0;
    if (r < 0)
        return r;
    r = d->cluster ? engine_share(d->engine, d->cluster, err) : 0;
    return r < 0 ? r : serve_requests(d, serve, err);
}

/* What a process before this one left, under the name that it had in the cluster. */
static int recover(struct daemon *d, const struct config *config, struct err *err)
{
    char node[FLEET_NODE_SIZE];
    int r;

    if (!*config->cluster.servers)
        return recover_executions(d->registry, NULL, err);
    r = cluster_name_node(config->cluster.node, node, err);
    if (r < 0)
        return r;
    r = registry_audit_share(d->registry, node, err);
    return r < 0 ? r : recover_executions(d->registry, node, err);
}

/* Makes everything in the order in which one needs the other, and serves. */
static int serve_from(struct daemon *d, const struct serve *serve, const struct places *places,
                      const struct data_folder *folder, struct err *err)
{
    const struct config *config = serve->config;
    struct snapshots_config snapshots = {.memory_mib = GUEST_MEMORY_MIB,
                                         .boot_timeout_ms =
                                             config->grace_ms / 1000 * BOOT_TIMEOUT_PER_GRACE,
                                         .grace_ms = config->grace_ms,
                                         .retry_ms = SNAPSHOT_RETRY_MS,
                                         .limits = config->snapshots,
                                         .vmm_program = places->vmm,
                                         .kernel_path = places->kernel,
                                         .share_image = getenv("SKILLVM_SHARE_IMAGE"),
                                         .snapshots_fd = folder->snapshots_fd,
                                         .tmp_fd = folder->tmp_fd};
    char db_path[PATH_MAX];
    int r;

    /* First: there is one thread yet. */
    r = open_jail(d, config, places, err);
    if (r < 0)
        return r;
    (void)snprintf(db_path, sizeof(db_path), "%.4000s/skillvm.db", config->data_path);
    r = registry_open(db_path, &d->registry, err);
    if (r < 0)
        return r;
    r = recover(d, config, err);
    if (r < 0)
        return r;
    r = open_store(d, folder, err);
    if (r < 0)
        return r;
    d->audit = audit_create(d->registry);
    d->metrics = metrics_create();
    if (!d->audit || !d->metrics || turns_create(d) < 0)
        return err_no_memory(err);
    r = watermarks_create(folder->dir_fd, &config->watermarks, &d->watermarks, err);
    if (r < 0)
        return r;
    r = start_objects(d, config, err);
    if (r < 0)
        return r;
    d->held = held_create(d->registry, d->watermarks);
    d->uses = uses_create(d->held);
    d->skill_room = skill_room_create(d->registry, d->store);
    if (!d->held || !d->uses || !d->skill_room)
        return err_no_memory(err);
    r = read_images(d, places, err);
    if (r < 0)
        return r;
    snapshots.images = d->images;
    snapshots.jail = d->jail;
    snapshots.open_packages = open_packages;
    snapshots.ctx = d;
    r = snapshots_create(&snapshots, &d->snapshots, err);
    if (r < 0)
        return r;
    store_on_removal(d->store, forget_object, d);
    image_tables_on_gone(d->images, forget_images, d->snapshots);
    r = start_pool(d, config, err);
    if (r < 0)
        return r;
    r = download_links_init(&d->links, err);
    if (r < 0)
        return r;
    r = start_retention(d, config, err);
    if (r < 0)
        return r;
    r = start_prober(d, config, err);
    if (r < 0)
        return r;
    /* Last, so that a setting of it that is wrong starts no worker. */
    r = start_cluster(d, config, err);
    if (r < 0)
        return r;
    objects_join(d->objects, d->cluster);
    r = make_ledger(d, err);
    if (r < 0)
        return r;
    r = start_engine(d, config, err);
    if (r < 0)
        return r;
    r = serve_all(d, serve, err);
    /* Where serving never began the workers still wait. */
    if (r < 0)
        engine_stop(d->engine, 0);
    return r;
}

int serve_run(const struct serve *serve, struct err *err)
{
    const struct config *config = serve->config;
    struct daemon d = {.tmp_fd = -1, .dir_fd = -1};
    struct places places;
    struct data_folder folder;
    int r = find_places(config, &places, err);

    if (r < 0)
        return r;
    r = data_folder_open(config->data_path, &folder, err);
    if (r < 0)
        return r;
    d.public_url = config->public_url;
    d.tmp_fd = folder.tmp_fd;
    d.dir_fd = folder.dir_fd;
    d.network_policy = config->network.policy;
    d.archive_limits = archive_limits_default;
    d.archive_limits.archive_bytes = config->archive_bytes;
    d.archive_limits.expanded_bytes = config->expanded_bytes;
    d.archive_limits.entries = (uint32_t)config->archive_entries;
    d.packages_limits = archive_limits_default;
    d.packages_limits.archive_bytes = config->packages_bytes;
    d.packages_limits.expanded_bytes = config->packages_bytes;
    d.packages_limits.entries = (uint32_t)config->packages_entries;
    d.wheelhouse = config->wheelhouse;
    r = serve_from(&d, serve, &places, &folder, err);
    cluster_stop(d.cluster);
    cluster_share_end(d.cluster);
    ledger_stop(d.ledger);
    objects_join(d.objects, NULL);
    retention_join(d.retention, NULL, NULL);
    cluster_destroy(d.cluster);
    changes_destroy(d.changes);
    engine_destroy(d.engine);
    ledger_destroy(d.ledger);
    shared_sessions_destroy(d.sessions);
    retention_destroy(d.retention);
    prober_destroy(d.prober);
    /* It asks whether memory is short. */
    pool_destroy(d.pool);
    watermarks_destroy(d.watermarks);
    metrics_destroy(d.metrics);
    turns_destroy(&d);
    skill_room_destroy(d.skill_room);
    uses_destroy(d.uses);
    held_destroy(d.held);
    audit_destroy(d.audit);
    snapshots_destroy(d.snapshots);
    objects_destroy(d.objects);
    jail_close(d.jail);
    memo_destroy(d.profiles);
    memo_destroy(d.choices);
    image_tables_destroy(d.images);
    store_destroy(d.store);
    registry_close(d.registry);
    data_folder_close(&folder);
    return r;
}
