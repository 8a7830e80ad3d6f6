/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/server.h"

#include "api/daemon/json_walk.h"
#include "api/mcp/call.h"
#include "api/mcp/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD_MAX (64u << 20) /* bytes of messages whose answers are not out yet */

/* The revisions of the protocol that are spoken, the latest first. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
/* The one revision with batches. */
static const char batch_version[] = "2025-03-26";

/* The answers of a batch, which are sent together. */
struct batch {
    size_t waiting; /* for answers, and for the end of the batch itself */
    struct buf text;
};

struct mcp_call {
    struct mcp_server *server;
    struct mcp_call *next;
    struct batch *batch; /* NULL: a message of its own */
    const char *version;
    int (*handler)(struct mcp_call *call, struct mcp_answer *answer);
    atomic_bool cancelled;
    struct message message; /* points into text */
    size_t len;
    char text[];
};

struct mcp_server {
    struct mcp_config config;
    pthread_mutex_t send_lock;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended; /* a call */
    struct mcp_call *calls;
    unsigned n_calls;
    size_t held;
    const char *version; /* NULL until it is agreed on */
    struct watch *watch; /* NULL until the client is initialized */
    atomic_bool stopping;
};

static const struct {
    const char *name;
    int (*handler)(struct mcp_call *call, struct mcp_answer *answer);
} methods[] = {
    {"tools/list", mcp_tools_list},
    {"tools/call", mcp_tools_call},
    {"resources/list", mcp_resources_list},
    {"resources/templates/list", mcp_resources_templates},
    {"resources/read", mcp_resources_read},
};

int mcp_server_create(const struct mcp_config *config, struct mcp_server **ret_server)
{
    struct mcp_server *s = calloc(1, sizeof(*s));
    pthread_condattr_t attributes;

    if (!s)
        return -ENOMEM;
    s->config = *config;
    pthread_mutex_init(&s->send_lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_server = s;
    return 0;
}

void mcp_server_free(struct mcp_server *s)
{
    if (!s)
        return;
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->send_lock);
    free(s);
}

/* Sends a message that r says was written whole, and frees it. */
static void send_line(struct mcp_server *s, struct buf *text, int r)
{
    if (r == 0)
        r = buf_append(text, "\n", 1);
    pthread_mutex_lock(&s->send_lock);
    if (r == 0 && !s->stopping)
        s->config.send(s->config.ctx, (const char *)text->data, text->len);
    pthread_mutex_unlock(&s->send_lock);
    buf_finish(text);
}

/* One waits less; the last one sends. */
static void release_batch(struct mcp_server *s, struct batch *batch)
{
    pthread_mutex_lock(&s->lock);
    bool last = --batch->waiting == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    if (batch->text.len > 0)
        send_line(s, &batch->text, buf_append(&batch->text, "]", 1));
    buf_finish(&batch->text);
    free(batch);
}

/* Sends an answer, or keeps it for its batch. Frees it. */
static void reply(struct mcp_server *s, struct batch *batch, struct buf *text, int r)
{
    if (!batch) {
        send_line(s, text, r);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (r == 0)
        r = buf_append(&batch->text, batch->text.len ? "," : "[", 1);
    if (r == 0)
        (void)buf_append(&batch->text, text->data, text->len);
    pthread_mutex_unlock(&s->lock);
    buf_finish(text);
}

static void reply_error(struct mcp_server *s, struct batch *batch, struct json_slice id,
                        int code, const char *text)
{
    struct buf out = buf_init(MCP_RESULT_MAX);

    reply(s, batch, &out, message_append_error(&out, id, code, text));
}

static void reply_result(struct mcp_server *s, struct batch *batch, struct json_slice id,
                         struct json_writer *result)
{
    struct buf out = buf_init(2 * MCP_RESULT_MAX);

    if (result->result == -E2BIG)
        reply_error(s, batch, id, MESSAGE_INTERNAL_ERROR, "the answer is too large");
    else if (result->result < 0)
        reply_error(s, batch, id, MESSAGE_INTERNAL_ERROR, "out of memory");
    else
        reply(s, batch, &out, message_append_result(&out, id, &result->out));
    buf_finish(&result->out);
}

struct json_slice mcp_call_params(const struct mcp_call *call)
{
    return call->message.params;
}

const struct mcp_config *mcp_call_config(const struct mcp_call *call)
{
    return &call->server->config;
}

bool mcp_call_cancelled(const struct mcp_call *call)
{
    return call->cancelled;
}

bool mcp_call_speaks(const struct mcp_call *call, const char *version)
{
    return strcmp(call->version, version) >= 0;
}

void mcp_call_notify(struct mcp_call *call, const char *method, const struct buf *params)
{
    struct buf out = buf_init(MCP_RESULT_MAX);

    if (!call->cancelled)
        send_line(call->server, &out, message_append_notification(&out, method, params));
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

static void *run_call(void *ctx)
{
    struct mcp_call *call = ctx;
    struct mcp_server *s = call->server;
    struct mcp_answer answer = {.result = json_writer_init(MCP_RESULT_MAX)};

    int r = call->handler(call, &answer);
    forget_call(call);
    if (!call->cancelled && r == 0)
        reply_result(s, call->batch, call->message.id, &answer.result);
    else if (!call->cancelled)
        reply_error(s, call->batch, call->message.id, answer.code, answer.text);
    buf_finish(&answer.result.out);
    if (call->batch)
        release_batch(s, call->batch);

    pthread_mutex_lock(&s->lock);
    s->n_calls--;
    s->held -= call->len;
    free(call);
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Under the lock. NULL when no such request is under way. */
static struct mcp_call *find_call(struct mcp_server *s, struct json_slice id)
{
    struct mcp_call *call = s->calls;

    while (call && !message_same_id(call->message.id, id))
        call = call->next;
    return call;
}

static const char *start_thread(struct mcp_call *call)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attributes, run_call, call);
    pthread_attr_destroy(&attributes);
    return r ? "no thread could be started for it" : NULL;
}

/* Under the lock: why the call cannot begin, or NULL when it has begun. */
static const char *begin_call(struct mcp_server *s, struct mcp_call *call)
{
    if (find_call(s, call->message.id))
        return "a request with this id is under way";
    if (s->n_calls >= MCP_CALLS_MAX || call->len > HELD_MAX - s->held)
        return "too many requests are under way; try again when one has ended";
    call->next = s->calls;
    s->calls = call;
    const char *why = start_thread(call);
    if (why) {
        s->calls = call->next;
        return why;
    }
    s->n_calls++;
    s->held += call->len;
    if (call->batch)
        call->batch->waiting++;
    return NULL;
}

static void start_call(struct mcp_server *s, struct batch *batch, struct json_slice value,
                       const struct message *m,
                       int (*handler)(struct mcp_call *call, struct mcp_answer *answer))
{
    struct mcp_call *call = calloc(1, sizeof(*call) + value.len);
    const char *why = "out of memory";

    if (call) {
        *call = (struct mcp_call){.server = s,
                                  .batch = batch,
                                  .handler = handler,
                                  .version = s->version,
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

static void initialize(struct mcp_server *s, struct batch *batch, const struct message *m)
{
    struct json_writer w = json_writer_init(MCP_RESULT_MAX);
    struct json_slice asked;
    size_t n = 0;

    if (batch || s->version) {
        reply_error(s, batch, m->id, MESSAGE_INVALID_REQUEST,
                    batch ? "\"initialize\" must not be in a batch"
                          : "\"initialize\" comes once");
        return;
    }
    if (!json_find(m->params, "protocolVersion", &asked) || !json_is_string(asked)) {
        reply_error(s, NULL, m->id, MESSAGE_INVALID_PARAMS,
                    "\"protocolVersion\" must be a string");
        return;
    }
    while (n < sizeof(versions) / sizeof(versions[0]) &&
           !json_slice_is((struct json_slice){asked.data + 1, asked.len - 2}, versions[n]))
        n++;
    s->version = versions[n < sizeof(versions) / sizeof(versions[0]) ? n : 0];

    json_write_open(&w, NULL, '{');
    json_write_string(&w, "protocolVersion", s->version);
    json_write_open(&w, "capabilities", '{');
    json_write_open(&w, "tools", '{');
    json_write_bool(&w, "listChanged", s->config.watch_ms > 0);
    json_write_close(&w, '}');
    json_write_open(&w, "resources", '{');
    json_write_bool(&w, "listChanged", s->config.watch_ms > 0);
    json_write_close(&w, '}');
    json_write_close(&w, '}');
    json_write_open(&w, "serverInfo", '{');
    json_write_string(&w, "name", "skillvm");
    json_write_string(&w, "title", "skillvm");
    json_write_string(&w, "version", SKILLVM_VERSION);
    json_write_close(&w, '}');
    json_write_string(&w, "instructions",
                      "Each tool runs a skill in a fresh virtual machine that is thrown away "
                      "afterwards: nothing of one call is left for the next, and there is no "
                      "network. Files that a skill makes are linked in the result and can be "
                      "read as resources. What a skill is for and how it is used says its "
                      "SKILL.md, the resource skill://NAME/VERSION/SKILL.md.");
    json_write_close(&w, '}');
    reply_result(s, NULL, m->id, &w);
}

static void list_changed(void *ctx)
{
    static const char *const names[] = {"notifications/tools/list_changed",
                                        "notifications/resources/list_changed"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buf out = buf_init(256);
        send_line(ctx, &out, message_append_notification(&out, names[i], NULL));
    }
}

static void take_notification(struct mcp_server *s, const struct message *m)
{
    struct json_slice id;

    if (strcmp(m->method, "notifications/cancelled") == 0 &&
        json_find(m->params, "requestId", &id)) {
        pthread_mutex_lock(&s->lock);
        struct mcp_call *call = find_call(s, id);
        if (call)
            call->cancelled = true;
        pthread_mutex_unlock(&s->lock);
    } else if (strcmp(m->method, "notifications/initialized") == 0 && s->version &&
               s->config.watch_ms > 0 && !s->watch) {
        /* Without memory there is no watching, and nothing else is missing. */
        s->watch = watch_start(&s->config, list_changed, s);
    }
}

static void take_request(struct mcp_server *s, struct batch *batch, struct json_slice value,
                         const struct message *m)
{
    if (strcmp(m->method, "initialize") == 0) {
        initialize(s, batch, m);
        return;
    }
    if (strcmp(m->method, "ping") == 0) {
        struct json_writer w = json_writer_init(16);
        json_write_open(&w, NULL, '{');
        json_write_close(&w, '}');
        reply_result(s, batch, m->id, &w);
        return;
    }
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(m->method, methods[i].name) != 0)
            continue;
        if (!s->version)
            reply_error(s, batch, m->id, MESSAGE_INVALID_REQUEST,
                        "\"initialize\" must come first");
        else
            start_call(s, batch, value, m, methods[i].handler);
        return;
    }
    reply_error(s, batch, m->id, MESSAGE_METHOD_NOT_FOUND, "there is no such method");
}

static void take_message(struct mcp_server *s, struct batch *batch, struct json_slice value)
{
    struct message m;
    struct err err = {0};

    if (message_parse(value, &m, &err) < 0)
        reply_error(s, batch, m.id, MESSAGE_INVALID_REQUEST, err.message);
    else if (m.kind == MESSAGE_NOTIFICATION)
        take_notification(s, &m);
    else if (m.kind == MESSAGE_REQUEST)
        take_request(s, batch, value, &m);
    /* Nothing is ever asked of the client, so a response answers nothing. */
}

/* Why a batch is refused, or NULL. */
static const char *refuse_batch(const struct mcp_server *s, struct json_slice array)
{
    struct json_items items = {.array = array};
    struct json_slice item;
    size_t n = 0;

    if (!s->version || strcmp(s->version, batch_version) != 0)
        return "this version of the protocol has no batches";
    while (json_items_next(&items, &item) && n <= MCP_BATCH_MAX)
        n++;
    if (n == 0)
        return "the batch is empty";
    return n > MCP_BATCH_MAX ? "the batch has too many messages" : NULL;
}

static void take_batch(struct mcp_server *s, struct json_slice array)
{
    struct json_items items = {.array = array};
    struct json_slice item, none = {0};
    const char *why = refuse_batch(s, array);
    struct batch *batch = why ? NULL : calloc(1, sizeof(*batch));

    if (!batch) {
        reply_error(s, NULL, none, MESSAGE_INVALID_REQUEST, why ? why : "out of memory");
        return;
    }
    batch->waiting = 1;
    batch->text = buf_init(MCP_RESULT_MAX);
    while (json_items_next(&items, &item))
        take_message(s, batch, item);
    release_batch(s, batch);
}

void mcp_server_take(struct mcp_server *s, const char *line, size_t len)
{
    struct json_slice value, none = {0};
    struct err err = {0};

    if (!line)
        reply_error(s, NULL, none, MESSAGE_PARSE_ERROR, "the message is too long");
    else if (json_text_check(line, len, &value, &err) < 0)
        reply_error(s, NULL, none, MESSAGE_PARSE_ERROR, err.message);
    else if (json_is_array(value))
        take_batch(s, value);
    else
        take_message(s, NULL, value);
}

bool mcp_server_stop(struct mcp_server *s)
{
    struct timespec end;
    bool stopped;

    s->stopping = true;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += s->config.cancel_end_ms / 1000;
    end.tv_nsec += (long)(s->config.cancel_end_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&s->lock);
    for (struct mcp_call *call = s->calls; call; call = call->next)
        call->cancelled = true;
    while (s->n_calls > 0 && pthread_cond_timedwait(&s->ended, &s->lock, &end) == 0)
        ;
    stopped = s->n_calls == 0;
    pthread_mutex_unlock(&s->lock);
    if (s->watch && !watch_stop(s->watch, &end))
        stopped = false;
    else
        s->watch = NULL;
    return stopped;
}
