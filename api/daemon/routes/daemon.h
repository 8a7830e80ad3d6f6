/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handlers share: the parts of a running daemon. Put together in serve.c, from top to
 * bottom; every handler gets it and keeps nothing of its own between requests.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_DAEMON_H
#define SKILLVM_API_DAEMON_ROUTES_DAEMON_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/changes.h"
#include "api/daemon/engine/choices.h"
#include "api/daemon/engine/engine.h"
#include "api/daemon/engine/ledger.h"
#include "api/daemon/engine/objects.h"
#include "api/daemon/engine/prober.h"
#include "api/daemon/engine/profiles.h"
#include "api/daemon/engine/skill_room.h"
#include "api/daemon/http/http.h"
#include "api/daemon/machine/jail.h"
#include "api/daemon/machine/pool.h"
#include "api/daemon/machine/snapshots.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/routes/download_link.h"
#include "api/daemon/store/store.h"
#include "api/daemon/store/watermarks.h"
#include "api/skill/archive.h"

/* How often a skill is looked up that is deleted or replaced while it is opened. */
#define SKILL_OPEN_TRIES 8u

/*
 * What few requests do at once, tenants by turns (turn.h). Who has one turn may take one that
 * stands after it here, and no other.
 */
enum daemon_turn {
    TURN_PREPARE, /* an execution of a large registered skill, whose files are all known then */
    TURN_ARCHIVE, /* looking into an archive that comes, or into a registered skill's */
    TURN_LOOK,    /* looking for a file in what was left, or at a large result or log */
    TURN_ROWS,    /* a list, or a file that is stored: others' rows wait for milliseconds */
    TURN_KINDS,
};

struct daemon {
    struct registry *registry;
    struct image_tables *images;
    struct memo *choices;
    struct memo *profiles;
    struct jail *jail;
    struct snapshots *snapshots;
    struct pool *pool;
    struct engine *engine;
    struct changes *changes;
    struct objects *objects;
    struct ledger *ledger;            /* NULL: it is on its own */
    struct shared_sessions *sessions; /* the same */
    struct skill_room *skill_room;
    struct metrics *metrics;
    struct audit *audit;
    struct held *held;
    struct uses *uses;
    struct prober *prober;
    struct watermarks *watermarks;
    struct retention *retention;
    struct download_links links;
    const char *public_url;     /* before paths in answers over TCP; "": the Host header says */
    bool stopping;              /* atomic: nothing new is accepted any more */
    unsigned n_forwarding;      /* atomic: executions that are being sent to other nodes */
    unsigned n_followed;        /* atomic: event streams of what other nodes have */
    const char *network_policy; /* of tenants without one of their own */
    struct archive_limits archive_limits;
    struct archive_limits packages_limits; /* of what a skill's wheels hold */
    const char *wheelhouse;                /* a folder; "": none */
    struct fair_gate *turns[TURN_KINDS];
    struct store *store;
    struct cluster *cluster; /* NULL: it is on its own */
    int tmp_fd;              /* a folder for what is on its way */
    int dir_fd;              /* the data folder */
};

/* The routes, ended by one without a method. ctx of every handler is a struct daemon. */
extern const struct http_route daemon_routes[];
/*
 * Replies with a result (taken over), in which files_url is an address that needs no key where
 * the request came over TCP.
 */
void daemon_reply_result(struct daemon *d, const struct http_request *request,
                         struct http_reply *reply, struct buf *result);

/*
 * Replies with an object, of which a descriptor is taken over: it counts as its tenant's until
 * it was sent. The strings are those of struct http_reply. 0, or without a reply -ENOMEM or
 * -EIO.
 */
int daemon_reply_object(struct daemon *d, const char *tenant, struct http_reply *reply, int fd,
                        const char *content_type, const char *file_name, struct err *err);

/*
 * Replies with one file of an archive that artifacts.h made, which is looked for by turns; fd
 * is taken over. 0, or without a reply -ENOENT, -EIO, -EBUSY where no turn came, or -ENOMEM.
 */
int daemon_reply_file(struct daemon *d, const char *tenant, struct http_reply *reply, int fd,
                      const char *path, struct err *err);

/*
 * What POST /v1/executions does, for a body that was made of what the caller said: that is what
 * an idempotency key belongs to.
 */
void execution_answer(struct daemon *d, struct http_request *request, const char *said,
                      size_t said_len, struct http_reply *reply);
/* What another node that has no room has given an execution. Borrowed. */
struct execution_given {
    const char *id;
    const char *digest;   /* of all that its request said; "" without a key */
    uint64_t accepted_ns; /* realtime; another process had it; 0: it is a new one */
    unsigned retries;     /* of one that another process had: how often it may be begun again
                             once it has begun here */
};
/* Accepts it here, for that node to answer with. False where it did not. */
bool execution_take(struct daemon *d, struct http_request *request,
                    const struct execution_given *given, struct http_reply *reply);

/*
 * Looks for images again, and tells the cluster what is here: as of image_tables_reload().
 * -EEXIST: it is in a software host.
 */
int daemon_reload_images(struct daemon *d, struct image_changes *ret, struct err *err);
/* Which images are here, as a node says it. */
void daemon_list_images(struct daemon *d, struct node_entry *ret);

http_handle_fn route_health, route_ready, route_metrics;
http_handle_fn route_admin_tenant_create, route_admin_tenant_list, route_admin_tenant_get,
    route_admin_tenant_update, route_admin_tenant_delete;
http_handle_fn route_admin_key_create, route_admin_key_list, route_admin_key_revoke,
    route_admin_audit, route_admin_images_reload;
http_handle_fn route_admin_cluster_get, route_admin_cluster_init, route_admin_cluster_remove,
    route_admin_cluster_drain, route_admin_cluster_undrain, route_admin_cluster_drained;
http_handle_fn route_skill_push, route_skill_validate, route_skill_list, route_skill_get,
    route_skill_inspect, route_skill_delete;
http_handle_fn route_file_upload, route_file_list, route_file_get, route_file_download,
    route_file_delete;
http_handle_fn route_execution_create, route_execution_list, route_execution_get,
    route_execution_cancel;
http_handle_fn route_execution_logs, route_execution_events, route_execution_files,
    route_execution_file, route_download;
http_handle_fn route_tool_list, route_tool_call;
http_handle_fn route_session_list, route_session_get, route_session_files, route_session_file,
    route_session_delete, route_session_file_delete;

#endif
