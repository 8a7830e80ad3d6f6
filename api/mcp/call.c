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
    const atomic_bool *stop;
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

    return *get->stop;
}

int mcp_get(const struct mcp_config *config, const atomic_bool *stop, const char *path,
            uint64_t timeout_ms, struct buf *body, char *type, struct skillvm_error *error)
{
    struct get get = {stop, body, type};
    const struct skillvm_request request = {
        .path = path,
        .timeout_ms = timeout_ms,
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

int mcp_call_get(struct mcp_call *call, const char *path, struct buf *body, char *type,
                 struct skillvm_error *error)
{
    return mcp_get(call->config, &call->cancelled, path, 300000, body, type, error);
}
