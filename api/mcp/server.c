/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/server.h"

#include "api/json/json_walk.h"
#include "api/mcp/hello.h"
#include "api/mcp/session.h"
#include "base/clock.h"
#include "base/cond.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct method methods[] = {
    {"tools/list", mcp_tools_list, .cached = true},
    {"tools/call", mcp_tools_call, .has_meta = true},
    {"resources/list", mcp_resources_list, .cached = true},
    {"resources/templates/list", mcp_resources_templates, .cached = true},
    {"resources/read", mcp_resources_read, .cached = true},
    {"subscriptions/listen", mcp_listen, .stateless = true},
};

int mcp_server_create(const struct mcp_config *config, struct mcp_server **ret_server)
{
    struct mcp_server *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->config = *config;
    pthread_mutex_init(&s->send_lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->ended);
    cond_init(&s->changed);
    *ret_server = s;
    return 0;
}

void mcp_server_free(struct mcp_server *s)
{
    if (!s)
        return;
    pthread_cond_destroy(&s->changed);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->send_lock);
    free(s);
}

static void initialize(struct mcp_server *s, struct batch *batch, const struct message *m)
{
    struct json_writer w = json_writer_init(MCP_RESULT_MAX);
    struct json_slice asked;

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
    s->version = hello_agree(asked);
    hello_write_initialize(&w, s->version, s->config.watch_ms > 0);
    reply_result(s, NULL, m->id, &w);
}

static void ping(struct mcp_server *s, struct batch *batch, const struct message *m)
{
    struct json_writer w = json_writer_init(16);

    json_write_open(&w, NULL, '{');
    json_write_close(&w, '}');
    reply_result(s, batch, m->id, &w);
}

static void list_changed(void *ctx)
{
    static const char *const names[] = {"notifications/tools/list_changed",
                                        "notifications/resources/list_changed"};
    struct mcp_server *s = ctx;

    pthread_mutex_lock(&s->lock);
    s->changes++;
    pthread_cond_broadcast(&s->changed);
    bool session = s->initialized;
    pthread_mutex_unlock(&s->lock);
    /* Without a session only those are told that listen. */
    for (size_t i = 0; session && i < sizeof(names) / sizeof(names[0]); i++) {
        struct buf out = buf_init(256);
        reply_send(s, &out, message_append_notification(&out, names[i], NULL));
    }
}

/* Without memory there is no watching, and nothing else is missing. */
static void begin_watch(struct mcp_server *s)
{
    if (s->config.watch_ms > 0 && !s->watch)
        s->watch = mcp_watch_start(&s->config, list_changed, s);
}

static void take_notification(struct mcp_server *s, const struct message *m)
{
    struct json_slice id;

    if (strcmp(m->method, "notifications/cancelled") == 0 &&
        json_find(m->params, "requestId", &id)) {
        pthread_mutex_lock(&s->lock);
        struct mcp_call *call = calls_find(s, id);
        if (call)
            call->cancelled = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    } else if (strcmp(m->method, "notifications/initialized") == 0 && s->version) {
        pthread_mutex_lock(&s->lock);
        s->initialized = true;
        pthread_mutex_unlock(&s->lock);
        begin_watch(s);
    }
}

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(name, methods[i].name) == 0)
            return &methods[i];
    }
    return NULL;
}

/* A request of a session. */
static void take_session_request(struct mcp_server *s, struct batch *batch,
                                 struct json_slice value, const struct message *m)
{
    const struct method *method = find_method(m->method);

    if (strcmp(m->method, "initialize") == 0)
        initialize(s, batch, m);
    else if (strcmp(m->method, "ping") == 0)
        ping(s, batch, m);
    else if (!method || method->stateless)
        reply_error(s, batch, m->id, MESSAGE_METHOD_NOT_FOUND, "there is no such method");
    else if (!s->version)
        reply_error(s, batch, m->id, MESSAGE_INVALID_REQUEST, "\"initialize\" must come first");
    else
        calls_start(s, batch, value, m, method, s->version);
}

/* A request that names its version itself. */
static void take_stateless_request(struct mcp_server *s, struct batch *batch,
                                   struct json_slice value, const struct message *m)
{
    const struct method *method = find_method(m->method);
    struct json_writer w = json_writer_init(MCP_RESULT_MAX);

    begin_watch(s);
    if (strcmp(m->method, "server/discover") == 0) {
        hello_write_discover(&w, s->config.watch_ms > 0, s->config.watch_ms);
        reply_result(s, batch, m->id, &w);
    } else if (method) {
        calls_start(s, batch, value, m, method, HELLO_STATELESS);
    } else {
        reply_error(s, batch, m->id, MESSAGE_METHOD_NOT_FOUND, "there is no such method");
    }
}

static void refuse_version(struct mcp_server *s, struct batch *batch, const struct message *m,
                           struct json_slice asked)
{
    struct json_writer data = json_writer_init(MCP_RESULT_MAX);
    struct buf out = buf_init(MCP_RESULT_MAX);

    json_write_open(&data, NULL, '{');
    hello_write_versions(&data, "supported");
    json_write_value(&data, "requested", asked);
    json_write_close(&data, '}');
    int r = data.out.error < 0 ? data.out.error
                               : message_append_error(&out, m->id, MESSAGE_UNSUPPORTED_VERSION,
                                                      "this version is not spoken", &data.out);
    reply_keep(s, batch, &out, r);
    buf_finish(&data.out);
}

static void take_request(struct mcp_server *s, struct batch *batch, struct json_slice value,
                         const struct message *m)
{
    struct json_slice named = hello_named(m->params);

    if (named.len > 0 && !json_slice_is(named, "\"" HELLO_STATELESS "\""))
        refuse_version(s, batch, m, named);
    else if (named.len > 0 || strcmp(m->method, "server/discover") == 0)
        take_stateless_request(s, batch, value, m);
    else
        take_session_request(s, batch, value, m);
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

    if (!s->version || strcmp(s->version, HELLO_BATCHES) != 0)
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
    reply_release(s, batch);
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
    uint64_t deadline_ns = clock_monotonic_ns() + s->config.cancel_end_ms * NS_PER_MS;
    bool stopped;

    s->stopping = true;
    pthread_mutex_lock(&s->lock);
    for (struct mcp_call *call = s->calls; call; call = call->next)
        call->cancelled = true;
    pthread_cond_broadcast(&s->changed);
    while (s->n_calls > 0 && cond_wait_until(&s->ended, &s->lock, deadline_ns))
        ;
    stopped = s->n_calls == 0;
    pthread_mutex_unlock(&s->lock);
    calls_reap(s);
    if (s->watch && !mcp_watch_stop(s->watch, deadline_ns))
        stopped = false;
    else
        s->watch = NULL;
    return stopped;
}
