/* SPDX-License-Identifier: Apache-2.0 */
/* The registered skills: the list, one of them, and its removal. */
#include "api/daemon/callers/audit.h"
#include "api/daemon/engine/skill_changes.h"
#include "api/daemon/routes/chooser.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "api/skill/archive.h"
#include "api/skill/needs.h"
#include "api/wheels/wheels.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_MAX (64 * LIMIT_MIB)
/* As many names as a skill has files by default, each byte escaped, and SKILL.md twice fit. */
#define SHOW_MAX (64 * LIMIT_MIB)

/* The members that the list and the single skill have in common. */
static void write_row(struct json_writer *w, const struct registry_skill *row)
{
    json_write_string(w, "name", row->name);
    json_write_string(w, "version", row->version);
    json_write_string(w, "description", row->description);
    json_write_string(w, "digest", row->digest);
    json_write_time(w, "created_at", row->created_ns);
}

/* A list that is made for a request. */
struct listing {
    struct json_writer w;
    struct http_request *request;
};

/* -EDQUOT where the reply says why no more of it may be made. */
static int list_one(void *ctx, const struct registry_skill *row)
{
    struct listing *list = ctx;

    json_write_open(&list->w, NULL, '{');
    write_row(&list->w, row);
    json_write_close(&list->w, '}');
    if (list->w.out.error < 0)
        return list->w.out.error;
    return http_request_hold_answer(list->request, list->w.out.len) ? 0 : -EDQUOT;
}

static int list_all(struct daemon *d, const char *tenant, struct listing *list, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, d, TURN_ROWS, tenant, err);

    return r < 0 ? r : registry_skill_each(d->registry, tenant, list_one, list, err);
}

void route_skill_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct listing list = {.w = json_writer_init(LIST_MAX), .request = request};
    struct err err = {0};
    int r;

    json_write_open(&list.w, NULL, '[');
    r = list_all(d, request->caller.tenant, &list, &err);
    json_write_close(&list.w, ']');
    if (reply->status != 0) {
        buf_finish(&list.w.out);
        return;
    }
    /* What did not fit is no fault of the caller's. */
    (void)failure_or_json(reply, 200, &list.w, list.w.out.error < 0 ? 0 : r, &err);
}

/* Finds the row of /:name/:version. False when *reply says why not. */
static bool find_row(struct daemon *d, const struct http_request *request,
                     struct registry_skill *ret, struct http_reply *reply)
{
    const char *name = request->params[0];
    const char *version = request->params[1];
    struct err err = {0};
    bool name_known;
    int r;

    if (!request_name_valid(name, LIMIT_NAME_BYTES) ||
        !request_name_valid(version, LIMIT_VERSION_BYTES))
        return http_reply_error(reply, 400, "bad_request",
                                "%.64s %.64s is no skill name and version", name, version);
    r = registry_skill_get(d->registry, request->caller.tenant, name,
                           strcmp(version, "latest") == 0 ? NULL : version, ret, &name_known,
                           &err);
    if (r == -ENOENT && name_known)
        (void)err_set(&err, ENOENT, "skill %s has no version %s", name, version);
    else if (r == -ENOENT)
        (void)err_set(&err, ENOENT, "there is no skill named %s", name);
    return failure_or_true(reply, r, &err);
}

/* A skill of the registry with its objects, all of one moment. */
struct registered {
    struct registry_skill row;
    int fd;
    int packages_fd; /* -1: it has none */
};

static void registered_finish(struct registered *skill)
{
    registry_skill_finish(&skill->row);
    fd_close(&skill->fd);
    fd_close(&skill->packages_fd);
}
#define _cleanup_registered_ __attribute__((cleanup(registered_finish)))

static int open_objects(struct objects *objects, struct registered *skill, struct err *err)
{
    skill->fd = objects_get(objects, skill->row.digest, err);
    if (skill->fd < 0)
        return skill->fd;
    if (!skill->row.packages_digest)
        return 0;
    skill->packages_fd = objects_get(objects, skill->row.packages_digest, err);
    return skill->packages_fd < 0 ? skill->packages_fd : 0;
}

/*
 * As find_row. What was opened stays what it is when the skill is replaced or deleted; where it
 * is gone before, another row may have taken its place.
 */
static bool open_skill(struct daemon *d, const struct http_request *request,
                       struct registered *ret, struct http_reply *reply)
{
    for (unsigned tries = 1;; tries++) {
        struct err err = {0};
        int r;

        *ret = (struct registered){.fd = -1, .packages_fd = -1};
        if (!find_row(d, request, &ret->row, reply))
            return false;
        r = open_objects(d->objects, ret, &err);
        if (r != -ENOENT || tries == SKILL_OPEN_TRIES)
            return failure_or_true(reply, r == -ENOENT ? -EIO : r, &err);
        registered_finish(ret);
    }
}

static void write_resources(struct json_writer *w, const struct skill *skill)
{
    char text[32];

    json_write_open(w, "resources", '{');
    if (skill->memory_bytes > 0) {
        bool whole = skill->memory_bytes % LIMIT_MIB == 0;

        (void)snprintf(text, sizeof(text), whole ? "%lluMi" : "%llu",
                       (unsigned long long)(whole ? skill->memory_bytes / LIMIT_MIB
                                                  : skill->memory_bytes));
        json_write_string(w, "memory", text);
    }
    if (skill->cpu_millis > 0) {
        (void)snprintf(text, sizeof(text), "%g", skill->cpu_millis / 1000.0);
        json_write_string(w, "cpu", text);
    }
    json_write_close(w, '}');
}

static void write_files(struct json_writer *w, const struct skill_archive *archive)
{
    json_write_open(w, "files", '[');
    for (size_t i = 0; i < archive->n_entries; i++) {
        if (archive->entries[i].type != ARCHIVE_ENTRY_FILE)
            continue;
        json_write_open(w, NULL, '{');
        json_write_string(w, "path", archive->entries[i].path);
        json_write_number(w, "size_bytes", archive->entries[i].size);
        json_write_close(w, '}');
    }
    json_write_close(w, ']');
}

static void write_skill(struct json_writer *w, const struct registry_skill *row,
                        const struct skill *skill, const struct skill_archive *archive)
{
    char timeout[32] = "";

    if (skill->timeout_ms > 0)
        (void)snprintf(timeout, sizeof(timeout), "%gs", (double)skill->timeout_ms / 1000);
    json_write_open(w, NULL, '{');
    write_row(w, row);
    json_write_string(w, "license", skill->license);
    json_write_string(w, "compatibility", skill->compatibility);
    json_write_string(w, "allowed_tools", skill->allowed_tools);
    json_write_string(w, "lang", skill->lang);
    json_write_string(w, "entry_point", skill->entry_point);
    json_write_string(w, "timeout", timeout[0] ? timeout : NULL);
    write_resources(w, skill);
    json_write_open(w, "metadata", '{');
    for (size_t i = 0; i < skill->n_metadata; i++)
        json_write_string(w, skill->metadata[i].key, skill->metadata[i].value);
    json_write_close(w, '}');
    wheels_write_packages(row->packages, w);
    write_files(w, archive);
    json_write_string(w, "instructions", skill->instructions);
    json_write_string(w, "content", skill->instructions);
    json_write_close(w, '}');
}

/* A turn at a large one. False when *reply says why not. */
static bool take_turn(struct daemon *d, const char *tenant, const struct registered *found,
                      struct turn *turn, struct http_reply *reply)
{
    struct err err = {0};

    return failure_or_true(reply, turn_take_at(turn, d, found->fd, tenant, &err), &err);
}

void route_skill_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    _cleanup_turn_ struct turn turn = {0};
    struct json_writer w = json_writer_init(SHOW_MAX);
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_registered_ struct registered found;
    _cleanup_skill_ struct skill skill = {0};
    struct err err = {0};

    if (!open_skill(ctx, request, &found, reply) ||
        !take_turn(ctx, request->caller.tenant, &found, &turn, reply))
        return;
    if (skill_archive_reload(found.fd, found.row.digest, &archive, &skill, &err) < 0) {
        http_reply_error(reply, 500, "internal_error", "%s", err.message);
        return;
    }
    write_skill(&w, &found.row, &skill, &archive);
    if (http_request_hold_answer(request, w.out.len))
        (void)failure_or_json(reply, 200, &w, 0, &err);
    else
        buf_finish(&w.out);
}

static int read_needs(struct daemon *d, const char *tenant, const struct registered *found,
                      struct skill *skill, struct needs *ret, struct err *err)
{
    struct chooser_packages packages = chooser_packages_of(&found->row);
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_images_ struct images *images = image_tables_now(d->images);
    struct image_choice choice;
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    int r = turn_take(&turn, d, TURN_ARCHIVE, tenant, err);

    if (r < 0)
        return r;
    r = skill_archive_reload(found->fd, found->row.digest, &archive, skill, err);
    if (r < 0)
        return r;
    r = needs_read(found->fd, &archive, skill, ret, err);
    if (r < 0)
        return r;
    packages.fd = found->packages_fd;
    return chooser_look(d, images, tenant, skill, &archive, &packages, NULL, ret, &choice, err);
}

void route_skill_inspect(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(SHOW_MAX);
    _cleanup_registered_ struct registered found;
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_needs_ struct needs needs = {0};
    struct err err = {0};
    int r;

    if (!open_skill(d, request, &found, reply))
        return;
    r = read_needs(d, request->caller.tenant, &found, &skill, &needs, &err);
    if (r < 0) {
        (void)failure_reply(reply, r, &err);
        return;
    }
    json_write_open(&w, NULL, '{');
    json_write_string(&w, "name", found.row.name);
    json_write_string(&w, "version", found.row.version);
    wheels_write_packages(found.row.packages, &w);
    needs_write(&needs, &w);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, 200, &w, 0, &err);
}

/* The row, and the objects when no other row names them. */
static int remove_skill(struct registry *registry, struct store *store, const char *tenant,
                        const struct registry_skill *row, struct err *err)
{
    int r = registry_skill_delete(registry, tenant, row, err);

    if (r < 0)
        return r;
    r = row->packages_digest ? store_release(store, row->packages_digest, err) : 0;
    return r < 0 ? r : store_release(store, row->digest, err);
}

/* At all nodes: what of its objects is here goes with the row. */
static bool delete_everywhere(struct daemon *d, const struct http_request *request,
                              struct registry_skill *ret, struct http_reply *reply)
{
    struct err err = {0};
    int r;

    if (!find_row(d, request, ret, reply))
        return false;
    r = skill_changes_delete(d->changes, d->registry, request->caller.tenant, ret, &err);
    if (r == -ENOENT)
        (void)err_set(&err, ENOENT, "skill %s has no version %s", ret->name, ret->version);
    return failure_or_true(reply, r, &err);
}

/* Who runs the skill now has its files open and goes on. False: there is a reply. */
static bool delete_skill(struct daemon *d, const struct http_request *request,
                         struct registry_skill *ret, struct http_reply *reply)
{
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    struct err err = {0};

    if (!find_row(d, request, ret, reply))
        return false;
    return remove_skill(d->registry, store, request->caller.tenant, ret, &err) == 0 ||
           http_reply_error(reply, 500, "internal_error", "%s", err.message);
}

void route_skill_delete(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_skill_ struct registry_skill row = {0};

    if (!(d->cluster ? delete_everywhere : delete_skill)(d, request, &row, reply))
        return;
    log_info("skills", "deleted name=\"%s\" version=\"%s\" digest=%.12s", row.name, row.version,
             row.digest);
    audit_note(d->audit, &request->caller, "skill.delete", row.name, "version %s digest %s",
               row.version, row.digest);
    http_reply_empty(reply, 204);
}
