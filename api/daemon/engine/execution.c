/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/execution.h"

#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What a result may take in memory while somebody reads it. */
#define RESULT_MEMORY_MAX (64u * 1024u)
/* All who follow a log are woken for pieces of it a thousand times a second together. */
#define REST_NS (NS_PER_SECOND / 1000u)

struct execution *execution_create(const char *tenant, struct err *err)
{
    struct execution *e = calloc(1, sizeof(*e));

    if (!e) {
        err_no_memory(err);
        return NULL;
    }
    e->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->cancel_fd < 0 || ids_make(ID_EXECUTION, e->id, sizeof(e->id)) < 0) {
        err_set_errno(err, errno ? errno : EIO, "cannot create an execution");
        fd_close(&e->cancel_fd);
        free(e);
        return NULL;
    }
    (void)pthread_mutex_init(&e->lock, NULL);
    cond_init(&e->changed);
    cond_init(&e->logged);
    e->references = 1;
    e->log = buf_init(LIMIT_LOG_BYTES);
    e->segments = buf_init(LIMIT_LOG_PARTS * sizeof(uint32_t));
    e->result = buf_init(0);
    e->result_fd = -1;
    (void)snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
    e->job = job_init();
    return e;
}

int execution_set_skill(struct execution *e, const char *name, const char *version,
                        const char *digest)
{
    e->skill_name = strdup(name);
    e->skill_version = strdup(version);
    e->skill_digest = strdup(digest);
    return e->skill_name && e->skill_version && e->skill_digest ? 0 : -ENOMEM;
}

struct execution *execution_ref(struct execution *e)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    e->references++;
    return e;
}

/* It counts no longer before it goes: what comes then may have its number. */
void execution_let_go(struct execution *e)
{
    void *holding = steal_ptr(&e->holding);

    if (holding)
        e->give_back(holding);
    job_finish(&e->job);
}

void execution_unref(struct execution *e)
{
    unsigned left;

    if (!e)
        return;
    (void)pthread_mutex_lock(&e->lock);
    left = --e->references;
    (void)pthread_mutex_unlock(&e->lock);
    if (left > 0)
        return;
    execution_let_go(e);
    skill_strings_finish(&e->warnings);
    images_unref(e->images);
    free(e->skill_name);
    free(e->skill_version);
    free(e->skill_digest);
    free(e->packages);
    free(e->idempotency_key);
    free(e->session);
    free(e->request_digest);
    buf_finish(&e->request.text);
    buf_finish(&e->log);
    buf_finish(&e->segments);
    buf_finish(&e->result);
    fd_close(&e->result_fd);
    fd_close(&e->cancel_fd);
    (void)pthread_cond_destroy(&e->changed);
    (void)pthread_cond_destroy(&e->logged);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

const char *execution_image(const struct execution *e)
{
    return e->image.why[0] ? e->image.name : NULL;
}

void execution_cancel(struct execution *e)
{
    const uint64_t one = 1;

    /* Fails only when the counter is full, and then it is readable already. */
    if (write(e->cancel_fd, &one, sizeof(one)) < 0)
        return;
}

static void wake_all(struct execution *e)
{
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_cond_broadcast(&e->logged);
}

void execution_set_state(struct execution *e, enum execution_state state)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    e->state = state;
    e->ran = e->ran || state < EXECUTION_ENDED;
    wake_all(e);
}

/* Adds len bytes to the last segment, or begins one. */
static int append_segment(struct execution *e, enum guest_stream stream, size_t len)
{
    uint32_t tag = stream == GUEST_STDERR ? EXECUTION_SEGMENT_STDERR : 0;
    uint32_t last;

    if (e->segments.len > 0) {
        uint8_t *at = e->segments.data + e->segments.len - sizeof(last);

        memcpy(&last, at, sizeof(last));
        if ((last & EXECUTION_SEGMENT_STDERR) == tag) {
            last += (uint32_t)len;
            memcpy(at, &last, sizeof(last));
            return 0;
        }
    }
    last = tag | (uint32_t)len;
    return buf_append(&e->segments, &last, sizeof(last));
}

void execution_append_log(struct execution *e, enum guest_stream stream, const void *data,
                          size_t len)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);
    size_t kept = buf_append_clipped(&e->log, data, len);

    if (kept > 0 && append_segment(e, stream, kept) < 0) {
        e->log.len -= kept;
        kept = 0;
        /* Nor does what comes later seem to follow what is there. */
        e->log.max = e->log.len;
    }
    if (kept < len)
        e->log_clipped = true;
    if (kept > 0)
        (void)pthread_cond_broadcast(&e->logged);
}

size_t execution_log_memory(struct execution *e)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    return e->log.len + e->segments.len;
}

int execution_copy_log(struct execution *e, struct buf *out)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    return buf_append(out, e->log.data, e->log.len);
}

/* A file with a large result, or -1. */
static int set_aside(const struct store *store, const struct buf *result)
{
    int fd = result->len > RESULT_MEMORY_MAX ? store_temporary(store) : -1;

    if (fd >= 0 && fd_pwrite_full(fd, result->data, result->len, 0) < 0)
        fd_close(&fd);
    return fd < 0 ? -1 : fd;
}

void execution_end(struct execution *e, const struct store *store, struct buf *result,
                   const char *lost)
{
    int fd = set_aside(store, result);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    e->result_fd = fd;
    e->result_len = result->len;
    if (fd < 0)
        e->result = *result;
    else
        buf_finish(result);
    *result = buf_init(0);
    (void)snprintf(e->lost, sizeof(e->lost), "%s", lost ? lost : "");
    /* Who reads of it for long keeps no image from being replaced. */
    images_unref(steal_ptr(&e->images));
    e->state = EXECUTION_ENDED;
    wake_all(e);
}

int execution_read_result(const struct execution *e, size_t at, void *data, size_t len)
{
    const struct job_bytes result = {
        .fd = e->result_fd, .memory = e->result, .len = e->result_len};

    return job_bytes_read(&result, at, data, len);
}

enum execution_state execution_get_state(struct execution *e)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    return e->state;
}

void execution_move(struct execution *e)
{
    execution_set_state(e, EXECUTION_MOVED);
}

bool execution_wait(struct execution *e)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    while (e->state < EXECUTION_ENDED)
        (void)pthread_cond_wait(&e->changed, held);
    return e->state == EXECUTION_ENDED;
}

/* Copies from the segment the cursor is in. False when it has read everything so far. */
static bool copy_log(const struct execution *e, struct execution_cursor *c,
                     enum guest_stream *ret_stream, void *data, size_t size, size_t *ret_len)
{
    uint32_t segment;
    size_t n;

    while (c->segment_at < e->segments.len) {
        memcpy(&segment, e->segments.data + c->segment_at, sizeof(segment));
        n = (segment & EXECUTION_SEGMENT_LENGTH) - c->in_segment;
        if (n == 0) {
            /* The last one may still grow. */
            if (c->segment_at + sizeof(segment) == e->segments.len)
                return false;
            c->segment_at += sizeof(segment);
            c->in_segment = 0;
            continue;
        }
        n = n < size ? n : size;
        memcpy(data, e->log.data + c->log_at, n);
        c->log_at += n;
        c->in_segment += (uint32_t)n;
        *ret_stream = segment & EXECUTION_SEGMENT_STDERR ? GUEST_STDERR : GUEST_STDOUT;
        *ret_len = n;
        return true;
    }
    return false;
}

void execution_seek(struct execution *e, size_t log_at, struct execution_cursor *cursor)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);
    uint32_t segment = 0;

    *cursor = (struct execution_cursor){.told_ran = cursor->told_ran};
    while (cursor->segment_at < e->segments.len) {
        size_t n;

        memcpy(&segment, e->segments.data + cursor->segment_at, sizeof(segment));
        n = segment & EXECUTION_SEGMENT_LENGTH;
        if (n > log_at - cursor->log_at)
            n = log_at - cursor->log_at;
        cursor->log_at += n;
        cursor->in_segment = (uint32_t)n;
        /* In the last one, which may still grow, it stays. */
        if (n < (segment & EXECUTION_SEGMENT_LENGTH) ||
            cursor->segment_at + sizeof(segment) == e->segments.len)
            return;
        cursor->segment_at += sizeof(segment);
        cursor->in_segment = 0;
    }
}

void execution_rest(struct execution *e, struct execution_cursor *cursor)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);

    cursor->rests_ns = clock_monotonic_ns() + e->references * REST_NS;
}

/* Waits for news, or until a rest is over. False: the time is up. */
static bool await_news(struct execution *e, const struct execution_cursor *cursor, bool rests,
                       uint64_t deadline_ns)
{
    uint64_t until_ns =
        rests && cursor->rests_ns < deadline_ns ? cursor->rests_ns : deadline_ns;

    return cond_wait_until(rests ? &e->changed : &e->logged, &e->lock, until_ns) ||
           until_ns < deadline_ns;
}

enum execution_news execution_next(struct execution *e, struct execution_cursor *cursor,
                                   uint64_t deadline_ns, enum guest_stream *ret_stream,
                                   void *data, size_t size, size_t *ret_len)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&e->lock);
    bool waiting = true;

    for (;;) {
        /* Looked at once: what came meanwhile is not waited for. */
        bool rests = e->state < EXECUTION_ENDED && clock_monotonic_ns() < cursor->rests_ns;

        if (!cursor->told_ran && e->ran) {
            cursor->told_ran = true;
            return EXECUTION_STATE;
        }
        if (!rests && copy_log(e, cursor, ret_stream, data, size, ret_len))
            return EXECUTION_LOG;
        if (e->state >= EXECUTION_ENDED)
            return e->state == EXECUTION_ENDED ? EXECUTION_RESULT : EXECUTION_GONE;
        if (!waiting)
            return EXECUTION_NOTHING;
        waiting = await_news(e, cursor, rests, deadline_ns);
    }
}
