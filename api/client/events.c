/* SPDX-License-Identifier: Apache-2.0 */
/* Executions and tools whose events are passed on as they come. */
#include "api/client/events.h"

#include "api/client/client.h"
#include "api/client/sse.h"
#include "api/json/json_text.h"
#include "base/percent.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOST_MAX 65536u /* bytes of why there is no result */

static const struct skillvm_events no_events;

static int give_output(struct event_stream *s,
                       int (*give)(void *ctx, const char *data, size_t len), const char *data,
                       size_t len)
{
    int result;

    if (!give)
        return 0;
    buf_clear(&s->text);
    result = sse_decode_data(data, len, &s->text);
    if (result == -EINVAL)
        return -EPROTO;
    if (result == 0 && !buf_cstr(&s->text))
        result = -ENOMEM;
    return result ? result : give(s->events->ctx, (const char *)s->text.data, s->text.len);
}

static int give_status(const struct event_stream *s, const char *data, size_t len)
{
    cJSON *json = cJSON_ParseWithLength(data, len);
    const char *id =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "execution_id"));
    const char *status = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "status"));
    int result = 0;

    if (id && status && s->events->on_status)
        result = s->events->on_status(s->events->ctx, id, status);
    cJSON_Delete(json);
    return result;
}

static int on_event(void *ctx, const char *name, const char *data, size_t len)
{
    struct event_stream *s = ctx;

    if (strcmp(name, "stdout") == 0)
        return give_output(s, s->events->on_stdout, data, len);
    if (strcmp(name, "stderr") == 0)
        return give_output(s, s->events->on_stderr, data, len);
    if (strcmp(name, "status") == 0)
        return give_status(s, data, len);
    if (strcmp(name, "result") == 0) {
        buf_clear(&s->result);
        return buf_append(&s->result, data, len);
    }
    if (strcmp(name, "error") == 0)
        (void)buf_append_clipped(&s->lost, data, len);
    return 0;
}

static int on_body(void *ctx, const char *type, const void *data, size_t len)
{
    struct event_stream *s = ctx;

    (void)type;
    return buf_append(&s->result, data, len);
}

static int should_stop(void *ctx)
{
    const struct event_stream *s = ctx;

    return s->events->should_stop && s->events->should_stop(s->events->ctx);
}

static int give_result(struct event_stream *s, char **ret_result, struct skillvm_error *error)
{
    int result = 0;

    if (s->result.len == 0)
        return client_fail(error, EPROTO, "the daemon ended the connection without a result");
    if (!buf_cstr(&s->result))
        return client_fail_buf(error, -ENOMEM);
    if (s->events->on_result)
        result =
            s->events->on_result(s->events->ctx, (const char *)s->result.data, s->result.len);
    if (result < 0)
        return client_fail(error, -result, "the call was ended: %s", strerror(-result));
    if (ret_result)
        *ret_result = client_steal_text(&s->result);
    return 0;
}

void event_stream_begin(struct event_stream *s, const struct skillvm_events *events,
                        size_t max_bytes, struct skillvm_request *request)
{
    *s = (struct event_stream){
        .events = events ? events : &no_events,
        .text = buf_init(max_bytes),
        .result = buf_init(max_bytes),
        .lost = buf_init(LOST_MAX),
    };
    request->accept = "text/event-stream";
    request->on_event = on_event;
    request->on_body = on_body;
    request->should_stop = should_stop;
    request->ctx = s;
}

void event_stream_finish(struct event_stream *s)
{
    buf_finish(&s->text);
    buf_finish(&s->result);
    buf_finish(&s->lost);
}

/* Makes the request with its answer as events. */
static int stream(struct skillvm *client, struct skillvm_request *request,
                  const struct skillvm_events *events, char **ret_result,
                  struct skillvm_error *error)
{
    _cleanup_event_stream_ struct event_stream s;
    int result;

    event_stream_begin(&s, events, CLIENT_ANSWER_MAX, request);
    result = skillvm_perform(client, request, NULL, error);
    return result < 0 ? result : give_result(&s, ret_result, error);
}

int skillvm_run(struct skillvm *client, const char *request, int archive_fd,
                const struct skillvm_events *events, char **ret_result,
                struct skillvm_error *error)
{
    const struct skillvm_upload archive = {.fd = archive_fd, .part = "skill_archive"};
    struct skillvm_request r = {
        .path = "/v1/executions",
        .json = request,
        .upload = archive_fd >= 0 ? &archive : NULL,
    };

    return stream(client, &r, events, ret_result, error);
}

int skillvm_follow(struct skillvm *client, const char *execution_id,
                   const struct skillvm_events *events, char **ret_result,
                   struct skillvm_error *error)
{
    _cleanup_buf_ struct buf path = buf_init(CLIENT_PATH_MAX);
    struct skillvm_request r = {0};
    int result = percent_printf(&path, "/v1/executions/%s/events", execution_id);

    r.path = result < 0 ? NULL : buf_cstr(&path);
    return r.path ? stream(client, &r, events, ret_result, error)
                  : client_fail(error, ENAMETOOLONG, "the id is too long");
}

int skillvm_call_tool(struct skillvm *client, const char *name, const char *arguments,
                      const struct skillvm_events *events, char **ret_result,
                      struct skillvm_error *error)
{
    _cleanup_buf_ struct buf json = buf_init(CLIENT_ANSWER_MAX);
    struct skillvm_request r = {.path = "/v1/tools/call"};

    /* The arguments go in as they are: no number of them is rounded here. */
    (void)buf_printf(&json, "{\"name\":");
    (void)json_append_cstr(&json, name);
    (void)buf_printf(&json, ",\"arguments\":%s}", arguments ? arguments : "{}");
    r.json = buf_cstr(&json);
    return json.error ? client_fail_buf(error, json.error)
                      : stream(client, &r, events, ret_result, error);
}
