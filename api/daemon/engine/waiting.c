/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/waiting.h"

#include "api/daemon/engine/lost.h"
#include "api/json/json_text.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int send(const struct waiting_place *place, const char *text, size_t len,
                const char *digest, struct err *err)
{
    _cleanup_fd_ int fd = store_temporary(place->store);
    const struct objects_put put = {.tenant = place->tenant,
                                    .kept = CLUSTER_OF_EXECUTIONS,
                                    .wait_ns = OBJECTS_SOON_NS,
                                    .digest = digest,
                                    .fd = fd};
    int r = fd < 0 ? fd : fd_pwrite_full(fd, text, len, 0);

    return r < 0 ? err_set_errno(err, -r, "cannot keep a request")
                 : objects_send(place->objects, &put, err);
}

int waiting_keep(const struct waiting_place *place, const char *image, const char *text,
                 size_t len, struct waiting_request *ret, struct err *err)
{
    int r;

    *ret = (struct waiting_request){.text = buf_init(RECORD_REQUEST_MAX)};
    (void)snprintf(ret->image, sizeof(ret->image), "%s", image);
    r = json_append_string(&ret->text, text, len);
    if (r == 0)
        return 0;
    buf_finish(&ret->text);
    if (r != -E2BIG)
        return err_no_memory(err);
    r = sha256_of(text, len, ret->object);
    return r < 0 ? err_set_errno(err, -r, "cannot read a request")
                 : send(place, text, len, ret->object, err);
}

void waiting_add(const struct waiting_request *request, struct record *record)
{
    record->waits = true;
    record->retries = request->retries;
    record->request = request->object[0] ? NULL : (const char *)request->text.data;
    record->request_bytes = request->text.len;
    memcpy(record->request_object, request->object, sizeof(record->request_object));
    memcpy(record->request_image, request->image, sizeof(record->request_image));
}

/* No row names it: it is not read as other objects are, and not kept. 0, -EREMOTEIO where they
 * do not have it, or -errno. */
static int fetch(const struct waiting_env *env, const char *digest, int fd, struct err *err)
{
    char found[SHA256_HEX_SIZE];
    int r = cluster_object_get(env->cluster, CLUSTER_OF_EXECUTIONS, digest, LIMIT_REQUEST_BYTES,
                               fd, err);

    if (r < 0)
        return r;
    r = sha256_of_fd(fd, found);
    return r == 0 && strcmp(found, digest) == 0
               ? 0
               : err_set(err, EREMOTEIO, "its request is another one at the servers");
}

static int read_object(const struct waiting_env *env, const char *digest, struct buf *ret,
                       struct err *err)
{
    _cleanup_fd_ int fd = store_temporary(env->store);
    struct stat st;
    int r = fd < 0 ? err_set_errno(err, -fd, "no file for its request")
                   : fetch(env, digest, fd, err);

    if (r < 0)
        return r == -EREMOTEIO ? r : -EAGAIN;
    if (fstat(fd, &st) < 0 || buf_reserve(ret, (size_t)st.st_size) < 0 ||
        fd_pread_full(fd, ret->data, (size_t)st.st_size, 0) != st.st_size)
        return err_set(err, EAGAIN, "its request cannot be read");
    ret->len = (size_t)st.st_size;
    return 0;
}

static int read_request(const struct waiting_env *env, const struct record *record,
                        struct buf *ret, struct err *err)
{
    const struct json_slice text = {.data = record->request, .len = record->request_bytes};

    if (record->request_object[0])
        return read_object(env, record->request_object, ret, err);
    return json_append_decoded(ret, text) < 0 ? err_set(err, EIO, "its request cannot be read")
                                              : 0;
}

static int resume(const struct waiting_env *env, const struct record *record, bool is_lost,
                  struct err *err)
{
    _cleanup_buf_ struct buf request = buf_init(LIMIT_REQUEST_BYTES);
    int r = read_request(env, record, &request, err);

    return r < 0 ? r
                 : env->resume(env->resume_ctx, record, is_lost, buf_cstr(&request),
                               request.len, err);
}

/* Nobody runs it any more. */
static int give_up(const struct waiting_env *env, const struct record *record, const char *why,
                   struct err *err)
{
    char reason[ERR_MESSAGE_MAX];
    int r;

    (void)snprintf(
        reason, sizeof(reason),
        "the node %.64s had this execution and was not known to run it, and no other "
        "runs it: %.256s",
        record->node, why);
    r = lost_tell(env->registry, env->cluster, record, reason, NULL, err);
    log_warn("ledger", "execution=%s lost=\"%s\"", record->id, reason);
    return r == -EAGAIN ? r : 0;
}

/* The servers have no record of it: who had it may have, or this node alone. */
static int give_up_row(const struct waiting_env *env, const char *id, struct err *err)
{
    struct record record;
    int r = registry_record_other(env->registry, id, &record, err);

    return r < 0 ? r : give_up(env, &record, "the servers lost its request", err);
}

/* As the servers say of it. What is about to be this process's own is not passed on. */
static int believe(const struct waiting_env *env, const struct record *theirs, struct err *err)
{
    struct record ours = {0};
    int r;

    cluster_sign_record(env->cluster, &ours);
    if (!theirs->status[0] && record_is_of_same(theirs, &ours))
        return 0;
    r = registry_record_believe(env->registry, theirs, err);

    return r < 0 ? r : -ENOENT;
}

void waiting_doubt(struct waiting_env *env, const char *id)
{
    if (env->n_doubts < WAITING_DOUBTS)
        (void)snprintf(env->doubts[env->n_doubts++], RECORD_ID_SIZE, "%s", id);
    else
        log_error("ledger", "execution=%s is=\"nobody's\" reason=\"too many are\"", id);
}

/* It may be this process's: looked at later. */
static int doubt(struct waiting_env *env, const char *id, int r)
{
    waiting_doubt(env, id);
    return r;
}

/* Whether nobody can begin one that could not be begun here. */
static bool is_hopeless(struct waiting_env *env, const char *id, int r)
{
    unsigned failures = pauses_note(&env->pauses, id, r != -EBUSY, clock_monotonic_ns());

    return (r != -EBUSY && r != -EAGAIN) || (r == -EAGAIN && failures >= WAITING_FAILURES);
}

/* What cannot be begun here fails, or waits where it did. */
static int leave_claimed(struct waiting_env *env, const struct record *record, bool is_over,
                         const char *why, struct err *err)
{
    struct record ours = *record;
    int r;

    if (!is_over) {
        log_info("ledger", "execution=%s of=%s not_taken_over=\"%s\"", record->id, record->node,
                 why);
        r = cluster_record_put_back(env->cluster, record, err);
        return r == -EAGAIN ? doubt(env, record->id, r) : -EBUSY;
    }
    pauses_forget(&env->pauses, record->id);
    cluster_sign_record(env->cluster, &ours);
    r = give_up(env, &ours, why, err);
    return r < 0 ? doubt(env, record->id, r) : 0;
}

/*
 * What is this process's now is run. Who gives one away has what it needs, whatever can be read
 * here.
 */
static int run_claimed(struct waiting_env *env, const struct record *record, bool is_lost,
                       struct err *err)
{
    struct err why = {0};
    int r = cluster_record_is_ours(env->cluster, record->id, err);

    if (r < 0)
        return r == -EAGAIN ? doubt(env, record->id, r) : r;
    r = resume(env, record, is_lost, &why);
    if (r == 0) {
        pauses_forget(&env->pauses, record->id);
        return 0;
    }
    return leave_claimed(env, record, is_hopeless(env, record->id, r) && is_lost, why.message,
                         err);
}

static bool is_here(const struct waiting_env *env, const char *id)
{
    _cleanup_free_ char *unused = NULL;
    struct record record;

    return registry_record_get(env->registry, id, &record, &unused, NULL) == 0;
}

/* What a claim found, with the record as it was. */
static int see_to(struct waiting_env *env, int claimed, const struct record *record,
                  bool is_lost, struct err *err)
{
    switch (claimed) {
    case 0:
        return run_claimed(env, record, is_lost, err);
    case -EOWNERDEAD:
        return give_up(env, record, "it may have begun, or was to be cancelled", err);
    case -EEXIST:
        return believe(env, record, err);
    case -ENODATA:
        return give_up_row(env, record->id, err);
    case -EAGAIN:
        return doubt(env, record->id, claimed);
    default:
        return claimed;
    }
}

int waiting_take_over(struct waiting_env *env, const char *id,
                      const struct registry_process *process, bool is_lost, struct err *err)
{
    struct record_copy copy = {0};
    int r;

    /* Who asks again did not hear that it was taken. */
    if (is_here(env, id))
        return 0;
    if (pauses_hold(&env->pauses, id, clock_monotonic_ns()))
        return -ENOTSUP;
    r = cluster_record_claim(env->cluster, id, process->node, process->instance, is_lost, &copy,
                             err);
    (void)snprintf(copy.record.id, sizeof(copy.record.id), "%s", id);
    r = see_to(env, r, &copy.record, is_lost, err);
    record_copy_finish(&copy);
    return r;
}

int waiting_check(const struct waiting_env *env, const char *id,
                  const struct registry_process *process, struct err *err)
{
    struct record_copy copy = {0};
    int r = cluster_record_read(env->cluster, id, &copy, err);
    bool is_so = r == 0 && !copy.record.status[0] &&
                 strcmp(copy.record.node, process->node) == 0 &&
                 strcmp(copy.record.instance, process->instance) == 0;

    if (r == 0 && !is_so) {
        int believed = believe(env, &copy.record, err);

        if (believed == -ENOENT)
            log_warn("ledger", "execution=%s was=missed", id);
        else if (believed == 0 && !is_here(env, id))
            r = -EOWNERDEAD;
    }
    record_copy_finish(&copy);
    return r;
}

/* It waits at a process that never was, so that whoever has room takes it over. */
static int leave_to_all(const struct waiting_env *env, const struct record *record,
                        struct err *err)
{
    struct record left = *record;

    memset(left.instance, '0', sizeof(left.instance) - 1);
    log_info("ledger", "execution=%s left=\"to all nodes\"", left.id);
    return cluster_record_put_back(env->cluster, &left, err);
}

/* True where there is nothing more to say of it. */
static bool settle_one(const struct waiting_env *env, const char *id)
{
    struct record_copy copy = {0};
    struct err err = {0};
    int r = is_here(env, id)
                ? 0
                : cluster_record_claim(env->cluster, id, "", "", false, &copy, &err);

    if (r == -EOWNERDEAD && copy.record.waits && !copy.record.is_cancelled)
        r = leave_to_all(env, &copy.record, &err);
    else if (r == -EOWNERDEAD)
        r = give_up(env, &copy.record, "it was not confirmed that this node has it", &err);
    record_copy_finish(&copy);
    return r != -EAGAIN;
}

void waiting_settle(struct waiting_env *env)
{
    size_t n = 0;

    for (size_t i = 0; i < env->n_doubts; i++) {
        if (!settle_one(env, env->doubts[i]))
            memmove(env->doubts[n++], env->doubts[i], RECORD_ID_SIZE);
    }
    env->n_doubts = n;
}
