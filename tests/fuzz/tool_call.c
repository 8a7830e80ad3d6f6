/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of a call of a tool. What must hold: what it becomes is the body of an
 * execution, which is taken or refused with a reason, for a tool of every kind.
 */
#include "api/daemon/routes/tool_call.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(struct buf *body)
{
    struct request q;
    struct err err = {0};

    if (json_text_check((char *)body->data, body->len, NULL, NULL) < 0)
        abort();
    if (request_parse((char *)body->data, body->len, false, &q, &err) == 0) {
        if (strcmp(q.skill, "a skill") != 0 || !q.version || strcmp(q.version, "1") != 0 ||
            q.script || q.module)
            abort();
        request_finish(&q);
    } else if (err.code == 0) {
        abort();
    }
}

static void check_tool(const struct tool_call *call, const struct tool *tool)
{
    struct buf body = buf_init(LIMIT_REQUEST_BYTES);
    struct err err = {0};

    if (tool_call_translate(call, tool, &body, &err) == 0)
        check_body(&body);
    else if (err.code == 0)
        abort();
    buf_finish(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char skill[] = "a skill", version[] = "1";
    static char schema[] = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
                           "\"e\":{\"enum\":[1,\"a\"]}},\"required\":[\"n\"]}";
    static const char parser[] =
        "{\"version\":1,\"doc\":null,\"parser\":{\"description\":null,\"actions\":["
        "{\"kind\":\"store\",\"dest\":\"n\",\"options\":[\"--n\"],\"nargs\":\"+\",\"type\":"
        "\"integer\",\"required\":false},{\"kind\":\"store\",\"dest\":\"p\",\"options\":[],"
        "\"type\":\"string\",\"required\":false}]}}";
    struct tool tool = {.skill = skill, .version = version};
    struct tool_call call;
    struct err err = {0};
    char *text = malloc(size ? size : 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (tool_call_parse(text, size, &call, &err) == 0) {
        check_tool(&call, &tool);
        tool.schema = schema;
        check_tool(&call, &tool);
        tool.schema = NULL;
        if (parser_read(parser, strlen(parser), &tool.about, &err) < 0)
            abort();
        check_tool(&call, &tool);
        parser_script_finish(&tool.about);
        tool_call_finish(&call);
    } else if (err.code == 0) {
        abort();
    }
    free(text);
    return 0;
}
