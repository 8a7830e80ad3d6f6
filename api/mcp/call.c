/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mcp_answer_fail(struct mcp_answer *answer, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    answer->code = code;
    (void)vsnprintf(answer->text, sizeof(answer->text), format, args);
    va_end(args);
    return -1;
}

int mcp_answer_daemon(struct mcp_answer *answer, const struct skillvm_error *error)
{
    return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "%s", error->message);
}

struct get {
    struct mcp_call *call;
    struct buf *body;
    char *type;
};

static int on_body(void *ctx, const char *type, const void *data, size_t len)
{
    struct get *get = ctx;

    if (get->type)
        snprintf(get->type, 64, "%s", type);
    return buf_append(get->body, data, len);
}

static int should_stop(void *ctx)
{
    const struct get *get = ctx;

    return get->call->cancelled;
}

int mcp_call_get(struct mcp_call *call, const char *path, struct buf *body, char *type,
                 struct skillvm_error *error)
{
    const struct mcp_config *config = call->config;
    struct get get = {call, body, type};
    struct skillvm_request request = {
        .path = path,
        .timeout_ms = 300000,
        .on_body = on_body,
        .should_stop = should_stop,
        .ctx = &get,
    };

    if (type)
        type[0] = '\0';
    int r = config->perform(config->ctx, &request, error);
    if (r < 0 && error->message[0] == '\0')
        snprintf(error->message, sizeof(error->message), "%s",
                 r == -E2BIG ? "the daemon's answer is too large" : strerror(-r));
    return r;
}
