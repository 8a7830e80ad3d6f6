/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/failure.h"

#include <errno.h>
#include <string.h>

struct meaning {
    int code;
    unsigned status;
    const char *word;
    unsigned retry_after_s;
};

static const struct meaning meanings[] = {
    {EINVAL, 400, "bad_request", 0},
    {ENOENT, 404, "not_found", 0},
    {EEXIST, 409, "conflict", 0},
    {EFBIG, 413, "too_large", 0},
    {E2BIG, 413, "too_large", 0},
    {EDQUOT, 413, "quota_exceeded", 0},
    {EAGAIN, 503, "cluster_unavailable", 5},
    {ESHUTDOWN, 503, "stopping", 5},
    {EREMOTEIO, 503, "object_unavailable", 5},
    {ENOBUFS, 503, "overloaded", 5},
    {EBUSY, 429, "overloaded", 1},
    {EADDRINUSE, 409, "session_busy", 1},
};

bool failure_reply(struct http_reply *reply, int result, const struct err *err)
{
    struct meaning meaning = {-result, 500, "internal_error", 0};

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (meanings[i].code == -result)
            meaning = meanings[i];
    }
    http_reply_error(reply, meaning.status, meaning.word, "%s",
                     err->code ? err->message : strerror(-result));
    reply->retry_after_s = meaning.retry_after_s;
    return false;
}

bool failure_or_true(struct http_reply *reply, int result, const struct err *err)
{
    return result == 0 || failure_reply(reply, result, err);
}

bool failure_of(struct http_reply *reply, int result, const char *thing, const char *id,
                struct err *err)
{
    if (result == -ENOENT)
        (void)err_set(err, ENOENT, "there is no %s %.64s", thing, id);
    return failure_reply(reply, result, err);
}

bool failure_or_json(struct http_reply *reply, unsigned status, struct json_writer *w,
                     int result, const struct err *err)
{
    struct buf body;
    int written = json_writer_end(w, &body);

    if (result == 0 && written == 0) {
        http_reply_json(reply, status, &body);
        return true;
    }
    buf_finish(&body);
    return failure_reply(reply, result < 0 ? result : -ENOMEM, err);
}
