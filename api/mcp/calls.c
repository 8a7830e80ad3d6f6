/* SPDX-License-Identifier: Apache-2.0 */
/* The requests under way, each with its thread, and what their handlers can ask. */
#include "api/mcp/hello.h"
#include "api/mcp/session.h"

#include <stdlib.h>
#include <string.h>

#define HELD_MAX (64u << 20) /* bytes of messages whose answers are not out yet */

bool mcp_call_speaks(const struct mcp_call *call, const char *version)
{
    return strcmp(call->version, version) >= 0;
}

bool mcp_call_wait_change(struct mcp_call *call)
{
    struct mcp_server *s = call->server;

    pthread_mutex_lock(&s->lock);
    while (!call->cancelled && s->changes == call->seen)
        pthread_cond_wait(&s->changed, &s->lock);
    call->seen = s->changes;
    pthread_mutex_unlock(&s->lock);
    return !call->cancelled;
}

void mcp_call_notify(struct mcp_call *call, const char *method, const struct buf *params)
{
    struct buf out = buf_init(MCP_RESULT_MAX);

    if (!call->cancelled)
        reply_send(call->server, &out, message_append_notification(&out, method, params));
}

/* From here on its id is free for another one. */
static void forget_call(struct mcp_call *call)
{
    struct mcp_server *s = call->server;
    struct mcp_call **link;

    pthread_mutex_lock(&s->lock);
    for (link = &s->calls; *link != call; link = &(*link)->next)
        ;
    *link = call->next;
    pthread_mutex_unlock(&s->lock);
}

/* What every result without a session has; w holds a whole object that is not empty. */
static void complete_result(const struct mcp_call *call, struct json_writer *w)
{
    if (w->out.error < 0 || w->out.len == 0 || !mcp_call_speaks(call, HELLO_STATELESS))
        return;
    w->out.len--;
    json_write_string(w, "resultType", "complete");
    if (call->method->cached) {
        json_write_number(w, "ttlMs", call->config->watch_ms);
        json_write_string(w, "cacheScope", "private");
    }
    if (!call->method->has_meta) {
        json_write_open(w, "_meta", '{');
        hello_write_server(w);
        json_write_close(w, '}');
    }
    json_write_close(w, '}');
}

static void *run_call(void *ctx)
{
    struct mcp_call *call = ctx;
    struct mcp_server *s = call->server;
    struct mcp_answer answer = {.result = json_writer_init(MCP_RESULT_MAX)};

    int r = call->method->handler(call, &answer);
    if (!call->cancelled && r == 0)
        complete_result(call, &answer.result);
    forget_call(call);
    if (!call->cancelled && r == 0)
        reply_result(s, call->batch, call->message.id, &answer.result);
    else if (!call->cancelled)
        reply_error(s, call->batch, call->message.id, answer.code, answer.text);
    buf_finish(&answer.result.out);
    if (call->batch)
        reply_release(s, call->batch);

    pthread_mutex_lock(&s->lock);
    s->n_calls--;
    call->next = s->done;
    s->done = call;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct mcp_call *calls_find(struct mcp_server *s, struct json_slice id)
{
    struct mcp_call *call = s->calls;

    while (call && !message_same_id(call->message.id, id))
        call = call->next;
    return call;
}

/* Under the lock: why the call cannot begin, or NULL when it has begun. */
static const char *begin_call(struct mcp_server *s, struct mcp_call *call)
{
    if (calls_find(s, call->message.id))
        return "a request with this id is under way";
    if (s->n_calls >= MCP_CALLS_MAX || call->len > HELD_MAX - s->held)
        return "too many requests are under way; try again when one has ended";
    /* It cannot look for itself in the list before the lock is free. */
    if (pthread_create(&call->thread, NULL, run_call, call))
        return "no thread could be started for it";
    call->seen = s->changes;
    call->next = s->calls;
    s->calls = call;
    s->n_calls++;
    s->held += call->len;
    if (call->batch)
        call->batch->waiting++;
    return NULL;
}

void calls_reap(struct mcp_server *s)
{
    pthread_mutex_lock(&s->lock);
    struct mcp_call *done = s->done;
    s->done = NULL;
    for (struct mcp_call *call = done; call; call = call->next)
        s->held -= call->len;
    pthread_mutex_unlock(&s->lock);
    while (done) {
        struct mcp_call *call = done;
        done = call->next;
        pthread_join(call->thread, NULL);
        free(call);
    }
}

void calls_start(struct mcp_server *s, struct batch *batch, struct json_slice value,
                 const struct message *m, const struct method *method, const char *version)
{
    struct mcp_call *call = calloc(1, sizeof(*call) + value.len);
    const char *why = "out of memory";

    calls_reap(s);
    if (call) {
        *call = (struct mcp_call){.config = &s->config,
                                  .server = s,
                                  .batch = batch,
                                  .method = method,
                                  .version = version,
                                  .len = value.len};
        memcpy(call->text, value.data, value.len);
        (void)message_parse((struct json_slice){call->text, value.len}, &call->message, NULL);
        pthread_mutex_lock(&s->lock);
        why = begin_call(s, call);
        pthread_mutex_unlock(&s->lock);
    }
    if (why) {
        free(call);
        reply_error(s, batch, m->id, MESSAGE_INTERNAL_ERROR, why);
    }
}
