/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of a call of a tool. What must hold: what it becomes is the body of an
 * execution, which is taken or refused with a reason, for a tool of every kind.
 */
#include "api/daemon/routes/tool_call.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/tools/run_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DIGEST "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void check_body(struct buf *body, bool is_code)
{
    struct request q;
    struct err err = {0};

    if (json_text_check((char *)body->data, body->len, NULL, NULL) < 0)
        abort();
    if (request_parse((char *)body->data, body->len, false, &q, &err) == 0) {
        if (is_code ? !q.code || q.skill || q.version
                    : q.code || strcmp(q.skill, "a skill") != 0 || !q.version ||
                          strcmp(q.version, "sha256:" DIGEST) != 0)
            abort();
        if (q.script || q.module)
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
        check_body(&body, tool->is_code);
    else if (err.code == 0)
        abort();
    buf_finish(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char skill[] = "a skill", version[] = "1", digest[] = DIGEST;
    static char schema[] = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
                           "\"e\":{\"enum\":[1,\"a\"]}},\"required\":[\"n\"]}";
    static const char parser[] =
        "{\"version\":1,\"doc\":null,\"parser\":{\"description\":null,\"actions\":["
        "{\"kind\":\"store\",\"dest\":\"n\",\"options\":[\"--n\"],\"nargs\":\"+\",\"type\":"
        "\"integer\",\"required\":false},{\"kind\":\"store\",\"dest\":\"p\",\"options\":[],"
        "\"type\":\"string\",\"required\":false}]}}";
    static char code_schema[2048];
    const struct tool code = {.is_code = true, .schema = code_schema};
    struct tool tool = {.skill = skill, .version = version, .digest = digest};
    struct tool_call call;
    struct err err = {0};
    char *text = malloc(size ? size : 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    (void)snprintf(code_schema, sizeof(code_schema), "%s", run_code_schema);
    if (tool_call_parse(text, size, &call, &err) == 0) {
        check_tool(&call, &tool);
        tool.schema = schema;
        check_tool(&call, &tool);
        tool.schema = NULL;
        if (parser_read(parser, strlen(parser), &tool.about, &err) < 0)
            abort();
        check_tool(&call, &tool);
        parser_script_finish(&tool.about);
        check_tool(&call, &code);
        tool_call_finish(&call);
    } else if (err.code == 0) {
        abort();
    }
    free(text);
    return 0;
}
