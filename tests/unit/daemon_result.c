/* SPDX-License-Identifier: Apache-2.0 */
/* The result JSON to the byte: what nothing is known of, and what all is known of. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/result.h"

#include <string.h>

#define ID "exec_00000000000000000000000000000001"

static void expect_text(const struct result *result, const char *text)
{
    struct buf out;

    assert_int_equal(result_write(result, &out), 0);
    assert_string_equal(buf_cstr(&out), text);
    buf_finish(&out);
}

static void of_an_execution_that_waits(void **state)
{
    const struct result result = {
        .execution_id = ID, .status = RESULT_ACCEPTED, .skill = {"x", "1", "", NULL}};

    (void)state;
    expect_text(
        &result,
        "{\"execution_id\":\"" ID "\",\"status\":\"accepted\",\"output\":null,"
        "\"files_url\":null,\"files_list\":[],\"logs\":\"\",\"duration_ms\":0,"
        "\"error\":null,\"exit_code\":null,\"signal\":null,\"stdout\":\"\","
        "\"stderr\":\"\",\"truncated\":false,\"usage\":{\"cpu_ms\":0.000,"
        "\"peak_memory_bytes\":0,\"host_cpu_ms\":0.000},\"phases_ms\":{"
        "\"queue\":0.000,\"take\":0.000,\"inject\":0.000,\"run\":0.000,"
        "\"collect\":0.000},\"skill\":{\"name\":\"x\",\"version\":\"1\","
        "\"digest\":null},\"packages\":[],\"session\":null,\"snapshot\":null,\"image\":null,"
        "\"image_reason\":null,\"profile\":null,"
        "\"machine\":null,\"warm\":false,\"network\":[],\"warnings\":[]}\n");
}

/* Both streams with bytes that are no UTF-8, and claims larger than what the host saw. */
static void of_one_that_has_ended(void **state)
{
    struct execution *e = execution_create("default", NULL);
    char path[] = "a\"b", other_path[] = "c/\xc3\xa9", one[] = "one", two[] = "two\n";
    uint8_t json[] = " { \"k\" : [1.50, null] } ";
    const struct artifact files[] = {{.path = path}, {.path = other_path}};
    char *warned[] = {one, two};
    const struct skill_strings warnings = {.items = warned, .len = 2};
    const struct buf output = {.data = json, .len = sizeof(json) - 1};
    const struct result result = {
        .execution_id = ID,
        .status = RESULT_FAILED,
        .error = "killed by signal 9 (SIGKILL)",
        .skill = {"x", "1", "abc", "[{\"name\":\"p\"}]"},
        .session = {"s", false, 7, 2, "killed"},
        .snapshot = "key",
        .image = "data",
        .image_reason = "why",
        .profile = "",
        .machine = "fresh",
        .exited = true,
        .exit = {.signal = 9,
                 .flags = PROTO_EXIT_WARM,
                 .user_us = UINT64_MAX,
                 .system_us = 2,
                 .peak_memory_bytes = UINT64_MAX},
        .host_cpu_us = 1234567,
        .output_file = &output,
        .log = e,
        .files = files,
        .n_files = 2,
        .truncated = true,
        .warnings = &warnings,
        .duration_ns = 1500000,
        .phase_ns = {1000, 2500000, 3, 4000000000, 1234567},
    };

    (void)state;
    execution_append_log(e, GUEST_STDOUT, "o\xff\t", 3);
    execution_append_log(e, GUEST_STDERR, "e\0", 2);
    execution_append_log(e, GUEST_STDOUT, "p", 1);
    expect_text(&result, "{\"execution_id\":\"" ID "\",\"status\":\"failed\","
                         "\"output\":{\"k\":[1.50,null]},\"files_url\":\"/v1/executions/" ID
                         "/files\",\"files_list\":[\"a\\\"b\",\"c/\xc3\xa9\"],"
                         "\"logs\":\"o\xef\xbf\xbd\\te\\u0000p\",\"duration_ms\":2,"
                         "\"error\":\"killed by signal 9 (SIGKILL)\",\"exit_code\":null,"
                         "\"signal\":9,\"stdout\":\"o\xef\xbf\xbd\\tp\","
                         "\"stderr\":\"e\\u0000\",\"truncated\":true,\"usage\":{"
                         "\"cpu_ms\":1234.567,\"peak_memory_bytes\":1073741824,"
                         "\"host_cpu_ms\":1234.567},\"phases_ms\":{\"queue\":0.001,"
                         "\"take\":2.500,\"inject\":0.000,\"run\":4000.000,"
                         "\"collect\":1.235},\"skill\":{\"name\":\"x\",\"version\":\"1\","
                         "\"digest\":\"abc\"},\"packages\":[{\"name\":\"p\"}],\"session\":{"
                         "\"id\":\"s\",\"committed\":false,"
                         "\"bytes\":7,\"files\":2,\"reason\":\"killed\"},\"snapshot\":\"key\","
                         "\"image\":\"data\",\"image_reason\":\"why\",\"profile\":\"\","
                         "\"machine\":\"fresh\",\"warm\":true,\"network\":[],\"warnings\":["
                         "\"one\",\"two\\n\"]}\n");
    execution_unref(e);
}

/* Where there is no output.json, standard output is the output if it is one JSON value. */
static void standard_output_may_be_the_output(void **state)
{
    static const char *const printed[] = {"[1, 2]\n", "[1, 2] 3"};
    static const char *const output[] = {"\"output\":[1,2],", "\"output\":null,"};
    uint8_t json[] = "{";
    const struct buf broken = {.data = json, .len = 1};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct execution *e = execution_create("default", NULL);
        const struct result result = {.execution_id = ID,
                                      .skill = {"x", "1", "", NULL},
                                      .exited = true,
                                      .exit = {.code = 3, .user_us = 7, .system_us = 8},
                                      .host_cpu_us = 16,
                                      .output_file = &broken,
                                      .log = e};
        struct buf out;

        execution_append_log(e, GUEST_STDOUT, printed[i], strlen(printed[i]));
        execution_append_log(e, GUEST_STDERR, "}", 1);
        assert_int_equal(result_write(&result, &out), 0);
        assert_non_null(strstr(buf_cstr(&out), output[i]));
        assert_non_null(strstr(buf_cstr(&out), "\"exit_code\":3,\"signal\":null,"));
        assert_non_null(strstr(buf_cstr(&out), "\"usage\":{\"cpu_ms\":0.015,"));
        buf_finish(&out);
        execution_unref(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_an_execution_that_waits),
        cmocka_unit_test(of_one_that_has_ended),
        cmocka_unit_test(standard_output_may_be_the_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
