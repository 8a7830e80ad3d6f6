/* SPDX-License-Identifier: Apache-2.0 */
/* Skills as tools: their definitions in the shapes that models are given, and calls. */
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/tool_call.h"
#include "api/daemon/routes/tool_catalog.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "api/tools/schema.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

#define LIST_MAX        (LIMIT_ANSWERS_BYTES + LIMIT_MIB) /* more than may be held */
#define DESCRIPTION_MAX 1024u                             /* characters that every API takes */

/* How a definition is put, by the words of each API. */
struct shape {
    const char *format;
    const char *schema; /* the member with the schema */
    bool is_wrapped;    /* {"type": "function", "function": …} */
    const char *list;   /* the member of an object with the list; NULL: the list alone */
};

static const struct shape shapes[] = {
    {"openai", "parameters", true, NULL},
    {"anthropic", "input_schema", false, NULL},
    {"mcp", "inputSchema", false, "tools"},
};

static const struct shape *find_shape(const char *format)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!format || strcmp(shapes[i].format, format) == 0)
            return &shapes[i];
    }
    return NULL;
}

/* Cuts text after so many characters. */
static void clip(struct buf *text, size_t max)
{
    size_t at = 0;

    for (size_t n = 0; at < text->len; at++) {
        if (!utf8_continues((char)text->data[at]) && n++ == max)
            break;
    }
    text->len = at;
}

/* What a model is told about a tool. */
static void write_description(struct json_writer *w, const struct tool *tool)
{
    _cleanup_buf_ struct buf text = buf_init(64 * 1024);
    const char *own =
        tool->about.parser.description ? tool->about.parser.description : tool->about.doc;

    if (!tool->script)
        (void)buf_printf(&text, "%s%s%s", tool->summary, own ? "\n\n" : "", own ? own : "");
    else
        (void)buf_printf(&text, "%s%sRuns %s of the skill %s: %s", own ? own : "",
                         own ? "\n\n" : "", tool->script, tool->skill, tool->summary);
    clip(&text, DESCRIPTION_MAX);
    json_write_text(w, "description", text.data, text.len);
}

/* The schema of what is the tool's own. */
static struct json_slice own_schema(const struct tool *tool, struct buf *text)
{
    struct json_slice checked;

    /* One that is too large for anybody is as good as none. */
    if (tool->schema)
        (void)buf_append(text, tool->schema, strlen(tool->schema));
    else if (tool_takes_argv(tool))
        (void)schema_write(&tool->about.parser, text);
    if (json_text_check((char *)text->data, text->len, &checked, NULL) == 0)
        return checked;
    return (struct json_slice){schema_open, strlen(schema_open)};
}

static void write_schema(struct json_writer *w, const struct tool *tool, const char *key)
{
    _cleanup_buf_ struct buf text = buf_init(SCHEMA_BYTES_MAX);
    _cleanup_buf_ struct buf with_files = buf_init(2 * SCHEMA_BYTES_MAX);
    struct json_slice schema = own_schema(tool, &text);

    if (tool_takes_files(tool) && schema_append_files(schema, &with_files) == 0)
        schema = (struct json_slice){(char *)with_files.data, with_files.len};
    json_write_value(w, key, schema);
}

static void write_tool(struct json_writer *w, const struct shape *shape,
                       const struct tool *tool)
{
    json_write_open(w, NULL, '{');
    if (shape->is_wrapped) {
        json_write_string(w, "type", "function");
        json_write_open(w, "function", '{');
    }
    json_write_string(w, "name", tool->name);
    write_description(w, tool);
    write_schema(w, tool, shape->schema);
    if (shape->is_wrapped)
        json_write_close(w, '}');
    json_write_close(w, '}');
}

static int write_at_turn(struct daemon *d, const char *tenant, struct json_writer *w,
                         const struct shape *shape, const struct tool *tool, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, d, TURN_LOOK, tenant, err);

    if (r == 0)
        write_tool(w, shape, tool);
    return r;
}

/* What cannot be read now says less. */
static int describe(struct daemon *d, const char *tenant, struct tool *tool,
                    uint64_t deadline_ns, struct err *err)
{
    int r = tool_catalog_describe(d, tenant, tool, deadline_ns, err);

    /* Nobody waits for a turn where something is only asked for: it is asked for again. */
    return r == -EAGAIN || r == -EREMOTEIO || r == -ENOBUFS || (r == -EBUSY && deadline_ns == 0)
               ? 0
               : r;
}

/* Asks for everything that has to be looked at. */
static int ask_all(struct daemon *d, const char *tenant, struct tool_catalog *tools,
                   struct err *err)
{
    for (size_t i = 0; i < tools->n; i++) {
        int r = describe(d, tenant, &tools->items[i], 0, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Writes all tools, each when it was waited for, and forgets it: what is known of one may be
   much larger than its text. */
static int write_all(struct daemon *d, const char *tenant, const struct shape *shape,
                     struct tool_catalog *tools, struct json_writer *w, struct err *err)
{
    uint64_t deadline_ns = tool_catalog_deadline_ns(d);
    int r = ask_all(d, tenant, tools, err);

    for (size_t i = 0; r == 0 && i < tools->n; i++) {
        struct tool *tool = &tools->items[i];
        size_t before = w->out.len;

        r = describe(d, tenant, tool, deadline_ns, err);
        if (r < 0)
            return r;
        r = write_at_turn(d, tenant, w, shape, tool, err);
        if (r < 0)
            return r;
        tool_catalog_forget(tools, tool);
        r = tool_catalog_hold(tools, w->out.len - before, err);
    }
    return r;
}

static int write_list(struct daemon *d, const char *tenant, const struct shape *shape,
                      struct json_writer *w, struct err *err)
{
    _cleanup_tool_catalog_ struct tool_catalog tools = {0};
    int r = tool_catalog_load(d, tenant, &tools, err);

    return r < 0 ? r : write_all(d, tenant, shape, &tools, w, err);
}

void route_tool_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const struct shape *shape = find_shape(request->query[0]);
    struct json_writer w = json_writer_init(LIST_MAX);
    struct err err = {0};
    int r;

    if (!shape) {
        http_reply_error(reply, 400, "bad_request",
                         "\"format\" must be openai, anthropic or mcp");
        return;
    }
    if (shape->list)
        json_write_open(&w, NULL, '{');
    json_write_open(&w, shape->list, '[');
    r = write_list(d, request->caller.tenant, shape, &w, &err);
    json_write_close(&w, ']');
    if (shape->list)
        json_write_close(&w, '}');
    /* Nobody asked for a tool that is none: only a load is not our fault. */
    (void)failure_or_json(reply, 200, &w, r < 0 && r != -EBUSY && r != -E2BIG ? -EIO : r, &err);
}

/* *ret_pending: somebody looks at what it takes. */
static int translate(struct daemon *d, const char *tenant, const struct tool_call *call,
                     struct buf *ret, bool *ret_pending, struct err *err)
{
    _cleanup_tool_ struct tool tool = {0};
    int r = tool_catalog_find(d, tenant, call->name, &tool, err);

    if (r < 0)
        return r;
    r = tool_catalog_describe(d, tenant, &tool, tool_catalog_deadline_ns(d), err);
    *ret_pending = tool.is_pending;
    return r < 0 ? r : tool_call_translate(call, &tool, ret, err);
}

/* The request of an execution that a call stands for. False when *reply says why there is none.
 */
static bool make_request(struct daemon *d, const char *tenant, const struct tool_call *call,
                         struct buf *ret, struct http_reply *reply)
{
    struct err err = {0};
    bool pending = false;
    int r = translate(d, tenant, call, ret, &pending, &err);

    if (r == -EAGAIN && pending) {
        http_reply_error(reply, 503, "not_ready",
                         "what the tool %s takes is still being looked at", call->name);
        reply->retry_after_s = 1;
    } else if (r < 0) {
        failure_reply(reply, r, &err);
    }
    return r == 0;
}

static int read_call(struct spool *body, const char **ret_text, struct tool_call *ret,
                     struct err *err)
{
    int r = spool_view(body, ret_text);

    return r < 0 ? r : tool_call_parse(*ret_text, (size_t)body->size, ret, err);
}

void route_tool_call(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_buf_ struct buf json = buf_init(LIMIT_REQUEST_BYTES + LIMIT_MIB);
    struct spool said;
    _cleanup_tool_call_ struct tool_call call = {0};
    struct err err = {0};
    const char *text = NULL;
    int r;

    if (request->is_multipart) {
        http_reply_error(reply, 415, "unsupported_type", "a call must be application/json");
        return;
    }
    if (!http_request_receive(request))
        return;
    r = read_call(&request->body, &text, &call, &err);
    said = request->body;
    if (r < 0)
        failure_reply(reply, r, &err);
    else if (make_request(d, request->caller.tenant, &call, &json, reply)) {
        int kept;

        /* From here on it is an execution like any other, but for what its key belongs to. */
        request->body = spool_init(d->tmp_fd, LIMIT_REQUEST_BYTES + LIMIT_MIB);
        kept = spool_append(&request->body, json.data, json.len);
        /* It may take as long as an execution: nothing large waits with it in memory. */
        buf_finish(&json);
        if (kept < 0)
            http_reply_error(reply, 500, "internal_error", "cannot keep the request");
        else
            execution_answer(d, request, text, (size_t)said.size, reply);
        spool_finish(&request->body);
        request->body = said;
    }
}
