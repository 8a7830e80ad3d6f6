/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/held.h"
#include "api/daemon/machine/skill_disk.h"
#include "api/daemon/routes/chooser.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/execution_reply.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/holding.h"
#include "api/daemon/routes/inputs.h"
#include "api/daemon/routes/intake.h"
#include "api/daemon/routes/lookup.h"
#include "api/daemon/routes/placement.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RETRY_DRAINING_S 5u

/* Everything a POST builds before the execution is accepted. */
struct creation {
    struct daemon *daemon;
    const char *tenant;                  /* borrowed of the request */
    const struct execution_given *given; /* by another node; NULL: it is of this one */
    const char *said; /* what an idempotency key belongs to; NULL: the JSON of the request */
    size_t said_len;
    struct request request;
    char request_digest[SHA256_HEX_SIZE]; /* with a key: of all that the request says */
    struct execution *e;                  /* the draft, once there is one; a reference */
    struct skill skill;
    struct skill_archive archive;
    struct turn turn;               /* while the archive of a large registered skill is there */
    char packages[SHA256_HEX_SIZE]; /* the digest of what its wheels hold; "": none */
    bool is_doubtful;               /* another node may have accepted it */
    char *refusal;                  /* owned: accepted, but it cannot run */
    char *repeated; /* owned: the id of the execution that this request began before */
};

static void forget_archive(struct creation *c)
{
    skill_archive_finish(&c->archive);
    turn_end(&c->turn);
}

static void creation_finish(struct creation *c)
{
    request_finish(&c->request);
    engine_leave_turn(c->daemon->engine, c->e);
    execution_unref(c->e);
    skill_finish(&c->skill);
    forget_archive(c);
    free(c->refusal);
    free(c->repeated);
}

/* The replies of what the engine does not accept; true when it did. */
static bool check_admission(const struct creation *c, struct http_reply *reply, int result,
                            const struct refusal *refusal, const struct err *err)
{
    switch (result) {
    case -EBUSY:
        http_reply_error(reply, 429, refusal->code, "%s", err->message);
        reply->retry_after_s = refusal->retry_after_s;
        return false;
    case -EADDRINUSE:
        metrics_count_session_conflict(c->daemon->metrics);
        return failure_or_true(reply, result, err);
    case -ENOENT:
        return http_reply_error(reply, 401, "unauthorized", "%s", err->message);
    case -EAGAIN:
    case -ESHUTDOWN:
        return failure_reply(reply, result, err);
    case -EHOSTDOWN:
        http_reply_error(reply, 503, "draining", "%s", err->message);
        reply->retry_after_s = RETRY_DRAINING_S;
        return false;
    default:
        return failure_or_true(reply, result < 0 ? -EIO : 0, err);
    }
}

static bool set_skill(struct execution *e, const char *name, const char *version,
                      const char *digest, struct http_reply *reply)
{
    struct err err = {0};
    int r = execution_set_skill(e, name, version, digest);

    return failure_or_true(reply, r < 0 ? err_no_memory(&err) : 0, &err);
}

static bool begin_tar(struct creation *c, struct http_reply *reply)
{
    struct err err = {0};

    c->e->job.skill.fd = store_temporary(c->daemon->store);
    if (c->e->job.skill.fd >= 0)
        return true;
    (void)err_set_errno(&err, -c->e->job.skill.fd, "cannot keep the skill");
    return failure_or_true(reply, -EIO, &err);
}

/* The skill that came with the request: checked, kept in a nameless file, never registered. */
static bool load_inline(struct creation *c, struct http_request *http, struct spool *upload,
                        struct http_reply *reply)
{
    _cleanup_intake_packages_ struct intake_packages packages = INTAKE_NO_PACKAGES;
    struct image_choice ignored; /* it is asked for again, as of every execution */
    struct err err = {0};

    if (!begin_tar(c, reply) ||
        !intake_archive(c->daemon, http, upload, c->e->job.skill.fd, c->request.image,
                        &c->archive, &c->skill, &ignored, &packages, reply))
        return false;
    c->e->job.packages.fd = fd_steal(&packages.fd);
    c->e->job.packages.len = packages.layer.bytes;
    memcpy(c->packages, packages.layer.digest, sizeof(c->packages));
    c->e->packages = steal_ptr(&packages.layer.packages);
    c->e->packages_python = packages.layer.python_minor;
    /* Nobody else will ever show them: this skill is not registered. */
    return failure_or_true(reply, skill_strings_append(&c->e->warnings, &c->skill.warnings),
                           &err) &&
           set_skill(c->e, c->skill.name, c->skill.version, c->archive.digest, reply);
}

/* Code: a skill of its own without a name, of which nothing but its digest is told. */
static bool load_code(struct creation *c, struct http_request *http, struct http_reply *reply)
{
    struct err err = {0};

    return begin_tar(c, reply) &&
           intake_code(c->daemon, http, &c->request, c->e->job.skill.fd, &c->archive, &c->skill,
                       reply) &&
           failure_or_true(reply, skill_strings_append(&c->e->warnings, &c->skill.warnings),
                           &err) &&
           set_skill(c->e, "", "", c->archive.digest, reply);
}

static int open_objects(struct creation *c, const struct registry_skill *row, struct err *err)
{
    int r = objects_open(c->daemon->objects, row->digest, &c->e->job.skill, err);

    /* Of a row before. */
    free(c->e->packages);
    c->e->packages = NULL;
    c->e->packages_python = 0;
    c->packages[0] = '\0';
    if (r < 0 || !row->packages)
        return r;
    c->e->packages_python = row->packages_python;
    c->e->packages = strdup(row->packages);
    if (!c->e->packages)
        return err_no_memory(err);
    if (!row->packages_digest)
        return 0;
    (void)snprintf(c->packages, sizeof(c->packages), "%s", row->packages_digest);
    return objects_open(c->daemon->objects, row->packages_digest, &c->e->job.packages, err);
}

/*
 * Finds the row of a skill and opens its objects. Where these are gone another row may have
 * taken its place.
 */
static int open_registered(struct creation *c, struct registry_skill *ret, bool *ret_name_known,
                           struct err *err)
{
    for (unsigned tries = 1;; tries++) {
        int r = registry_skill_get(c->daemon->registry, c->e->tenant, c->request.skill,
                                   c->request.version, ret, ret_name_known, err);

        if (r < 0)
            return r;
        r = open_objects(c, ret, err);
        if (r != -ENOENT || tries == SKILL_OPEN_TRIES)
            return r == -ENOENT ? -EIO : r;
        registry_skill_finish(ret);
        *err = (struct err){0};
    }
}

/* Few bytes are not counted, as of a body. */
static int hold_head(void *ctx, uint64_t bytes, struct err *err)
{
    return bytes <= SPOOL_MEMORY_MAX || http_request_hold(ctx, bytes)
               ? 0
               : err_set(err, EDQUOT, "there is no room for its head");
}

/*
 * Where there is no disk the skill is sent, which is slower and shows the same. False: who has
 * no room for one has said so.
 */
static bool put_on_disk(struct creation *c, struct http_request *http,
                        const struct http_reply *reply)
{
    struct job *job = &c->e->job;
    struct archive_spool spool = {-1, hold_head, http};
    struct err err = {0};
    int r;

    if (!skill_disk_pays(job))
        return true;
    spool.fd = store_temporary(c->daemon->store);
    r = spool.fd < 0 ? err_set_errno(&err, -spool.fd, "no file for it")
                     : skill_disk_make(job, &c->archive, &spool, &err);
    fd_close(&spool.fd);
    if (r < 0)
        log_warn("engine", "skill=%s disk=none reason=\"%s\"", c->e->skill_digest, err.message);
    return reply->status == 0;
}

/* Whoever removes it meanwhile. */
static int use_registered(const struct creation *c, struct err *err)
{
    const struct job *job = &c->e->job;
    int r = holding_use(c->e, job->skill.fd, "", err);

    return r < 0 || job->packages.fd < 0 ? r : holding_use(c->e, job->packages.fd, "", err);
}

/* A skill of the registry, by name and version. */
static bool load_registered(struct creation *c, struct http_reply *reply)
{
    const struct request *q = &c->request;
    _cleanup_registry_skill_ struct registry_skill found = {0};
    struct err err = {0};
    bool name_known = false;
    int r = open_registered(c, &found, &name_known, &err);

    if (r == -ENOENT && !q->version)
        return http_reply_error(reply, 404, "not_found", "there is no skill named %s",
                                q->skill);
    /* Skillbox accepts what names a version, and so does its example suite. */
    if (r == -ENOENT) {
        if (asprintf(&c->refusal,
                     name_known ? "skill %s has no version %s"
                                : "there is no skill named %s, nor its version %s",
                     q->skill, q->version) < 0) {
            c->refusal = NULL;
            return failure_or_true(reply, err_no_memory(&err), &err);
        }
        return set_skill(c->e, q->skill, q->version, "", reply);
    }
    if (r < 0)
        return failure_reply(reply, r, &err);
    r = use_registered(c, &err);
    if (r < 0)
        return failure_reply(reply, r, &err);
    /* Of another node's there are no more at once than threads that take them. */
    if (c->e->job.skill.len > TURN_SKILL_BYTES && !c->given)
        r = turn_take(&c->turn, c->daemon, TURN_PREPARE, c->tenant, &err);
    if (r < 0)
        return failure_reply(reply, r, &err);
    /* It was good when it was stored: whatever is wrong now is ours. */
    r = skill_archive_reload(c->e->job.skill.fd, found.digest, &c->archive, &c->skill, &err);
    return failure_or_true(reply, r < 0 ? -EIO : 0, &err) &&
           set_skill(c->e, found.name, found.version, found.digest, reply);
}

static bool load(struct creation *c, struct http_request *http, struct spool *upload,
                 struct http_reply *reply)
{
    if (upload)
        return load_inline(c, http, upload, reply);
    return c->request.code ? load_code(c, http, reply) : load_registered(c, reply);
}

/* The digest of all that the request says: its JSON and its archive, byte for byte. */
static int digest_request(const char *text, size_t len, struct spool *upload,
                          char ret[SHA256_HEX_SIZE])
{
    char parts[2 * SHA256_HEX_SIZE] = "";
    int fd = upload ? spool_to_fd(upload) : -1;
    int r = upload && fd < 0 ? fd : sha256_of(text, len, parts);

    if (r == 0 && upload)
        r = sha256_of_fd(fd, parts + strlen(parts));
    return r < 0 ? r : sha256_of(parts, strlen(parts), ret);
}

/*
 * Looks whether an execution was accepted under this request's key: then it is the answer.
 * False when *reply says why not.
 */
static bool find_repeated(struct creation *c, struct http_reply *reply)
{
    struct err err = {0};
    _cleanup_free_ char *digest = NULL;
    int r = registry_execution_by_key(c->daemon->registry, c->tenant,
                                      c->request.idempotency_key, &c->repeated, &digest, &err);

    if (r == -ENOENT)
        return true;
    if (r < 0)
        return failure_or_true(reply, -EIO, &err);
    return strcmp(digest, c->request_digest) == 0 ||
           http_reply_error(reply, 409, "conflict",
                            "the idempotency key belongs to %s, which another request began: "
                            "use another key",
                            c->repeated);
}

/* What the key of a request means, if it has one. False when *reply says why not. */
static bool check_key(struct creation *c, const char *text, size_t len, struct spool *upload,
                      struct http_reply *reply)
{
    struct err err = {0};
    int r;

    if (!c->request.idempotency_key)
        return true;
    /* Whoever sent it looked. */
    if (c->given) {
        (void)snprintf(c->request_digest, sizeof(c->request_digest), "%s", c->given->digest);
        return true;
    }
    r = digest_request(c->said ? c->said : text, c->said ? c->said_len : len, upload,
                       c->request_digest);
    return failure_or_true(reply, r < 0 ? -EIO : 0, &err) && find_repeated(c, reply);
}

/* Another process accepted it, and did not begin it. */
static bool adopt_draft(struct creation *c, struct http_reply *reply)
{
    struct err err = {0};
    int r = quota_limits(c->daemon->registry, c->tenant, &c->e->limits, &err);

    c->e->admitted = true;
    c->e->is_taken = true;
    c->e->accepted_ns = c->given->accepted_ns;
    c->e->retries = c->given->retries;
    if (c->e->retries < c->request.retries && r == 0 &&
        skill_warn(&c->e->warnings,
                   "a node was lost while this ran there: it was begun again from the start") <
            0)
        r = err_no_memory(&err);
    return failure_or_true(reply, r, &err);
}

/* Makes the draft, and looks whether its tenant may begin an execution now. */
static bool begin_draft(struct creation *c, struct http_reply *reply)
{
    const char *key = c->request.idempotency_key;
    struct refusal refusal = {0};
    struct err err = {0};

    c->e = execution_create(c->tenant, &err);
    if (!c->e)
        return failure_or_true(reply, -ENOMEM, &err);
    if (holding_begin(c->daemon, c->e, &err) < 0)
        return failure_or_true(reply, -ENOMEM, &err);
    if (c->given)
        (void)snprintf(c->e->id, sizeof(c->e->id), "%s", c->given->id);
    c->e->is_given = c->given != NULL;
    c->e->retries = c->request.retries;
    c->e->session = steal_ptr(&c->request.session);
    if (key && !c->given && c->daemon->ledger && ledger_id_of_key(c->tenant, key, c->e->id) < 0)
        return failure_or_true(reply, -EIO, &err);
    if (key) {
        c->e->idempotency_key = strdup(key);
        c->e->request_digest = strdup(c->request_digest);
        if (!c->e->idempotency_key || !c->e->request_digest)
            return failure_or_true(reply, err_no_memory(&err), &err);
    }
    /* What was admitted once is, with the limits that its tenant has now. */
    if (c->given && c->given->accepted_ns > 0)
        return adopt_draft(c, reply);
    return check_admission(c, reply, engine_admit(c->daemon->engine, c->e, &refusal, &err),
                           &refusal, &err);
}

/* Makes the body of the request what a JSON string in it stands for. */
static int keep_text(struct spool *json, struct json_slice string)
{
    _cleanup_buf_ struct buf text = buf_init(LIMIT_INPUT_BYTES);
    struct spool kept = spool_init(json->dir_fd, LIMIT_INPUT_BYTES);
    int r = json_append_decoded(&text, string);

    if (r < 0)
        return r;
    r = spool_append(&kept, text.data, text.len);
    if (r < 0) {
        spool_finish(&kept);
        return r;
    }
    spool_finish(json);
    *json = kept;
    return 0;
}

/*
 * Moves the input from the body of the request to the job: it stays in its place there, unless
 * it is text. *ret_bytes gets what stays held of the body, or of the list of input files that
 * was made of it.
 */
static int take_input(struct creation *c, struct spool *json, const char *body,
                      uint64_t *ret_bytes)
{
    struct job_bytes *input = &c->e->job.input;
    const struct request *q = &c->request;

    *ret_bytes = q->n_files > 0 ? json->size : 0;
    if (!q->has_input)
        return 0;
    input->at = q->input_at;
    input->len = q->input_bytes;
    if (q->input_is_text) {
        int r = keep_text(json, (struct json_slice){body + q->input_at, q->input_bytes});

        if (r < 0)
            return r;
        input->at = 0;
        input->len = json->size;
    }
    *ret_bytes = json->size;
    spool_release(json, &input->fd, &input->memory);
    return 0;
}

/* What runs, and where. False when *reply says why not. */
static bool plan(struct creation *c, struct http_reply *reply)
{
    const struct chooser_packages packages = {c->packages, c->e->job.packages.fd,
                                              c->e->packages, (unsigned)c->e->packages_python};
    const struct chooser_source source = {&c->skill, &c->archive, c->e->job.skill.fd, &packages,
                                          c->turn.gate != NULL};
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    struct err err = {0};
    int r = intake_entry(&c->skill, &c->archive, &c->request, &entry, &err);

    if (!failure_or_true(reply, r, &err) ||
        !chooser_choose(c->daemon, &source, entry.lang, c->request.image, c->e, reply))
        return false;
    r = intake_plan(c->daemon, &c->skill, &c->archive, &c->request, &entry, c->e, &err);
    return failure_or_true(reply, r, &err);
}

/* Here, or where there is room. False when *reply says why not. */
static bool place(struct creation *c, struct http_request *http, const char *text, size_t len,
                  struct http_reply *reply)
{
    const struct placement_wish wish = {
        .request = &c->request, .digest = c->request_digest, .text = text, .len = len};
    struct err err = {0};

    switch (placement_choose(c->daemon, http, &wish, c->e, reply)) {
    case PLACEMENT_DOUBTFUL:
        c->is_doubtful = true;
        return true;
    case PLACEMENT_ELSEWHERE:
        c->repeated = strdup(c->e->id);
        return failure_or_true(reply, c->repeated ? 0 : err_no_memory(&err), &err);
    case PLACEMENT_FAILED:
        return false;
    default:
        return true;
    }
}

/* Parses the request and completes the draft. False when *reply says why not. */
static bool prepare(struct creation *c, struct http_request *http, struct http_reply *reply)
{
    struct spool *json = http->is_multipart ? &http->parts[0].content : &http->body;
    struct spool *upload =
        http->is_multipart && http->parts[1].seen ? &http->parts[1].content : NULL;
    struct err err = {0};
    struct stat tar;
    const char *text = "{}";
    size_t len = 2;
    uint64_t own, files = 0;
    int r = 0;

    c->tenant = http->caller.tenant;
    if (!http->is_multipart || http->parts[0].seen) {
        r = spool_view(json, &text);
        len = (size_t)json->size;
    }
    if (!failure_or_true(reply, r, &err) ||
        !failure_or_true(reply, request_parse(text, len, upload != NULL, &c->request, &err),
                         &err) ||
        !check_key(c, text, len, upload, reply))
        return false;
    if (c->repeated)
        return true;
    /* Before an archive is looked at. */
    if (!held_admit(c->daemon->held, 0, reply) || !begin_draft(c, reply))
        return false;
    if (!load(c, http, upload, reply))
        return false;
    if (c->refusal)
        return true;
    if (fstat(c->e->job.skill.fd, &tar) < 0)
        return failure_or_true(reply, err_set_errno(&err, EIO, "cannot read the skill"), &err);
    c->e->fresh = c->request.is_fresh;
    c->e->job.has_session = c->e->session;
    c->e->job.skill.len = (uint64_t)tar.st_size;
    if ((!c->request.code && !put_on_disk(c, http, reply)) || !plan(c, reply))
        return false;
    forget_archive(c); /* what follows may wait for others */
    r = inputs_open(c->daemon, http, &c->request, text, c->e, &files, &err);
    /* Who has no room for them has said so. */
    if (reply->status != 0 || !failure_or_true(reply, r, &err))
        return false;
    if (!upload && !place(c, http, text, len, reply))
        return false;
    if (c->repeated)
        return true;
    /* What only this execution has: it may wait for long after the request is over. */
    r = take_input(c, json, text, &own);
    if (r < 0)
        return failure_or_true(reply, err_set_errno(&err, -r, "cannot keep the input"), &err);
    own += files + c->e->job.disk.len + c->e->request.text.len +
           (upload || c->request.code ? c->e->job.skill.len + c->e->job.packages.len : 0);
    holding_keep(c->e, http_request_hand_over(http, own));
    return true;
}

static bool submit(struct creation *c, struct http_reply *reply)
{
    struct err err = {0};
    struct refusal refusal = {0};
    int r = c->refusal ? engine_refuse(c->daemon->engine, c->e, c->refusal, &refusal, &err)
                       : engine_submit(c->daemon->engine, c->e, &refusal, &err);

    /* Another request with the same key was quicker. */
    if ((r == -EEXIST || r == -EADDRINUSE) && c->request.idempotency_key && !c->given &&
        !find_repeated(c, reply))
        return false;
    if (c->repeated)
        return true;
    /* One that was asked to take it did so, and its answer was lost. */
    if (r == -EEXIST && !c->request.idempotency_key && !c->given) {
        c->repeated = strdup(c->e->id);
        return failure_or_true(reply, c->repeated ? 0 : err_no_memory(&err), &err);
    }
    if (r < 0 && c->is_doubtful)
        return placement_refuse(c->e, reply);
    return check_admission(c, reply, r, &refusal, &err);
}

void execution_answer(struct daemon *d, struct http_request *http, const char *said,
                      size_t said_len, struct http_reply *reply)
{
    struct creation c = {.daemon = d, .said = said, .said_len = said_len};
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct execution *e = NULL;
    bool accepted = prepare(&c, http, reply) && (c.repeated || submit(&c, reply));
    bool is_async = c.request.is_async;

    if (accepted && c.repeated)
        accepted = lookup_execution(d, c.tenant, c.repeated, &e, &row, reply);
    else if (accepted)
        e = execution_ref(c.e);
    creation_finish(&c);
    if (accepted && e)
        execution_reply(d, http, reply, e, is_async);
    else if (accepted)
        execution_reply_row(d, http, reply, &row, is_async);
}

bool execution_take(struct daemon *d, struct http_request *http,
                    const struct execution_given *given, struct http_reply *reply)
{
    struct creation c = {.daemon = d, .given = given};
    bool accepted = prepare(&c, http, reply);

    /* Who had it may run it all the same. */
    if (accepted && c.refusal && given->accepted_ns > 0)
        accepted = http_reply_error(reply, 404, "not_found", "%s", c.refusal);
    accepted = accepted && submit(&c, reply);
    creation_finish(&c);
    return accepted;
}

void route_execution_create(void *ctx, struct http_request *http, struct http_reply *reply)
{
    if (http_request_receive(http))
        execution_answer(ctx, http, NULL, 0, reply);
}
