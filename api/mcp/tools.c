/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's tools: listing them, and running one with its progress. */
#include "api/client/events.h"
#include "api/json/json_walk.h"
#include "api/mcp/call.h"
#include "api/mcp/page.h"
#include "api/mcp/progress.h"
#include "api/mcp/skill_tools.h"
#include "api/mcp/tool_result.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES   512u
#define CANCEL_WAIT_MS   5000u
#define EXECUTION_ID_MAX 64u

struct tool_run {
    struct mcp_call *call;
    struct mcp_progress progress;
    char path[128]; /* "/v1/executions/ID" once the daemon has said it, else "" */
    char status[32];
    struct event_stream stream;
};

static char *tool_name(struct json_slice tool)
{
    return json_strdup_member(tool, "name", NAME_MAX_BYTES);
}

static void write_tool(struct json_writer *w, struct json_slice tool)
{
    json_write_value(w, NULL, tool);
}

int mcp_tools_list(struct mcp_call *call, struct mcp_answer *answer)
{
    static const struct mcp_page page = {"tools",    "/v1/tools?format=mcp", "tools", tool_name,
                                         write_tool, skill_tools_write};

    return mcp_page_answer(&page, call, answer);
}

/* Becomes part of a path. */
static bool is_execution_id(const char *text)
{
    return *text && strlen(text) <= EXECUTION_ID_MAX &&
           !text[strspn(text,
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
}

static int on_status(void *ctx, const char *id, const char *status)
{
    struct tool_run *run = ctx;

    if (is_execution_id(id))
        snprintf(run->path, sizeof(run->path), "/v1/executions/%s", id);
    if (strlen(status) < sizeof(run->status) && strcmp(status, run->status) != 0) {
        snprintf(run->status, sizeof(run->status), "%s", status);
        mcp_progress_say(&run->progress, status);
    }
    return 0;
}

static int on_output(void *ctx, const char *data, size_t len)
{
    struct tool_run *run = ctx;

    mcp_progress_output(&run->progress, data, len);
    return 0;
}

/* The execution goes on without its caller, so a cancelled call waits until it has a name. */
static int should_stop(void *ctx)
{
    struct tool_run *run = ctx;

    mcp_progress_tick(&run->progress);
    return run->call->cancelled && run->path[0];
}

static void cancel(const struct tool_run *run)
{
    const struct mcp_config *config = run->call->config;
    const struct skillvm_request request = {
        .method = "DELETE", .path = run->path, .timeout_ms = CANCEL_WAIT_MS};
    struct skillvm_error error = {0};

    if (run->path[0])
        (void)config->perform(config->ctx, &request, &error);
}

/* What the daemon refused is the model's to read and to do better; the rest is not. */
static int refuse(struct mcp_answer *answer, const char *name,
                  const struct skillvm_error *error)
{
    char text[SKILLVM_MESSAGE_MAX + 64];

    switch (error->http_status) {
    case 404:
        return mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS, "unknown tool \"%.200s\": %s",
                               name, error->message);
    case 400:
    case 409:
    case 413:
    case 429:
    case 503:
        snprintf(text, sizeof(text), error->retry_after_s ? "%s (try again in %u s)" : "%s",
                 error->message, error->retry_after_s);
        mcp_result_write_refusal(&answer->result, text);
        return 0;
    default:
        return mcp_answer_daemon(answer, error);
    }
}

static int write_result(struct tool_run *run, struct mcp_answer *answer)
{
    const struct buf *given = &run->stream.result, *lost = &run->stream.lost;
    struct json_slice result;
    _cleanup_free_ char *text = NULL;

    if (json_text_check((const char *)given->data, given->len, &result, NULL) == 0) {
        mcp_result_write(run->call, result, &answer->result);
        return 0;
    }
    if (json_text_check((const char *)lost->data, lost->len, &result, NULL) == 0)
        text = json_strdup_member(result, "message", SKILLVM_MESSAGE_MAX);
    return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "%s",
                           text ? text : "the daemon ended the connection without a result");
}

static int perform(struct tool_run *run, const char *name, const char *json,
                   struct mcp_answer *answer)
{
    const struct mcp_config *config = run->call->config;
    const struct skillvm_events events = {.on_status = on_status,
                                          .on_stdout = on_output,
                                          .on_stderr = on_output,
                                          .should_stop = should_stop,
                                          .ctx = run};
    struct skillvm_request request = {.path = "/v1/tools/call", .json = json};
    struct skillvm_error error = {0};
    int r;

    event_stream_begin(&run->stream, &events, MCP_DAEMON_MAX, &request);
    r = config->perform(config->ctx, &request, &error);

    mcp_progress_end(&run->progress);
    if (run->call->cancelled) {
        if (run->stream.result.len == 0)
            cancel(run);
        return 0;
    }
    if (r < 0 && error.message[0] == '\0')
        snprintf(error.message, sizeof(error.message), "%s", strerror(-r));
    return r < 0 ? refuse(answer, name, &error) : write_result(run, answer);
}

static int run_tool(struct mcp_call *call, const char *name, const char *json,
                    struct mcp_answer *answer)
{
    struct tool_run run = {.call = call};
    int r;

    mcp_progress_init(&run.progress, call);
    r = perform(&run, name, json, answer);
    mcp_progress_finish(&run.progress);
    event_stream_finish(&run.stream);
    return r;
}

int mcp_tools_call(struct mcp_call *call, struct mcp_answer *answer)
{
    struct json_slice params = call->message.params, name, arguments = {"{}", 2};
    struct json_writer w = json_writer_init(MCP_LINE_MAX + 1024);
    _cleanup_buf_ struct buf json = {0};
    _cleanup_free_ char *tool =
        json_find(params, "name", &name) ? json_strdup(name, NAME_MAX_BYTES) : NULL;

    if (!tool)
        return mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS, "\"name\" must be a string");
    if (json_find(params, "arguments", &arguments) && !json_is_object(arguments))
        return mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS,
                               "\"arguments\" must be an object");
    if (skill_tools_has(tool))
        return skill_tools_call(call, tool, arguments, answer);
    /* The arguments go on as they are: no number of them is rounded here. */
    json_write_open(&w, NULL, '{');
    json_write_value(&w, "name", name);
    json_write_value(&w, "arguments", arguments);
    if (call->config->no_network)
        json_write_bool(&w, "network", false);
    json_write_close(&w, '}');
    if (json_writer_end(&w, &json) < 0 || !buf_cstr(&json))
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "out of memory");
    return run_tool(call, tool, buf_cstr(&json), answer);
}
