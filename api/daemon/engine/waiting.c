/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/waiting.h"

#include "api/daemon/engine/lost.h"
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

static int send(struct store *store, struct objects *objects, const char *text, size_t len,
                const char *digest, struct err *err)
{
    _cleanup_fd_ int fd = store_temporary(store);
    int r = fd < 0 ? fd : fd_pwrite_full(fd, text, len, 0);

    return r < 0 ? err_set_errno(err, -r, "cannot keep a request")
                 : objects_send(objects, CLUSTER_OF_EXECUTIONS, digest, fd, err);
}

int waiting_keep(struct store *store, struct objects *objects, const char *text, size_t len,
                 struct waiting_request *ret, struct err *err)
{
    int r;

    *ret = (struct waiting_request){.text = buf_init(RECORD_REQUEST_MAX)};
    r = json_append_string(&ret->text, text, len);
    if (r == 0)
        return 0;
    buf_finish(&ret->text);
    if (r != -E2BIG)
        return err_no_memory(err);
    r = sha256_of(text, len, ret->object);
    return r < 0 ? err_set_errno(err, -r, "cannot read a request")
                 : send(store, objects, text, len, ret->object, err);
}

void waiting_add(const struct waiting_request *request, struct record *record)
{
    record->waits = true;
    record->request = request->object[0] ? NULL : (const char *)request->text.data;
    record->request_bytes = request->text.len;
    memcpy(record->request_object, request->object, sizeof(record->request_object));
}

/* No row names it: it is not read as other objects are, and not kept. */
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
               : err_set(err, EIO, "its request is another one at the servers");
}

static int read_object(const struct waiting_env *env, const char *digest, struct buf *ret,
                       struct err *err)
{
    _cleanup_fd_ int fd = store_temporary(env->store);
    struct stat st;
    int r = fd < 0 ? err_set_errno(err, -fd, "no file for its request")
                   : fetch(env, digest, fd, err);

    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0 || buf_reserve(ret, (size_t)st.st_size) < 0 ||
        fd_pread_full(fd, ret->data, (size_t)st.st_size, 0) != st.st_size)
        return err_set(err, EIO, "its request cannot be read");
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

static int resume(const struct waiting_env *env, const struct record *record, struct err *err)
{
    _cleanup_buf_ struct buf request = buf_init(LIMIT_REQUEST_BYTES);
    int r = read_request(env, record, &request, err);

    return r < 0 ? r
                 : env->resume(env->resume_ctx, record, buf_cstr(&request), request.len, err);
}

/* Nobody runs it any more. */
static int give_up(const struct waiting_env *env, const struct record *record,
                   const char *process, const char *why, struct err *err)
{
    char reason[ERR_MESSAGE_MAX];
    int r;

    (void)snprintf(reason, sizeof(reason),
                   "the node %.64s was lost before this execution was known to run, and no "
                   "other runs it: %.256s",
                   process, why);
    r = lost_tell(env->registry, env->cluster, record, reason, err);
    log_warn("ledger", "execution=%s lost=\"%s\"", record->id, reason);
    return r == -EAGAIN ? r : 0;
}

int waiting_take_over(const struct waiting_env *env, const char *id,
                      const struct registry_process *process, struct err *err)
{
    struct record_copy copy = {0};
    struct err why = {0};
    int r =
        cluster_record_claim(env->cluster, id, process->node, process->instance, &copy, err);

    if (r == -EOWNERDEAD) {
        r = give_up(env, &copy.record, process->node,
                    "it may have begun, or was to be cancelled", err);
    } else if (r == 0 && resume(env, &copy.record, &why) < 0) {
        r = give_up(env, &copy.record, process->node, why.message, err);
    } else if (r == 0) {
        log_info("ledger", "execution=%s taken_over_of=%s", id, process->node);
    }
    record_copy_finish(&copy);
    return r;
}
