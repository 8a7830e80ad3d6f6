/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/audit.h"
#include "api/daemon/callers/held.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/intake.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/routes/tool_catalog.h"
#include "api/daemon/routes/uploads.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "api/skill/archive.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What push and validate say of a skill they accept. */
static void reply_accepted(struct http_reply *reply, unsigned status, const struct skill *skill,
                           const struct skill_archive *archive)
{
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
    json_write_strings(&w, "warnings", skill->warnings.items, skill->warnings.len);
    if (status == 200)
        json_write_strings(&w, "errors", NULL, 0);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, status, &w, 0, &err);
}

static int put(struct daemon *d, struct store *store, const char *tenant, int fd,
               const struct registry_skill *registration, char **ret_existing, struct err *err)
{
    int r = store_put(store, fd, registration->digest, err);

    return r < 0 ? r : registry_skill_put(d->registry, tenant, registration, ret_existing, err);
}

/*
 * Puts the canonical tar into the store and the skill into the registry, under the store's
 * lock: what is refused leaves nothing. As of registry_skill_put.
 */
static int store_skill(struct daemon *d, struct http_request *request, int fd,
                       const struct registry_skill *registration, bool *ret_new,
                       char **ret_existing, struct err *err)
{
    const char *tenant = request->caller.tenant;
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    _cleanup_registry_skill_ struct registry_skill known = {0};
    bool name_known;
    int r = registry_skill_get(d->registry, tenant, registration->name, registration->version,
                               &known, &name_known, err);

    *ret_new = r == -ENOENT;
    if (r < 0 && r != -ENOENT)
        return r;
    http_request_shrink(request, 0);
    /* What is there already takes nothing more. */
    if (*ret_new)
        r = registry_tenant_check_room(d->registry, tenant, registration->bytes, err);
    if (r < 0)
        return r;
    r = put(d, store, tenant, fd, registration, ret_existing, err);
    if (r < 0)
        (void)store_release(store, registration->digest, NULL);
    return r;
}

static void register_skill(struct daemon *d, struct http_request *request, int fd,
                           const struct skill *skill, const struct skill_archive *archive,
                           struct http_reply *reply)
{
    const struct caller *caller = &request->caller;
    struct err err = {0};
    _cleanup_free_ char *existing = NULL;
    bool is_new = false;
    struct stat tar = {0};
    const struct registry_skill registration = {
        .name = skill->name,
        .version = skill->version,
        .digest = archive->digest,
        .description = skill->description,
        .bytes = fstat(fd, &tar) == 0 ? (uint64_t)tar.st_size : 0};
    int r;

    /* Again under the lock, where it then takes no time: others wait for that lock. */
    (void)fsync(fd);
    r = store_skill(d, request, fd, &registration, &is_new, &existing, &err);
    if (r == -EEXIST)
        http_reply_error(reply, 409, "conflict",
                         "%s %s is registered already with other content (digest %.12s)",
                         skill->name, skill->version, existing);
    else if (r == -ENOENT)
        http_reply_error(reply, 401, "unauthorized", "%s", err.message);
    else if (r < 0)
        failure_reply(reply, r, &err);
    else
        reply_accepted(reply, 201, skill, archive);
    if (r == 0)
        tool_catalog_prepare(d, caller->tenant, skill, archive);
    if (r == 0 && is_new)
        audit_note(d->audit, caller, "skill.push", skill->name, "version %s digest %s",
                   skill->version, archive->digest);
}

void route_skill_push(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_fd_ int fd = -1;
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    struct spool *body;

    body = held_admit(d->held, 0, reply) ? uploads_receive(request, reply) : NULL;
    if (!body)
        return;
    fd = store_temporary(d->store);
    if (fd < 0) {
        http_reply_error(reply, 500, "internal_error", "cannot create a temporary file: %s",
                         strerror(-fd));
        return;
    }
    if (intake_archive(d, request, body, fd, &archive, &skill, reply))
        register_skill(d, request, fd, &skill, &archive, reply);
}

void route_skill_validate(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct spool *body = uploads_receive(request, reply);
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};

    if (body && intake_archive(d, request, body, -1, &archive, &skill, reply))
        reply_accepted(reply, 200, &skill, &archive);
}
