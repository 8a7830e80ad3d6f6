/* SPDX-License-Identifier: Apache-2.0 */
/* From a result to an exit status. */
#include "api/cli/run_result.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void exit_statuses(void **state)
{
    static const struct {
        const char *json;
        int status;
    } cases[] = {
        {"{\"status\":\"success\",\"exit_code\":0,\"signal\":null,\"error\":null}", 0},
        {"{\"status\":\"failed\",\"exit_code\":42,\"signal\":null,\"error\":\"x\"}", 42},
        {"{\"status\":\"failed\",\"exit_code\":1}", 1},
        {"{\"status\":\"failed\",\"exit_code\":255}", 255},
        {"{\"status\":\"failed\",\"exit_code\":null,\"signal\":9}", 137},
        {"{\"status\":\"failed\",\"exit_code\":0,\"signal\":11}", 139},
        {"{\"status\":\"failed\",\"exit_code\":null,\"signal\":null}", 125},
        {"{\"status\":\"failed\",\"exit_code\":0}", 125},
        {"{\"status\":\"failed\",\"exit_code\":256}", 125},
        {"{\"status\":\"failed\",\"exit_code\":-1}", 125},
        {"{\"status\":\"failed\",\"signal\":1000}", 125},
        {"{\"status\":\"failed\",\"exit_code\":\"2\"}", 125},
        {"{\"status\":\"timeout\",\"exit_code\":null,\"signal\":9}", 124},
        {"{\"status\":\"cancelled\"}", 130},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run_result result;
        assert_int_equal(run_result_parse(cases[i].json, strlen(cases[i].json), &result, NULL),
                         0);
        assert_int_equal(run_result_exit_status(&result), cases[i].status);
        run_result_finish(&result);
    }
}

static void fields(void **state)
{
    const char *json = "{\"execution_id\":\"exec_1\",\"status\":\"failed\",\"error\":\"why\","
                       "\"files_list\":[\"a\",\"b\"],\"skill\":{\"name\":\"s\"},\"signal\":6}";
    struct run_result result;
    (void)state;

    assert_int_equal(run_result_parse(json, strlen(json), &result, NULL), 0);
    assert_string_equal(result.execution_id, "exec_1");
    assert_string_equal(result.error, "why");
    assert_string_equal(result.skill_name, "s");
    assert_int_equal(result.n_files, 2);
    assert_int_equal(result.signal, 6);
    run_result_finish(&result);
    run_result_finish(&result);
}

static void refused(void **state)
{
    static const char *const bad[] = {
        "", "[]", "{", "{}", "{\"status\":\"odd\"}", "{\"status\":1}"};
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct run_result result;
        struct err err = {0};
        assert_int_equal(run_result_parse(bad[i], strlen(bad[i]), &result, &err), -EPROTO);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(fields),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
