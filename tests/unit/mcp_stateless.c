/* SPDX-License-Identifier: Apache-2.0 */
/* The MCP server for clients of 2026-07-28: no session, each request names its version. */
#include "tests/unit/mcp_script.h"

#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define SERVER "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"skillvm\""

static int setup(void **state)
{
    (void)state;
    script_begin(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return script_end() ? 0 : -1;
}

/* members follow _meta in the parameters, each with a comma before it. */
static void ask(const char *id, const char *version, const char *method, const char *members)
{
    char line[1024];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{\"_meta\":"
             "{\"io.modelcontextprotocol/protocolVersion\":%s,"
             "\"io.modelcontextprotocol/clientCapabilities\":{},\"progressToken\":9}%s}}",
             id, method, version, members);
    script_send(line);
}

static void modern(const char *id, const char *method, const char *members)
{
    ask(id, "\"2026-07-28\"", method, members);
}

static void it_can_be_discovered(void **state)
{
    (void)state;
    modern("1", "server/discover", "");
    const char *line = script_expect(
        "\"id\":1,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-"
        "28\","
        "\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"],\"capabilities\":{");
    assert_non_null(strstr(line, "\"cacheScope\":\"private\""));
    assert_non_null(strstr(line, SERVER));
    script_send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server/discover\"}");
    script_expect("\"id\":2,\"result\":{\"resultType\":\"complete\"");
}

static void other_versions_are_refused_with_a_list(void **state)
{
    static const char *const bad[] = {"\"1900-01-01\"", "\"2025-11-25\"", "3", "{}"};
    char part[256];
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ask("1", bad[i], "tools/list", "");
        snprintf(part, sizeof(part),
                 "\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\","
                 "\"2025-03-26\",\"2024-11-05\"],\"requested\":%s}}}",
                 bad[i]);
        assert_non_null(strstr(script_expect(part), "\"error\":{\"code\":-32022"));
    }
}

static void requests_need_no_session(void **state)
{
    const char *list = "{\"tools\":[{\"name\":\"a\"}]}";
    (void)state;

    script_page("/v1/tools?format=mcp", 200, "application/json", list, strlen(list));
    modern("1", "tools/list", "");
    script_expect(",{\"name\":\"a\"}],\"resultType\":\"complete\","
                  "\"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{" SERVER);
    /* The slash as some write it. */
    script_send(
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools\\/list\",\"params\":{\"_meta\":"
        "{\"io.modelcontextprotocol\\/protocolVersion\":\"2026-07-28\"}}}");
    script_expect("\"id\":2,\"result\":{\"tools\":[{\"name\":\"list_skills\",");
    modern("3", "resources/read", ",\"uri\":\"skill://nobody/1/SKILL.md\"");
    script_expect("\"id\":3,\"error\":{\"code\":-32602");
    modern("4", "ping", "");
    script_expect("\"id\":4,\"error\":{\"code\":-32601");
    modern("5", "initialize", "");
    script_expect("\"id\":5,\"error\":{\"code\":-32601");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/list\"}");
    script_expect("\"id\":6,\"error\":{\"code\":-32600");
}

static void results_are_complete(void **state)
{
    (void)state;
    script_tool(
        "list", 200,
        "status {\"execution_id\":\"exec_1\",\"status\":\"running\"}\n"
        "result {\"execution_id\":\"exec_1\",\"status\":\"success\",\"output\":[1, 2]}\n",
        false);
    modern("1", "tools/call", ",\"name\":\"list\"");
    script_expect("\"params\":{\"progressToken\":9,\"progress\":1,\"message\":\"running\"}");
    const char *line = script_expect("\"structuredContent\":[1,2],\"isError\":false,\"_meta\":"
                                     "{\"skillvm/execution\":{\"execution_id\":\"exec_1\","
                                     "\"status\":\"success\"}," SERVER);
    assert_non_null(strstr(line, "},\"resultType\":\"complete\"}}"));
    script_tool("bad", 400, "no", false);
    modern("2", "tools/call", ",\"name\":\"bad\"");
    script_expect("\"isError\":true,\"resultType\":\"complete\"}}");
}

static void who_listens_is_told(void **state)
{
    (void)state;
    script_begin(20);
    script_page("/v1/skills", 200, "application/json", "[]", 2);
    modern("\"l1\"", "subscriptions/listen",
           ",\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true}");
    script_expect(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
        "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"l1\"},"
        "\"notifications\":{\"toolsListChanged\":true}}}");
    modern("2", "subscriptions/listen", ",\"notifications\":{\"resourcesListChanged\":true}");
    script_expect("{\"resourcesListChanged\":true}");
    modern("3", "subscriptions/listen", "");
    script_expect("\"id\":3,\"error\":{\"code\":-32602");
    script_expect_nothing();
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                "{\"requestId\":2}}");
    script_expect_nothing();
    script_page("/v1/skills", 200, "application/json", "[1]", 3);
    script_expect(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","
        "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"l1\"}}}");
    script_expect_nothing();
    assert_true(script_end());
}

static void in_a_session_there_is_no_listening(void **state)
{
    (void)state;
    script_initialize("2025-11-25");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":"
                "{\"notifications\":{}}}");
    script_expect("\"id\":1,\"error\":{\"code\":-32601");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    script_expect("\"id\":2,\"result\":{}}");
    /* Both kinds of requests may come to one process. */
    modern("3", "resources/templates/list", "");
    script_expect("\"id\":3,\"result\":{\"resourceTemplates\":");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_can_be_discovered, setup, teardown),
        cmocka_unit_test_setup_teardown(other_versions_are_refused_with_a_list, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests_need_no_session, setup, teardown),
        cmocka_unit_test_setup_teardown(results_are_complete, setup, teardown),
        cmocka_unit_test(who_listens_is_told),
        cmocka_unit_test_setup_teardown(in_a_session_there_is_no_listening, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
