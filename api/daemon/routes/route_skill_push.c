/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/audit.h"
#include "api/daemon/callers/held.h"
#include "api/daemon/engine/skill_changes.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/routes/chooser.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/intake.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/routes/tool_catalog.h"
#include "api/daemon/routes/uploads.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A push on its way. */
struct push {
    struct daemon *daemon;
    struct http_request *request;
    int fd; /* the canonical tar */
    struct image_choice image;
    struct intake_packages packages;
    bool replace;
    struct registry_skill row;
    struct registry_skill before; /* what had its version; empty where nothing had */
    bool is_new;
    char *previous; /* owned: the digest of what had its version, where that made way */
};

static void push_finish(struct push *push)
{
    intake_packages_finish(&push->packages);
    registry_skill_finish(&push->before);
    free(push->previous);
}
#define _cleanup_push_ __attribute__((cleanup(push_finish)))

static void write_previous(struct json_writer *w, const struct push *push)
{
    char text[sizeof(REGISTRY_BY_DIGEST) + SHA256_HEX_SIZE];

    (void)snprintf(text, sizeof(text), REGISTRY_BY_DIGEST "%s",
                   push->previous ? push->previous : "");
    json_write_string(w, "previous", push->previous && !push->replace ? text : NULL);
    json_write_string(w, "replaced", push->previous && push->replace ? text : NULL);
}

/* What push and validate, which stores nothing, say of a skill they accept. */
static void reply_accepted(struct http_reply *reply, unsigned status, const struct push *push,
                           const struct skill *skill, const struct skill_archive *archive)
{
    const struct image_choice *image = &push->image;
    struct json_writer w = json_writer_init(LIMIT_MIB * 8);
    const struct err err = {0};

    json_write_open(&w, NULL, '{');
    if (status == 200)
        json_write_bool(&w, "valid", true);
    json_write_string(&w, "name", skill->name);
    json_write_string(&w, "version", skill->version);
    if (status == 200) {
        json_write_string(&w, "skill_name", skill->name);
        json_write_string(&w, "skill_version", skill->version);
    }
    json_write_string(&w, "description", skill->description);
    json_write_string(&w, "digest", archive->digest);
    if (status == 201)
        write_previous(&w, push);
    json_write_string(&w, "image", image->why[0] ? image->name : NULL);
    json_write_string(&w, "image_reason", image->why[0] ? image->why : NULL);
    /* What was there keeps what it was given. */
    wheels_write_packages(status == 200 || push->is_new ? push->packages.layer.packages
                                                        : push->before.packages,
                          &w);
    json_write_strings(&w, "warnings", skill->warnings.items, skill->warnings.len);
    if (status == 200)
        json_write_strings(&w, "errors", NULL, 0);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, status, &w, 0, &err);
}

static int put(struct push *push, struct store *store, struct err *err)
{
    int r = store_put(store, push->fd, push->row.digest, err);

    if (r < 0)
        return r;
    if (push->row.packages_digest)
        r = store_put(store, push->packages.fd, push->row.packages_digest, err);
    return r < 0 ? r
                 : registry_skill_put(push->daemon->registry, push->request->caller.tenant,
                                      &push->row, push->replace, &push->previous, err);
}

/* Looks at what is there, and how many bytes more it takes. */
static int look_before(struct push *push, uint64_t *ret_more, struct err *err)
{
    bool name_known;
    int r =
        registry_skill_get(push->daemon->registry, push->request->caller.tenant, push->row.name,
                           push->row.version, &push->before, &name_known, err);
    uint64_t freed;

    if (r < 0 && r != -ENOENT)
        return r;
    push->is_new =
        r == -ENOENT || !registry_skill_is_there(&push->before, &push->row, push->replace);
    /* Before anything of it is kept, here or at the servers of a cluster. */
    if (r == 0 && push->is_new && !push->replace && !push->before.is_floating)
        return registry_skill_taken(&push->row, push->before.digest, err);
    freed = push->replace ? push->before.bytes : 0;
    /* What is there already takes nothing more. */
    *ret_more = push->is_new && push->row.bytes > freed ? push->row.bytes - freed : 0;
    return 0;
}

/* Looks whether its tenant has room for what is new of it. */
static int check_room(struct push *push, struct err *err)
{
    uint64_t more = 0;
    int r = look_before(push, &more, err);

    if (r < 0)
        return r;
    http_request_shrink(push->request, 0);
    return more == 0 ? 0
                     : registry_tenant_check_room(push->daemon->registry,
                                                  push->request->caller.tenant, more, err);
}

/*
 * Puts the canonical tar into the store and the skill into the registry, under the store's
 * lock: what is refused leaves nothing. As of registry_skill_put.
 */
static int store_skill(struct push *push, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(push->daemon->store);
    int r = check_room(push, err);

    if (r < 0)
        return r;
    r = put(push, store, err);
    /* What a row names stays; what cannot be removed now the next start sweeps. */
    if (r < 0)
        (void)store_release(store, push->row.digest, NULL);
    else if (push->replace && push->previous)
        (void)store_release(store, push->previous, NULL);
    if (push->row.packages_digest)
        (void)store_release(store, push->row.packages_digest, NULL);
    if (push->before.packages_digest)
        (void)store_release(store, push->before.packages_digest, NULL);
    return r;
}

/* What was there keeps its packages, and the image that it runs in with these. */
static void choose_for_kept(struct push *push, const struct skill *skill,
                            const struct skill_archive *archive)
{
    const struct chooser_packages packages = chooser_packages_of(&push->before);
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    _cleanup_images_ struct images *images = image_tables_now(push->daemon->images);
    struct image_choice choice;
    struct err ignored = {0};

    (void)skill_entry_resolve(skill, archive, NULL, NULL, &entry, &ignored);
    if (chooser_find(push->daemon, images, push->request->caller.tenant, archive->digest,
                     &packages, entry.lang, skill->image, &choice, &ignored) == 0)
        push->image = choice;
}

static struct objects_put put_of(const struct push *push, const char *digest, int fd)
{
    return (struct objects_put){.tenant = push->request->caller.tenant,
                                .kept = CLUSTER_OF_CHANGES,
                                .wait_ns = OBJECTS_WAIT_NS,
                                .digest = digest,
                                .fd = fd};
}

static int send_objects(struct push *push, bool *ret_sent, struct err *err)
{
    const struct objects_put skill = put_of(push, push->row.digest, push->fd),
                             packages =
                                 put_of(push, push->row.packages_digest, push->packages.fd);
    int r = objects_send(push->daemon->objects, &skill, err);

    *ret_sent = r == 0;
    return r < 0 || !packages.digest ? r : objects_send(push->daemon->objects, &packages, err);
}

/* Somebody may have removed it for want of the row. */
static int confirm_objects(struct push *push, struct err *err)
{
    const struct objects_put skill = put_of(push, push->row.digest, push->fd),
                             packages =
                                 put_of(push, push->row.packages_digest, push->packages.fd);
    int r = objects_confirm(push->daemon->objects, &skill, err);

    return r < 0 || !packages.digest ? r
                                     : objects_confirm(push->daemon->objects, &packages, err);
}

/* What this node may need first is here already; what cannot be kept is read when it is. */
static void keep_objects(struct push *push)
{
    struct objects *objects = push->daemon->objects;
    struct err ignored = {0};

    (void)objects_keep(objects, push->row.digest, push->fd, &ignored);
    if (push->row.packages_digest)
        (void)objects_keep(objects, push->row.packages_digest, push->packages.fd, &ignored);
}

static int send_and_change(void *ctx, bool *ret_sent, struct err *err)
{
    struct push *push = ctx;
    struct daemon *d = push->daemon;
    int r = send_objects(push, ret_sent, err);

    if (r < 0)
        return r;
    r = skill_changes_put(d->changes, d->registry, push->request->caller.tenant, &push->row,
                          push->replace, &push->previous, err);
    return r < 0 ? r : confirm_objects(push, err);
}

/*
 * The same for all nodes: what it holds is at the servers before there is a row. What is
 * refused leaves nothing that a row names. All of it counts to its tenant until the row does,
 * and what was sent in vain for as long as it is there.
 */
static int store_everywhere(struct push *push, struct err *err)
{
    const char *packages = push->row.packages_digest;
    const struct skill_room_row row = {.tenant = push->request->caller.tenant,
                                       .digest = push->row.digest,
                                       .packages_digest = packages ? packages : "",
                                       .bytes = push->row.bytes};
    uint64_t more = 0;
    int r = look_before(push, &more, err);

    if (r < 0)
        return r;
    r = skill_room_hold(push->daemon->skill_room, &row, more, send_and_change, push, err);
    if (r == 0)
        keep_objects(push);
    return r;
}

static void register_skill(struct push *push, const struct skill *skill,
                           const struct skill_archive *archive, struct http_reply *reply)
{
    const struct caller *caller = &push->request->caller;
    struct err err = {0};
    struct stat tar = {0};
    int r;

    push->row = (struct registry_skill){
        .name = skill->name,
        .version = skill->version,
        .digest = archive->digest,
        .description = skill->description,
        .bytes = (fstat(push->fd, &tar) == 0 ? (uint64_t)tar.st_size : 0) +
                 push->packages.layer.bytes,
        .packages_digest = push->packages.fd >= 0 ? push->packages.layer.digest : NULL,
        .packages = push->packages.layer.packages,
        .packages_python = push->packages.layer.python_minor,
        .is_floating = skill->is_floating,
    };
    /* Again under the lock, where it then takes no time: others wait for that lock. */
    (void)fsync(push->fd);
    if (push->packages.fd >= 0)
        (void)fsync(push->packages.fd);
    r = push->daemon->cluster ? store_everywhere(push, &err) : store_skill(push, &err);
    if (r == 0 && !push->is_new)
        choose_for_kept(push, skill, archive);
    if (r == -ENOENT)
        http_reply_error(reply, 401, "unauthorized", "%s", err.message);
    else if (r < 0)
        failure_reply(reply, r, &err);
    else
        reply_accepted(reply, 201, push, skill, archive);
    if (r == 0)
        tool_catalog_prepare(push->daemon, caller->tenant,
                             push->is_new ? &push->row : &push->before, skill, archive);
    if (r == 0 && push->is_new)
        audit_note(push->daemon->audit, caller, "skill.push", skill->name,
                   "version %s digest %s%s%s", skill->version, archive->digest,
                   push->previous ? (push->replace ? " replaces " : " follows ") : "",
                   push->previous ? push->previous : "");
}

/* ?replace=true. False when *reply says that it is another word. */
static bool parse_replace(const struct http_request *request, bool *ret,
                          struct http_reply *reply)
{
    const char *text = request->query[0];

    *ret = text && strcmp(text, "true") == 0;
    return !text || *ret || strcmp(text, "false") == 0 ||
           http_reply_error(reply, 400, "bad_request", "\"replace\" is true or false");
}

/* A file for the canonical tar; negative: there is a reply. */
static int open_temporary(struct daemon *d, struct http_reply *reply)
{
    int fd = store_temporary(d->store);

    if (fd < 0)
        http_reply_error(reply, 500, "internal_error", "cannot create a temporary file: %s",
                         strerror(-fd));
    return fd;
}

void route_skill_push(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_fd_ int fd = -1;
    _cleanup_push_ struct push push = {
        .daemon = d, .request = request, .packages = INTAKE_NO_PACKAGES};
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    struct spool *body;

    if (!parse_replace(request, &push.replace, reply))
        return;
    body = held_admit(d->held, 0, reply) ? uploads_receive(request, reply) : NULL;
    if (!body)
        return;
    push.fd = fd = open_temporary(d, reply);
    if (fd >= 0 && intake_archive(d, request, body, fd, NULL, &archive, &skill, &push.image,
                                  &push.packages, reply))
        register_skill(&push, &skill, &archive, reply);
}

void route_skill_validate(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct spool *body = uploads_receive(request, reply);
    _cleanup_fd_ int fd = body ? open_temporary(d, reply) : -1;
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_push_ struct push look = {.daemon = d, .packages = INTAKE_NO_PACKAGES};

    if (fd >= 0 && intake_archive(d, request, body, fd, NULL, &archive, &skill, &look.image,
                                  &look.packages, reply))
        reply_accepted(reply, 200, &look, &skill, &archive);
}
