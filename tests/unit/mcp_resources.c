/* SPDX-License-Identifier: Apache-2.0 */
/* The MCP server's resources: lists, templates, texts and blobs, and what is not there. */
#include "tests/unit/mcp_script.h"

#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    (void)state;
    script_begin(0);
    script_initialize("2025-06-18");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return script_end() ? 0 : -1;
}

static void read_uri(const char *uri)
{
    char line[1024];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":"
             "{\"uri\":\"%s\"}}",
             uri);
    script_send(line);
}

static void page(const char *path, const char *type, const char *text)
{
    script_page(path, 200, type, text, strlen(text));
}

static void skills_are_resources(void **state)
{
    (void)state;
    page("/v1/skills", "application/json",
         "[{\"name\":\"add\",\"version\":\"1.0.0\",\"description\":\"Adds.\"},"
         "{\"name\":\"wörter\",\"version\":\"2\",\"description\":\"x\"},{\"odd\":1}]");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}");
    script_expect("{\"resources\":[{\"uri\":\"skill://add/1.0.0/SKILL.md\",\"name\":\"add\","
                  "\"description\":\"Adds.\",\"mimeType\":\"text/markdown\"},"
                  "{\"uri\":\"skill://w%C3%B6rter/2/SKILL.md\",\"name\":\"wörter\","
                  "\"description\":\"x\",\"mimeType\":\"text/markdown\"}]}");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/templates/list\"}");
    const char *line = script_expect("\"uriTemplate\":\"skill://{name}/{version}/SKILL.md\"");
    assert_non_null(strstr(line, "\"uriTemplate\":\"execution://{id}/files/{+path}\""));
}

static void call_tool(const char *name, const char *arguments)
{
    char line[1024];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
             "{\"name\":\"%s\",\"arguments\":%s}}",
             name, arguments);
    script_send(line);
}

static void skills_are_told_by_tools(void **state)
{
    static const char none[] =
        "{\"error\":\"not_found\",\"message\":\"there is no skill named a/b\"}";

    (void)state;
    page("/v1/skills", "application/json",
         "[{\"name\":\"add\",\"version\":\"2\",\"description\":\"Adds.\",\"digest\":\"x\"},"
         "{\"name\":\"add\",\"version\":\"1\",\"description\":\"Added.\"},"
         "{\"name\":\"adder\",\"version\":\"3\",\"description\":\"\"},{\"odd\":1}]");
    call_tool("list_skills", "{}");
    script_expect("\"structuredContent\":{\"skills\":[{\"name\":\"add\",\"version\":\"2\","
                  "\"description\":\"Adds.\"},{\"name\":\"adder\",\"version\":\"3\","
                  "\"description\":\"\"}]},\"isError\":false}");
    page("/v1/skills/a%20b/latest", "application/json",
         "{\"name\":\"a b\",\"version\":\"2\",\"description\":\"Adds.\",\"files\":["
         "{\"path\":\"main.py\",\"size_bytes\":12},{\"odd\":1}],\"instructions\":\"Read\"}");
    call_tool("get_skill_info", "{\"name\":\"a b\"}");
    script_expect("\"text\":\"---\\nname: \\\"a b\\\"\\ndescription: \\\"Adds.\\\"\\n"
                  "version: \\\"2\\\"\\n---\\n\\nRead\\n\\nFiles of the skill:\\n\\n"
                  "- main.py (12 bytes)\\n\"}],\"isError\":false}");
    script_page("/v1/skills/a%2Fb/1", 404, "application/json", none, sizeof(none) - 1);
    call_tool("get_skill_info", "{\"name\":\"a/b\",\"version\":\"1\"}");
    script_expect("\"isError\":true");
    call_tool("get_skill_info", "{}");
    script_expect("must be the name of a skill");
    call_tool("get_skill_info", "{\"name\":\"a\",\"version\":2}");
    script_expect("must be the name of a skill");
}

static void instructions_are_read(void **state)
{
    (void)state;
    page("/v1/skills/add/latest", "application/json",
         "{\"name\":\"add\",\"version\":\"1.0.0\",\"description\":\"Adds: \\\"two\\\"\","
         "\"license\":null,\"lang\":\"python\",\"instructions\":\"# Add\\n\\nGive a and "
         "b.\\n\"}");
    read_uri("skill://add/latest/SKILL.md");
    script_expect("{\"contents\":[{\"uri\":\"skill://add/latest/SKILL.md\",\"mimeType\":"
                  "\"text/markdown\",\"text\":\"---\\nname: \\\"add\\\"\\ndescription: "
                  "\\\"Adds: \\\\\\\"two\\\\\\\"\\\"\\nversion: \\\"1.0.0\\\"\\nlang: "
                  "\\\"python\\\"\\n---\\n\\n# Add\\n\\nGive a and b.\\n\"}]}");
}

static void files_are_text_or_blobs(void **state)
{
    (void)state;
    page("/v1/executions/exec_1/files/a.csv", "text/csv; charset=utf-8", "n\n1\n");
    read_uri("execution://exec_1/files/a.csv");
    script_expect("\"mimeType\":\"text/csv\",\"text\":\"n\\n1\\n\"}");
    script_page("/v1/executions/exec_1/files/b.bin", 200, "", "\x00\xff\x01\x02", 4);
    read_uri("execution://exec_1/files/b.bin");
    script_expect("\"mimeType\":\"application/octet-stream\",\"blob\":\"AP8BAg==\"}");
    script_page("/v1/executions/exec_1/files/c", 200, "", "\xff\xfe", 2);
    read_uri("execution://exec_1/files/c");
    script_expect("\"blob\":\"//4=\"}");
    script_page("/v1/executions/exec_1/files/d", 200, "", "abc\0", 4);
    read_uri("execution://exec_1/files/d");
    script_expect("\"blob\":\"YWJjAA==\"}");
    script_page("/v1/executions/exec_1/files/e", 200, "text/plain", "", 0);
    read_uri("execution://exec_1/files/e");
    script_expect("\"text\":\"\"}");
}

static void large_files_are_refused(void **state)
{
    size_t len = (8u << 20) + 1;
    char *data = calloc(1, len);
    (void)state;

    assert_non_null(data);
    memset(data, 0xff, len);
    script_page("/v1/executions/e/files/big", 200, "", data, len);
    read_uri("execution://e/files/big");
    script_expect("\"id\":1,\"error\":{\"code\":-32603,\"message\":\"it has more than 8 MiB");
    script_page("/v1/executions/e/files/big", 200, "", data, len - 1);
    read_uri("execution://e/files/big");
    script_expect("\"blob\":\"////");
    free(data);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    read_uri("skill://nobody/1/SKILL.md");
    script_expect("\"id\":1,\"error\":{\"code\":-32002");
    read_uri("execution://e/files/../../../v1/skills");
    script_expect("\"id\":1,\"error\":{\"code\":-32002");
    read_uri("file:///etc/passwd");
    script_expect("\"id\":1,\"error\":{\"code\":-32002");
    script_page("/v1/executions/e/files/x", 500, "", "", 0);
    read_uri("execution://e/files/x");
    script_expect("\"id\":1,\"error\":{\"code\":-32603");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/read\",\"params\":"
                "{\"uri\":3}}");
    script_expect("\"id\":2,\"error\":{\"code\":-32602");
    page("/v1/skills", "application/json", "oops");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}");
    script_expect("\"id\":1,\"error\":{\"code\":-32603");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(skills_are_resources, setup, teardown),
        cmocka_unit_test_setup_teardown(skills_are_told_by_tools, setup, teardown),
        cmocka_unit_test_setup_teardown(instructions_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_text_or_blobs, setup, teardown),
        cmocka_unit_test_setup_teardown(large_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_said, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
