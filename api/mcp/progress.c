/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/progress.h"

#include "api/json/json_walk.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static const char mark[] = "[…]\n";

void mcp_progress_init(struct mcp_progress *p, struct mcp_call *call)
{
    struct json_slice meta, token;

    *p = (struct mcp_progress){.call = call, .output = buf_init(MCP_PROGRESS_TEXT_MAX)};
    p->began_ns = p->last_ns = clock_monotonic_ns();
    if (!json_find(call->message.params, "_meta", &meta) ||
        !json_find(meta, "progressToken", &token) || token.len > MESSAGE_ID_MAX)
        return;
    if (json_is_string(token) || strchr("-0123456789", token.data[0]))
        p->token = token;
}

void mcp_progress_finish(struct mcp_progress *p)
{
    buf_finish(&p->output);
}

static void tell(struct mcp_progress *p, const void *text, size_t len)
{
    struct json_writer w = json_writer_init(16 * MCP_PROGRESS_TEXT_MAX);

    p->last_ns = clock_monotonic_ns();
    json_write_open(&w, NULL, '{');
    json_write_value(&w, "progressToken", p->token);
    json_write_number(&w, "progress", ++p->sent);
    json_write_text(&w, "message", text, len);
    json_write_close(&w, '}');
    if (w.out.error == 0)
        mcp_call_notify(p->call, "notifications/progress", &w.out);
    buf_finish(&w.out);
}

/* How much of the output is whole lines; all of it when there is no room for more. */
static size_t whole_lines(const struct mcp_progress *p)
{
    size_t len = p->output.len;

    if (p->shortened)
        return len;
    while (len > 0 && p->output.data[len - 1] != '\n')
        len--;
    return len;
}

static void tell_output(struct mcp_progress *p, size_t len)
{
    _cleanup_buf_ struct buf text = buf_init(MCP_PROGRESS_TEXT_MAX + sizeof(mark));

    if (len == 0)
        return;
    (void)buf_append(&text, p->output.data, len);
    if (p->shortened)
        (void)buf_append(&text, mark, sizeof(mark) - 1);
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    tell(p, text.data, text.len);
    buf_consume(&p->output, len);
    p->shortened = false;
}

void mcp_progress_say(struct mcp_progress *p, const char *text)
{
    if (p->token.len > 0)
        tell(p, text, strlen(text));
}

void mcp_progress_tick(struct mcp_progress *p)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t silent_ms = (now - p->last_ns) / NS_PER_MS;
    char text[64];

    if (p->token.len == 0)
        return;
    if (silent_ms >= p->call->config->progress_ms)
        tell_output(p, whole_lines(p));
    if (silent_ms >= MCP_PROGRESS_BEAT_MS && now > p->last_ns) {
        snprintf(text, sizeof(text), "it has taken %u s so far",
                 (unsigned)((now - p->began_ns) / NS_PER_SECOND));
        mcp_progress_say(p, text);
    }
}

void mcp_progress_output(struct mcp_progress *p, const void *data, size_t len)
{
    if (p->token.len == 0)
        return;
    if (buf_append_clipped(&p->output, data, len) < len)
        p->shortened = true;
    mcp_progress_tick(p);
}

void mcp_progress_end(struct mcp_progress *p)
{
    if (p->token.len > 0)
        tell_output(p, p->output.len);
}
