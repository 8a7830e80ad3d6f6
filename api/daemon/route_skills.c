/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/daemon.h"
#include "api/daemon/json_text.h"
#include "api/daemon/limits.h"
#include "api/daemon/objects.h"
#include "api/daemon/request.h"
#include "api/daemon/skills.h"
#include "api/skill/archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void reply_registered(struct http_reply *reply, const struct skill *skill,
                             const struct skill_archive *archive)
{
    struct buf body = buf_init(LIMIT_MIB * 8);
    int r = buf_printf(&body, "{\"name\":");

    if (r == 0)
        r = json_append_cstr(&body, skill->name);
    if (r == 0)
        r = buf_printf(&body, ",\"version\":");
    if (r == 0)
        r = json_append_cstr(&body, skill->version);
    if (r == 0)
        r = buf_printf(&body, ",\"description\":");
    if (r == 0)
        r = json_append_cstr(&body, skill->description);
    if (r == 0)
        r = buf_printf(&body, ",\"digest\":\"%s\",\"warnings\":[", archive->digest);
    for (size_t i = 0; r == 0 && i < skill->warnings.len; i++) {
        if (i > 0)
            r = buf_append(&body, ",", 1);
        if (r == 0)
            r = json_append_cstr(&body, skill->warnings.items[i]);
    }
    if (r == 0)
        r = buf_append(&body, "]}\n", 3);
    if (r < 0) {
        buf_finish(&body);
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    http_reply_json(reply, 201, &body);
}

/*
 * Puts the canonical tar into the store and the skill into the registry, under the push lock:
 * what is refused leaves nothing. As of registry_skill_put.
 */
static int store_skill(struct daemon *d, struct objects_draft *draft, const struct skill *skill,
                       const char *digest, char **ret_existing, struct err *err)
{
    struct registry_skill known;
    bool name_known;
    bool new_object = false;
    int r =
        registry_skill_get(d->registry, skill->name, skill->version, &known, &name_known, err);

    if (r == 0 && strcmp(known.digest, digest) != 0) {
        *ret_existing = known.digest;
        known.digest = NULL;
        r = -EEXIST;
    }
    if (r == 0 || r == -EEXIST)
        registry_skill_finish(&known);
    if (r < 0 && r != -ENOENT)
        return r;
    r = objects_put(d->objects_fd, draft, digest, &new_object, err);
    if (r == 0)
        r = registry_skill_put(d->registry, skill->name, skill->version, digest,
                               skill->description, ret_existing, err);
    if (r < 0 && new_object)
        objects_remove(d->objects_fd, digest);
    return r;
}

static void register_skill(struct daemon *d, struct objects_draft *draft,
                           const struct skill *skill, const struct skill_archive *archive,
                           struct http_reply *reply)
{
    struct err err = {0};
    char *existing = NULL;
    int r;

    (void)pthread_mutex_lock(&d->push_lock);
    r = store_skill(d, draft, skill, archive->digest, &existing, &err);
    (void)pthread_mutex_unlock(&d->push_lock);
    if (r == -EEXIST)
        http_reply_error(reply, 409, "conflict",
                         "%s %s is registered already with other content (digest %.12s)",
                         skill->name, skill->version, existing);
    else if (r < 0)
        http_reply_error(reply, 500, "internal_error", "%s", err.message);
    else
        reply_registered(reply, skill, archive);
    free(existing);
}

void route_skill_push(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct spool *body = request->is_multipart ? &request->parts[0].content : &request->body;
    struct objects_draft draft = {.fd = -1};
    struct skill_archive archive;
    struct skill skill;
    struct err err = {0};
    int r;

    if (request->is_multipart && !request->parts[0].seen) {
        http_reply_error(reply, 400, "bad_request", "the part \"file\" is missing");
        return;
    }
    r = objects_draft_open(d->tmp_fd, &draft, &err);
    if (r < 0) {
        http_reply_error(reply, 500, "internal_error", "%s", err.message);
        return;
    }
    r = skills_ingest(&d->ingest_gate, body, draft.fd, &archive, &skill, &err);
    if (r < 0) {
        skills_reply_refused(reply, r, &err);
    } else {
        register_skill(d, &draft, &skill, &archive, reply);
        skill_archive_finish(&archive);
        skill_finish(&skill);
    }
    objects_draft_discard(&draft);
}
