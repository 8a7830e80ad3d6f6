/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/tool_result.h"

#include "api/json/json_walk.h"
#include "api/mcp/hello.h"
#include "api/mcp/uri.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>

static void write_text(struct json_writer *w, const void *text, size_t len)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "type", "text");
    json_write_text(w, "text", text, len);
    json_write_close(w, '}');
}

/* A member that is a string, decoded; empty when there is none. The caller finishes it. */
static struct buf get_text(struct json_slice object, const char *key)
{
    struct buf text = buf_init(MCP_DAEMON_MAX);
    struct json_slice value;

    if (json_find(object, key, &value) && json_is_string(value) &&
        json_append_decoded(&text, value) < 0)
        buf_clear(&text);
    return text;
}

/* The last max bytes of text below a title, where there is any. */
static int append_tail(struct buf *out, const char *title, const struct buf *text, size_t max)
{
    size_t skipped = text->len > max ? text->len - max : 0;

    /* Not in the middle of a character. */
    while (skipped > 0 && skipped < text->len && utf8_continues((char)text->data[skipped]))
        skipped++;
    if (text->len == 0)
        return 0;
    int r = buf_printf(out, "%s%s%s:\n", out->len ? "\n\n" : "", title,
                       skipped ? " (its end)" : "");
    return r < 0 ? r : buf_append(out, text->data + skipped, text->len - skipped);
}

static void write_failure(struct json_writer *w, struct json_slice result)
{
    _cleanup_buf_ struct buf error = get_text(result, "error");
    _cleanup_buf_ struct buf status = get_text(result, "status");
    _cleanup_buf_ struct buf out = get_text(result, "stdout");
    _cleanup_buf_ struct buf err = get_text(result, "stderr");
    _cleanup_buf_ struct buf text = buf_init(MCP_TEXT_MAX);
    const struct buf *why = error.len > 0 ? &error : &status;

    (void)buf_append(&text, why->data, why->len);
    (void)append_tail(&text, "standard error", &err, MCP_TAIL_MAX);
    (void)append_tail(&text, "standard output", &out, MCP_TAIL_MAX);
    write_text(w, text.data, text.len);
}

static void write_printed(struct json_writer *w, struct json_slice result)
{
    _cleanup_buf_ struct buf out = get_text(result, "stdout");
    _cleanup_buf_ struct buf text = buf_init(MCP_TEXT_MAX + 64);

    if (out.len > MCP_TEXT_MAX)
        (void)append_tail(&text, "standard output", &out, MCP_TEXT_MAX - 64);
    else
        (void)buf_append(&text, out.data, out.len);
    if (text.len == 0)
        (void)buf_printf(&text, "(no output)");
    write_text(w, text.data, text.len);
}

/* The output as text: JSON on one line. */
static void write_output(struct json_writer *w, struct json_slice output)
{
    _cleanup_buf_ struct buf text = buf_init(MCP_RESULT_MAX);

    if (output.len <= MCP_TEXT_MAX && json_append_compact(&text, output) == 0) {
        write_text(w, text.data, text.len);
    } else {
        static const char note[] = "The output is too large to be shown here; "
                                   "`skillvm exec show` prints it.";
        write_text(w, note, sizeof(note) - 1);
    }
}

/* Before 2025-06-18 there were no links, only text. */
static void write_files(const struct mcp_call *call, struct json_writer *w,
                        struct json_slice result)
{
    struct json_slice list = {0}, id = {0}, path;
    bool links = mcp_call_speaks(call, "2025-06-18");
    size_t n = 0;

    if (!json_find(result, "execution_id", &id) || !json_find(result, "files_list", &list))
        return;
    struct json_items items = {.array = list};
    _cleanup_free_ char *execution = json_strdup(id, 64);
    while (execution && n < MCP_LINKS_MAX && json_items_next(&items, &path)) {
        _cleanup_free_ char *name = json_strdup(path, 4096);
        _cleanup_free_ char *uri = name ? uri_for_file(execution, name) : NULL;

        if (uri && links) {
            json_write_open(w, NULL, '{');
            json_write_string(w, "type", "resource_link");
            json_write_string(w, "uri", uri);
            json_write_string(w, "name", name);
            json_write_close(w, '}');
        } else if (uri) {
            write_text(w, uri, strlen(uri));
        }
        n += uri != NULL;
    }
}

static void write_meta(const struct mcp_call *call, struct json_writer *w,
                       struct json_slice result)
{
    static const char *const keys[] = {"execution_id", "status", "exit_code", "duration_ms",
                                       "truncated"};
    struct json_slice value;

    json_write_open(w, "_meta", '{');
    json_write_open(w, "skillvm/execution", '{');
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (json_find(result, keys[i], &value))
            json_write_value(w, keys[i], value);
    }
    json_write_close(w, '}');
    if (mcp_call_speaks(call, HELLO_STATELESS))
        hello_write_server(w);
    json_write_close(w, '}');
}

void mcp_result_write(const struct mcp_call *call, struct json_slice result,
                      struct json_writer *w)
{
    struct json_slice status, output = {0};
    bool ok = json_find(result, "status", &status) && json_slice_is(status, "\"success\"");
    bool has_output = json_find(result, "output", &output) && !json_slice_is(output, "null");

    json_write_open(w, NULL, '{');
    json_write_open(w, "content", '[');
    if (!ok)
        write_failure(w, result);
    if (has_output)
        write_output(w, output);
    else if (ok)
        write_printed(w, result);
    write_files(call, w, result);
    json_write_close(w, ']');
    /* An object at first, since 2026-07-28 any value. */
    const char *since = json_is_object(output) ? "2025-06-18" : HELLO_STATELESS;
    if (has_output && output.len <= MCP_TEXT_MAX && mcp_call_speaks(call, since))
        json_write_value(w, "structuredContent", output);
    json_write_bool(w, "isError", !ok);
    write_meta(call, w, result);
    json_write_close(w, '}');
}

void mcp_result_write_text(const struct mcp_call *call, const struct buf *text, bool is_object,
                           struct json_writer *w)
{
    json_write_open(w, NULL, '{');
    json_write_open(w, "content", '[');
    write_text(w, text->data, text->len);
    json_write_close(w, ']');
    if (is_object && mcp_call_speaks(call, "2025-06-18"))
        json_write_value(w, "structuredContent",
                         (struct json_slice){(const char *)text->data, text->len});
    json_write_bool(w, "isError", false);
    if (mcp_call_speaks(call, HELLO_STATELESS)) {
        json_write_open(w, "_meta", '{');
        hello_write_server(w);
        json_write_close(w, '}');
    }
    json_write_close(w, '}');
}

void mcp_result_write_refusal(struct json_writer *w, const char *text)
{
    json_write_open(w, NULL, '{');
    json_write_open(w, "content", '[');
    write_text(w, text, strlen(text));
    json_write_close(w, ']');
    json_write_bool(w, "isError", true);
    json_write_close(w, '}');
}
