/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/daemon.h"
#include "api/daemon/json_text.h"
#include "api/daemon/limits.h"
#include "api/daemon/objects.h"
#include "api/daemon/request.h"
#include "api/daemon/result.h"
#include "api/daemon/skills.h"
#include "api/daemon/sse.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Everything a POST builds before the execution is accepted. */
struct creation {
    struct daemon *daemon;
    struct request request;
    struct run_plan plan;
    struct skill skill;
    struct skill_archive archive;
    char *refusal; /* owned: accepted, but it cannot run */
};

static void creation_finish(struct creation *c)
{
    request_finish(&c->request);
    run_plan_finish(&c->plan);
    skill_finish(&c->skill);
    skill_archive_finish(&c->archive);
    free(c->refusal);
}

/* The replies of a step that failed; true when it did not. */
static bool step(struct http_reply *reply, int result, const struct err *err)
{
    switch (result) {
    case 0:
        return true;
    case -EINVAL:
        http_reply_error(reply, 400, "bad_request", "%s", err->message);
        return false;
    case -EFBIG:
    case -E2BIG:
        http_reply_error(reply, 413, "too_large", "%s", err->message);
        return false;
    default:
        http_reply_error(reply, 500, "internal_error", "%s",
                         err->code ? err->message : strerror(-result));
        return false;
    }
}

static bool set_names(struct run_plan *plan, const char *name, const char *version,
                      const char *digest, struct http_reply *reply)
{
    struct err err = {0};

    plan->skill_name = strdup(name);
    plan->skill_version = strdup(version);
    plan->skill_digest = strdup(digest);
    return step(reply,
                plan->skill_name && plan->skill_version && plan->skill_digest
                    ? 0
                    : err_set(&err, ENOMEM, "out of memory"),
                &err);
}

/* The skill that came with the request: checked, kept in a nameless file, never registered. */
static bool load_inline(struct creation *c, struct spool *upload, struct http_reply *reply)
{
    struct err err = {0};
    int r;

    c->plan.skill_fd = spool_open_nameless(c->daemon->tmp_fd);
    if (c->plan.skill_fd < 0)
        return step(reply, err_set_errno(&err, -c->plan.skill_fd, "cannot keep the skill"),
                    &err);
    r = skills_ingest(upload, c->plan.skill_fd, &c->archive, &c->skill, &err);
    if (r < 0) {
        skills_reply_refused(reply, r, &err);
        return false;
    }
    /* Nobody else will ever show them: this skill is not registered. */
    for (size_t i = 0; r == 0 && i < c->skill.warnings.len; i++)
        r = skill_strings_add(&c->plan.warnings, "%s", c->skill.warnings.items[i]);
    return step(reply, r, &err) &&
           set_names(&c->plan, c->skill.name, c->skill.version, c->archive.digest, reply);
}

/* Finds the row of a skill and opens its object, at one moment: both may be deleted. */
static int open_registered(struct creation *c, struct registry_skill *ret, bool *ret_name_known,
                           struct err *err)
{
    struct daemon *d = c->daemon;
    int r;

    (void)pthread_mutex_lock(&d->store_lock);
    r = registry_skill_get(d->registry, c->request.skill, c->request.version, ret,
                           ret_name_known, err);
    if (r == 0) {
        c->plan.skill_fd = objects_open(d->objects_fd, ret->digest, err);
        if (c->plan.skill_fd < 0) {
            c->plan.skill_fd = -1;
            registry_skill_finish(ret);
            r = -EIO;
        }
    }
    (void)pthread_mutex_unlock(&d->store_lock);
    return r;
}

/* A skill of the registry, by name and version. */
static bool load_registered(struct creation *c, struct http_reply *reply)
{
    const struct request *q = &c->request;
    struct registry_skill found;
    struct err err = {0};
    bool name_known = false;
    bool ok;
    int r = open_registered(c, &found, &name_known, &err);

    if (r == -ENOENT && !name_known) {
        http_reply_error(reply, 404, "not_found", "there is no skill named %s", q->skill);
        return false;
    }
    if (r == -ENOENT) {
        if (asprintf(&c->refusal, "skill %s has no version %s", q->skill, q->version) < 0) {
            c->refusal = NULL;
            return step(reply, err_set(&err, ENOMEM, "out of memory"), &err);
        }
        return set_names(&c->plan, q->skill, q->version, "", reply);
    }
    if (!step(reply, r == -EINVAL ? -EIO : r, &err))
        return false;
    ok = set_names(&c->plan, found.name, found.version, found.digest, reply);
    registry_skill_finish(&found);
    if (!ok)
        return false;
    r = skill_archive_reload(c->plan.skill_fd, c->plan.skill_digest, &c->archive, &c->skill,
                             &err);
    /* It was good when it was stored: whatever is wrong now is ours. */
    return step(reply, r < 0 ? -EIO : 0, &err);
}

/* Parses the request and completes the plan. False when *reply says why not. */
static bool prepare(struct creation *c, struct http_request *http, struct http_reply *reply)
{
    struct spool *json = http->is_multipart ? &http->parts[0].content : &http->body;
    struct spool *upload =
        http->is_multipart && http->parts[1].seen ? &http->parts[1].content : NULL;
    struct err err = {0};
    struct stat tar;
    const char *text = "{}";
    size_t len = 2;
    int r = 0;

    if (!http->is_multipart || http->parts[0].seen) {
        r = spool_view(json, &text);
        len = (size_t)json->size;
    }
    if (r == 0)
        r = request_parse(text, len, upload != NULL, &c->request, &err);
    if (!step(reply, r, &err))
        return false;
    if (!(upload ? load_inline(c, upload, reply) : load_registered(c, reply)))
        return false;
    if (c->refusal)
        return true;
    if (fstat(c->plan.skill_fd, &tar) < 0)
        return step(reply, err_set_errno(&err, EIO, "cannot read the skill"), &err);
    c->plan.skill_bytes = (uint64_t)tar.st_size;
    r = skills_plan(&c->skill, &c->archive, &c->request, &c->plan, &err);
    if (!step(reply, r, &err))
        return false;
    c->plan.has_input = c->request.has_input;
    c->plan.input_at = c->request.input_at;
    c->plan.input_bytes = c->request.input_bytes;
    if (c->plan.has_input) {
        c->plan.input = *json;
        *json = spool_init(-1, 0);
    }
    return true;
}

static void reply_result(struct http_reply *reply, struct execution *e)
{
    struct buf body = buf_init(SIZE_MAX / 2);

    if (!e->stored) {
        http_reply_error(reply, 500, "internal_error",
                         "execution %s ended, but its result could not be stored", e->id);
        return;
    }
    if (buf_append(&body, e->result.data, e->result.len) < 0 ||
        buf_append(&body, "\n", 1) < 0) {
        buf_finish(&body);
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    http_reply_json(reply, 200, &body);
}

static bool submit(struct creation *c, struct execution **ret, struct http_reply *reply)
{
    struct err err = {0};
    int r = c->refusal ? engine_refuse(c->daemon->engine, &c->plan, c->refusal, ret, &err)
                       : engine_submit(c->daemon->engine, &c->plan, ret, &err);

    if (r == -EBUSY) {
        http_reply_error(reply, 429, "overloaded", "%s", err.message);
        reply->retry_after_s = 1;
        return false;
    }
    if (r == -ESHUTDOWN) {
        http_reply_error(reply, 503, "stopping", "%s", err.message);
        return false;
    }
    return step(reply, r < 0 ? -EIO : 0, &err);
}

void route_execution_create(void *ctx, struct http_request *http, struct http_reply *reply)
{
    struct creation c = {.daemon = ctx, .plan = run_plan_init()};
    struct execution *e = NULL;
    bool accepted = prepare(&c, http, reply) && submit(&c, &e, reply);

    creation_finish(&c);
    if (!accepted)
        return;
    if (http->wants_events) {
        sse_reply(e, reply);
        return;
    }
    execution_wait(e);
    reply_result(reply, e);
    execution_unref(e);
}

/* The shape of a result, for an execution that has none yet. */
static void reply_unfinished(struct http_reply *reply, const struct registry_execution *row,
                             enum execution_state state)
{
    uint64_t now_ns = clock_realtime_ns();
    struct buf body;
    const struct result result = {
        .execution_id = row->id,
        .status = state == EXECUTION_ACCEPTED ? RESULT_ACCEPTED : RESULT_RUNNING,
        .skill = {row->skill_name, row->skill_version, row->skill_digest},
        .duration_ns = now_ns > row->accepted_ns ? now_ns - row->accepted_ns : 0,
    };

    if (result_write(&result, &body) < 0)
        http_reply_error(reply, 500, "internal_error", "out of memory");
    else
        http_reply_json(reply, 200, &body);
}

/* Finds the row of :id. False when *reply says why not. */
static bool find_row(struct daemon *d, const char *id, struct registry_execution *ret,
                     struct http_reply *reply)
{
    struct err err = {0};
    int r;

    if (!request_id_valid(id)) {
        http_reply_error(reply, 400, "bad_request", "%.64s is no execution id", id);
        return false;
    }
    r = registry_execution_get(d->registry, id, ret, &err);
    if (r == -ENOENT) {
        http_reply_error(reply, 404, "not_found", "there is no execution %s", id);
        return false;
    }
    return step(reply, r, &err);
}

void route_execution_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct registry_execution row;
    struct execution *e;
    enum execution_state state = EXECUTION_ACCEPTED;
    struct buf body = buf_init(SIZE_MAX / 2);

    /* Looked up before the row is read: what ends in between has its result in the row. */
    e = request_id_valid(request->params[0]) ? engine_find(d->engine, request->params[0])
                                             : NULL;
    if (e) {
        state = execution_get_state(e);
        execution_unref(e);
    }
    if (!find_row(d, request->params[0], &row, reply))
        return;
    if (!row.result)
        reply_unfinished(reply, &row, state);
    else if (buf_append(&body, row.result, strlen(row.result)) < 0 ||
             buf_append(&body, "\n", 1) < 0)
        http_reply_error(reply, 500, "internal_error", "out of memory");
    else
        http_reply_json(reply, 200, &body);
    buf_finish(&body);
    registry_execution_finish(&row);
}

void route_execution_cancel(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct registry_execution row;
    struct execution *e;
    struct buf body = buf_init(256);

    if (!find_row(d, request->params[0], &row, reply))
        return;
    registry_execution_finish(&row);
    e = engine_find(d->engine, request->params[0]);
    if (!e || execution_get_state(e) == EXECUTION_ENDED) {
        execution_unref(e);
        buf_finish(&body);
        http_reply_error(reply, 409, "conflict", "execution %s has ended already",
                         request->params[0]);
        return;
    }
    execution_cancel(e);
    execution_unref(e);
    (void)buf_printf(&body, "{\"execution_id\":\"%s\",\"status\":\"cancelling\"}\n",
                     request->params[0]);
    http_reply_json(reply, 202, &body);
}

void route_execution_files(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct registry_execution row;
    _cleanup_fd_ int dir = -1;
    _cleanup_fd_ int fd = -1;
    struct stat st;
    bool ended;

    if (!find_row(d, request->params[0], &row, reply))
        return;
    ended = row.result != NULL;
    registry_execution_finish(&row);
    if (ended)
        dir = openat(d->artifacts_fd, request->params[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        fd = openat(dir, "files.tar.gz", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        http_reply_error(reply, 404, "not_found",
                         ended ? "execution %s left no files"
                               : "execution %s has not ended yet",
                         request->params[0]);
        return;
    }
    reply->status = 200;
    reply->content_type = "application/gzip";
    reply->file_name = "files.tar.gz";
    reply->file_bytes = (uint64_t)st.st_size;
    reply->file_fd = fd_steal(&fd);
}
