/* SPDX-License-Identifier: Apache-2.0 */
/* The MCP server: lifecycle, dispatch, batches, tools, progress, cancellation. */
#include "tests/unit/mcp_script.h"

#include "tests/unit/cmocka_all.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT(status, rest)                                                                   \
    "{\"execution_id\":\"exec_1\",\"status\":\"" status "\"," rest ",\"duration_ms\":5}"
#define STATUS(status) "status {\"execution_id\":\"exec_1\",\"status\":\"" status "\"}\n"

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

static void call(const char *id, const char *method, const char *params)
{
    char line[4096];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":%s}", id, method,
             params);
    script_send(line);
}

static void expect_version(const char *asked, const char *answered)
{
    char params[128];

    script_begin(0);
    snprintf(params, sizeof(params), "{\"protocolVersion\":\"%s\"}", asked);
    call("1", "initialize", params);
    snprintf(params, sizeof(params), "\"result\":{\"protocolVersion\":\"%s\",", answered);
    const char *line = script_expect(params);
    assert_non_null(strstr(line, "\"serverInfo\":{\"name\":\"skillvm\""));
    assert_non_null(strstr(line, "\"capabilities\":{\"tools\":{\"listChanged\":false}"));
    assert_true(script_end());
}

static void a_version_is_agreed_on(void **state)
{
    (void)state;
    expect_version("2025-11-25", "2025-11-25");
    expect_version("2025-06-18", "2025-06-18");
    expect_version("2025-03-26", "2025-03-26");
    expect_version("2024-11-05", "2024-11-05");
    expect_version("2024-10-07", "2025-11-25");
    expect_version("9999-01-01", "2025-11-25");
    expect_version("", "2025-11-25");
}

static void initialize_comes_first_and_once(void **state)
{
    (void)state;
    call("1", "ping", "{}");
    script_expect("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    call("2", "tools/list", "{}");
    script_expect("\"id\":2,\"error\":{\"code\":-32600");
    call("3", "initialize", "{}");
    script_expect("\"id\":3,\"error\":{\"code\":-32602");
    script_initialize("2025-06-18");
    call("4", "initialize", "{\"protocolVersion\":\"2025-06-18\"}");
    script_expect("\"id\":4,\"error\":{\"code\":-32600");
}

static void what_is_wrong_is_answered(void **state)
{
    (void)state;
    script_initialize("2025-06-18");
    script_send("{oops");
    script_expect("\"id\":null,\"error\":{\"code\":-32700");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    script_expect("\"id\":null,\"error\":{\"code\":-32700");
    script_send(NULL);
    script_expect("\"id\":null,\"error\":{\"code\":-32700");
    script_send("{\"id\":1,\"method\":\"ping\"}");
    script_expect("\"id\":1,\"error\":{\"code\":-32600");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}");
    script_expect("\"id\":null,\"error\":{\"code\":-32600");
    call("\"a\"", "prompts/list", "{}");
    script_expect("\"id\":\"a\",\"error\":{\"code\":-32601");
    call("5", "ping", "[]");
    script_expect("\"id\":5,\"error\":{\"code\":-32600");
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\"}");
    script_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                "{\"requestId\":99}}");
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}");
    script_expect_nothing();
}

static void batches_belong_to_one_version(void **state)
{
    const char *batch = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},7,"
                        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
                        "{\"name\":\"echo\"}}]";
    (void)state;

    script_send(batch);
    script_expect("\"id\":null,\"error\":{\"code\":-32600");
    script_initialize("2025-03-26");
    script_tool("echo", 200, "result " RESULT("success", "\"output\":1") "\n", false);
    script_send(batch);
    const char *line = script_expect("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"
                                     "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                                     "-32600");
    assert_non_null(strstr(line, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":"));
    assert_int_equal(line[strlen(line) - 2], ']');
    script_send("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]");
    script_send("[]");
    script_expect("\"id\":null,\"error\":{\"code\":-32600");
    assert_true(script_end());

    script_begin(0);
    script_initialize("2025-06-18");
    script_send(batch);
    script_expect("\"id\":null,\"error\":{\"code\":-32600");
}

static void tools_come_in_pages(void **state)
{
    struct buf list = buf_init(1u << 20);
    char cursor[128];
    (void)state;

    script_initialize("2025-06-18");
    call("1", "tools/list", "{}");
    script_expect("\"id\":1,\"error\":{\"code\":-32603");
    (void)buf_printf(&list, "{\"tools\":[");
    for (int i = 0; i < 205; i++)
        (void)buf_printf(&list, "%s\n {\"name\": \"t%03d\", \"inputSchema\": {}}", i ? "," : "",
                         i);
    (void)buf_printf(&list, "]}");
    script_page("/v1/tools?format=mcp", 200, "application/json", list.data, list.len);
    buf_finish(&list);

    call("2", "tools/list", "{}");
    const char *line = script_expect("{\"tools\":[{\"name\":\"list_skills\",");
    assert_non_null(strstr(line, "},{\"name\":\"get_skill_info\","));
    assert_non_null(strstr(line, "}},{\"name\":\"t000\",\"inputSchema\":{}},"));
    assert_non_null(strstr(line, "t099"));
    assert_null(strstr(line, "t100"));
    const char *next = strstr(line, "\"nextCursor\":");
    assert_non_null(next);
    snprintf(cursor, sizeof(cursor), "{\"cursor\":%.*s}", (int)strcspn(next + 13, "}"),
             next + 13);
    call("3", "tools/list", cursor);
    line = script_expect("{\"tools\":[{\"name\":\"t100\"");
    next = strstr(line, "\"nextCursor\":");
    snprintf(cursor, sizeof(cursor), "{\"cursor\":%.*s}", (int)strcspn(next + 13, "}"),
             next + 13);
    call("4", "tools/list", cursor);
    line = script_expect("{\"tools\":[{\"name\":\"t200\"");
    assert_null(strstr(line, "nextCursor"));
    call("5", "tools/list", "{\"cursor\":\"nowhere\"}");
    script_expect("\"id\":5,\"error\":{\"code\":-32602");
}

static void arguments_pass_unchanged(void **state)
{
    (void)state;
    script_initialize("2025-06-18");
    script_tool("echo", 200,
                "result " RESULT("success", "\"output\":{\"n\":12345678901234567890}") "\n",
                false);
    call("1", "tools/call",
         "{\"name\":\"echo\",\"arguments\":{\"n\": 12345678901234567890, \"x\":1.10}}");
    script_expect("\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
                  "\"{\\\"n\\\":12345678901234567890}\"}],"
                  "\"structuredContent\":{\"n\":12345678901234567890},\"isError\":false,"
                  "\"_meta\":{\"skillvm/execution\":{\"execution_id\":\"exec_1\","
                  "\"status\":\"success\",\"duration_ms\":5}}}");
    assert_non_null(
        strstr(script_last_call(), "\"arguments\":{\"n\":12345678901234567890,\"x\":1.10}}"));
    call("2", "tools/call", "{\"name\":\"echo\"}");
    script_next();
    assert_non_null(strstr(script_last_call(), "\"arguments\":{}}"));
}

static void a_server_may_leave_tools_without_a_network(void **state)
{
    const struct mcp_config config = {.no_network = true};

    (void)state;
    assert_true(script_end());
    script_begin_with(&config);
    script_initialize("2025-06-18");
    script_tool("echo", 200, "result " RESULT("success", "\"output\":1") "\n", false);
    call("1", "tools/call", "{\"name\":\"echo\"}");
    script_next();
    assert_string_equal(script_last_call(),
                        "{\"name\":\"echo\",\"arguments\":{},\"network\":false}\n");
}

static void results_say_what_happened(void **state)
{
    (void)state;
    script_initialize("2025-06-18");
    script_tool(
        "print", 200,
        "result " RESULT("success", "\"output\":null,\"stdout\":\"hello\\nyou\\n\"") "\n",
        false);
    call("1", "tools/call", "{\"name\":\"print\"}");
    script_expect("[{\"type\":\"text\",\"text\":\"hello\\nyou\\n\"}],\"isError\":false");
    script_tool("list", 200, "result " RESULT("success", "\"output\":[1, 2]") "\n", false);
    call("2", "tools/call", "{\"name\":\"list\"}");
    assert_null(strstr(script_expect("\"text\":\"[1,2]\"}],\"isError\":false"), "structured"));
    script_tool("fail", 200,
                "result " RESULT("failed", "\"output\":null,\"error\":\"exit status 3\","
                                           "\"stderr\":\"Traceback\\nboom\\n\"") "\n",
                false);
    call("3", "tools/call", "{\"name\":\"fail\"}");
    script_expect("\"text\":\"exit status 3\\n\\nstandard error:\\nTraceback\\nboom\\n\"}],"
                  "\"isError\":true");
    script_tool("files", 200,
                "result " RESULT("success", "\"output\":null,\"stdout\":\"\",\"files_list\":"
                                            "[\"a b.csv\",\"d/r.md\"]") "\n",
                false);
    call("4", "tools/call", "{\"name\":\"files\"}");
    script_expect("[{\"type\":\"text\",\"text\":\"(no output)\"},{\"type\":\"resource_link\","
                  "\"uri\":\"execution://exec_1/files/a%20b.csv\",\"name\":\"a b.csv\"},"
                  "{\"type\":\"resource_link\",\"uri\":\"execution://exec_1/files/d/r.md\","
                  "\"name\":\"d/r.md\"}]");
}

static void old_versions_have_text_only(void **state)
{
    (void)state;
    script_initialize("2024-11-05");
    script_tool("files", 200,
                "result " RESULT("success", "\"output\":{},\"files_list\":[\"a\"]") "\n",
                false);
    call("4", "tools/call", "{\"name\":\"files\"}");
    const char *line =
        script_expect("{\"type\":\"text\",\"text\":\"execution://exec_1/files/a\"}"
                      "],\"isError\":false");
    assert_null(strstr(line, "structuredContent"));
}

static void refusals_are_told_apart(void **state)
{
    (void)state;
    script_initialize("2025-06-18");
    call("1", "tools/call", "{}");
    script_expect("\"id\":1,\"error\":{\"code\":-32602");
    call("2", "tools/call", "{\"name\":\"x\",\"arguments\":[]}");
    script_expect("\"id\":2,\"error\":{\"code\":-32602");
    call("3", "tools/call", "{\"name\":\"nobody\"}");
    script_expect("\"id\":3,\"error\":{\"code\":-32602,\"message\":\"unknown tool");
    script_tool("bad", 400, "\"n\" is missing", false);
    call("4", "tools/call", "{\"name\":\"bad\"}");
    script_expect(
        "\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\\\"n\\\" is "
        "missing\"}],\"isError\":true}");
    script_tool("busy", 429, "too many wait", false);
    call("5", "tools/call", "{\"name\":\"busy\"}");
    script_expect("\"text\":\"too many wait (try again in 3 s)\"}],\"isError\":true}");
    script_tool("down", 0, NULL, false);
    call("6", "tools/call", "{\"name\":\"down\"}");
    script_expect("\"id\":6,\"error\":{\"code\":-32603,\"message\":\"no daemon listens\"}");
    script_tool("lost", 200,
                STATUS("running") "error {\"error\":\"internal_error\","
                                  "\"message\":\"the disk is full\"}\n",
                false);
    call("7", "tools/call", "{\"name\":\"lost\"}");
    script_expect("\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the disk is full\"}");
    script_tool("cut", 200, STATUS("running"), false);
    call("8", "tools/call", "{\"name\":\"cut\"}");
    script_expect("\"id\":8,\"error\":{\"code\":-32603");
    script_tool("broken", 200, "stdout {\"data\":1}\n", false);
    call("9", "tools/call", "{\"name\":\"broken\"}");
    script_expect("\"id\":9,\"error\":{\"code\":-32603");
}

static void progress_is_told_to_who_asks(void **state)
{
    static const char events[] = STATUS("accepted") STATUS(
        "running") "stdout {\"data\":\"one\\ntw\"}\n"
                   "stderr {\"data\":\"o\\n\"}\nresult " RESULT("success", "\"output\":1") "\n";
    (void)state;

    script_initialize("2025-06-18");
    script_tool("talk", 200, events, false);
    call("1", "tools/call", "{\"name\":\"talk\"}");
    script_expect("\"id\":1,\"result\"");
    call("2", "tools/call", "{\"name\":\"talk\",\"_meta\":{\"progressToken\":\"p\\u0031\"}}");
    script_expect("\"method\":\"notifications/progress\",\"params\":{\"progressToken\":"
                  "\"p\\u0031\",\"progress\":1,\"message\":\"accepted\"}");
    script_expect("\"progress\":2,\"message\":\"running\"");
    script_expect("\"progress\":3,\"message\":\"one\\ntwo\"");
    script_expect("\"id\":2,\"result\"");
    call("3", "tools/call", "{\"name\":\"talk\",\"_meta\":{\"progressToken\":{}}}");
    script_expect("\"id\":3,\"result\"");
    script_expect_nothing();
}

static void much_output_is_shortened(void **state)
{
    struct buf events = buf_init(1u << 20);
    (void)state;

    for (int i = 0; i < 2000; i++)
        (void)buf_printf(&events, "stdout {\"data\":\"line %d\\n\"}\n", i);
    (void)buf_printf(&events, "result " RESULT("success", "\"output\":1") "\n");
    script_initialize("2025-06-18");
    script_tool("flood", 200, buf_cstr(&events), false);
    call("7", "tools/call", "{\"name\":\"flood\",\"_meta\":{\"progressToken\":7}}");
    size_t n = 0;
    const char *line = script_next();
    for (; strstr(line, "notifications/progress"); line = script_next(), n++)
        assert_true(strlen(line) < 8192);
    assert_non_null(strstr(line, "\"id\":7,\"result\""));
    assert_true(n >= 1 && n < 100);
    buf_finish(&events);
}

static void a_cancelled_call_is_not_answered(void **state)
{
    (void)state;
    script_initialize("2025-06-18");
    script_tool("slow", 200, STATUS("running") "result " RESULT("success", "\"output\":1") "\n",
                true);
    call("\"c1\"", "tools/call", "{\"name\":\"slow\",\"_meta\":{\"progressToken\":1}}");
    script_expect("\"message\":\"running\"");
    call("2", "ping", "{}");
    script_expect("\"id\":2,\"result\":{}");
    call("\"c1\"", "tools/call", "{\"name\":\"slow\"}");
    script_expect("\"id\":\"c1\",\"error\":{\"code\":-32603");
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                "{\"requestId\":\"c1\",\"reason\":\"enough\"}}");
    assert_int_equal(script_deletes("/v1/executions/exec_1"), 1);
    script_release();
    script_expect_nothing();
    call("\"c1\"", "ping", "{}");
    script_expect("\"id\":\"c1\",\"result\":{}");
}

static void calls_run_side_by_side_and_are_bounded(void **state)
{
    char id[16];
    (void)state;

    script_initialize("2025-06-18");
    script_tool("slow", 200, "result " RESULT("success", "\"output\":1") "\n", true);
    for (unsigned i = 0; i < MCP_CALLS_MAX; i++) {
        snprintf(id, sizeof(id), "%u", i);
        call(id, "tools/call", "{\"name\":\"slow\"}");
    }
    call("1000", "tools/call", "{\"name\":\"slow\"}");
    script_expect("\"id\":1000,\"error\":{\"code\":-32603,\"message\":\"too many requests");
    call("1001", "ping", "{}");
    script_expect("\"id\":1001,\"result\":{}");
    script_expect_nothing();
    script_release();
    for (unsigned i = 0; i < MCP_CALLS_MAX; i++)
        script_expect("\"result\":{\"content\":");
    call("1002", "tools/call", "{\"name\":\"slow\"}");
    script_expect("\"id\":1002,\"result\"");
}

static void the_end_cancels_what_runs(void **state)
{
    (void)state;
    script_begin(0);
    script_initialize("2025-06-18");
    script_tool("slow", 200, STATUS("running") "result " RESULT("success", "\"output\":1") "\n",
                true);
    call("1", "tools/call", "{\"name\":\"slow\",\"_meta\":{\"progressToken\":1}}");
    script_expect("\"message\":\"running\"");
    assert_true(script_end());
    assert_int_equal(script_deletes("/v1/executions/exec_1"), 1);
}

static void new_skills_are_announced(void **state)
{
    (void)state;
    script_begin(20);
    script_page("/v1/skills", 200, "application/json", "[]", 2);
    script_initialize("2025-06-18");
    script_wait_given("/v1/skills");
    script_expect_nothing();
    script_page("/v1/skills", 200, "application/json", "[{\"name\":\"a\"}]", 14);
    script_expect("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    script_expect("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}");
    script_expect_nothing();
    assert_true(script_end());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_agreed_on),
        cmocka_unit_test_setup_teardown(initialize_comes_first_and_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_belong_to_one_version, setup, teardown),
        cmocka_unit_test_setup_teardown(tools_come_in_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_pass_unchanged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_may_leave_tools_without_a_network, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(results_say_what_happened, setup, teardown),
        cmocka_unit_test_setup_teardown(old_versions_have_text_only, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_is_told_to_who_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(much_output_is_shortened, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_call_is_not_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_run_side_by_side_and_are_bounded, setup,
                                        teardown),
        cmocka_unit_test(the_end_cancels_what_runs),
        cmocka_unit_test(new_skills_are_announced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
