/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/executions: what it may say, and what is refused. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/request.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void takes_everything(void **state)
{
    const char *body =
        "{\"skill\":\"word-counter\",\"version\":\"1.2\",\"input\": {\"n\": 9007199254740993},"
        "\"env\":{\"A\":\"1\",\"_b2\":\"=x=\"},\"args\":[\"-x\",\"\",\"\xc3\xa4\"],"
        "\"script\":\"scripts/a.py\",\"timeout\":\"1m30s\","
        "\"limits\":{\"memory\":\"64Mi\",\"pids\":12},\"session_id\":\"Chat:1_a.b-2\"}";
    struct request q;
    struct err err = {0};

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, &err), 0);
    assert_string_equal(q.skill, "word-counter");
    assert_string_equal(q.version, "1.2");
    assert_string_equal(q.script, "scripts/a.py");
    assert_null(q.module);
    assert_true(q.has_input);
    assert_memory_equal(body + q.input_at, "{\"n\": 9007199254740993}", q.input_bytes);
    assert_int_equal(q.env.len, 2);
    assert_string_equal(q.env.items[1], "_b2==x=");
    assert_int_equal(q.args.len, 3);
    assert_string_equal(q.args.items[1], "");
    assert_int_equal(q.timeout_ms, 90000);
    assert_int_equal(q.memory_bytes, 64 * LIMIT_MIB);
    assert_int_equal(q.pids, 12);
    assert_string_equal(q.session, "Chat:1_a.b-2");
    request_finish(&q);
}

static void takes_retries(void **state)
{
    static const char body[] = "{\"skill\":\"x\",\"async\":true,\"retries\":5}";
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_int_equal(q.retries, LIMIT_RETRIES);
    request_finish(&q);
    /* No other node has the archive. */
    assert_int_equal(request_parse("{\"async\":true,\"retries\":1}",
                                   strlen("{\"async\":true,\"retries\":1}"), true, &q, NULL),
                     -EINVAL);
}

#define FILE_A "file_0123456789abcdef0123456789abcdef"
#define FILE_B "file_fedcba9876543210fedcba9876543210"

static void takes_files(void **state)
{
    static const char *const keys[] = {"files", "input_files"};
    struct request q;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char body[512];

        snprintf(body, sizeof(body),
                 "{\"skill\":\"x\",\"%s\":[\"" FILE_A "\",{\"path\":\"./data//in.csv\","
                 "\"id\":\"" FILE_B "\"},{\"id\":\"" FILE_B "\",\"path\":null}]}",
                 keys[i]);
        assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
        assert_int_equal(q.n_files, 3);
        assert_string_equal(q.files[0].id, FILE_A);
        assert_null(q.files[0].path);
        assert_string_equal(q.files[1].id, FILE_B);
        assert_string_equal(q.files[1].path, "data/in.csv");
        assert_null(q.files[2].path);
        request_finish(&q);
    }
}

static void refuses_files(void **state)
{
    static const char *const cases[][2] = {
        {"\"" FILE_A "\"", "must be an array"},
        {"[1]", "must be an array"},
        {"[{}]", "must be an array"},
        {"[{\"id\":\"" FILE_A "\",\"path\":7}]", "must be an array"},
        {"[{\"id\":\"" FILE_A "\",\"mode\":7}]", "unknown key \"files.mode\""},
        {"[\"file_1\"]", "there is no file file_1"},
        {"[\"../../etc/passwd\"]", "there is no file ../../etc/passwd"},
        {"[{\"id\":\"" FILE_A "\",\"path\":\"../x\"}]", ".."},
        {"[{\"id\":\"" FILE_A "\",\"path\":\"a/../../x\"}]", ".."},
        {"[{\"id\":\"" FILE_A "\",\"path\":\"/etc/passwd\"}]", "absolute"},
        {"[{\"id\":\"" FILE_A "\",\"path\":\"a\\u000ab\"}]", "control"},
        {"[{\"id\":\"" FILE_A "\",\"path\":\".\"}]", "empty"},
        {"[{\"id\":\"" FILE_A "\",\"path\":\"\"}]", "empty"},
        {"[],\"input_files\":[]", "exclude each other"},
    };
    struct buf many = buf_init(1u << 20);
    struct request q;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        char body[512];

        snprintf(body, sizeof(body), "{\"skill\":\"x\",\"files\":%s}", cases[i][0]);
        assert_int_equal(request_parse(body, strlen(body), false, &q, &err), -EINVAL);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: got %s", cases[i][0], err.message);
    }
    buf_printf(&many, "{\"skill\":\"x\",\"files\":[");
    for (unsigned i = 0; i <= LIMIT_INPUT_FILES; i++)
        buf_printf(&many, "%s\"" FILE_A "\"", i ? "," : "");
    buf_printf(&many, "]}");
    assert_int_equal(request_parse(buf_cstr(&many), many.len, false, &q, NULL), -EFBIG);
    buf_finish(&many);
}

#define EXEC_A "exec_0123456789abcdef0123456789abcdef"

static void takes_content(void **state)
{
    static const char body[] =
        "{\"skill\":\"x\",\"files\":[{\"name\":\"a.txt\",\"text\":\"\\u0000b\"},"
        "{\"base64\":\"Zg==\",\"path\":\"b/c\",\"uri\":null},"
        "{\"uri\":\"execution://" EXEC_A "/files/d%20e/f.txt\"},"
        "{\"uri\":\"execution://" EXEC_A "/files/g\",\"name\":\"h\"}]}";
    static const char *const bad[][2] = {
        {"{\"text\":\"\"}", "needs a \"name\""},
        {"{\"name\":\"a\"}", "must be an array"},
        {"{\"name\":\"a\",\"text\":\"\",\"base64\":\"\"}", "one of"},
        {"{\"name\":\"a\",\"text\":1}", "must be an array"},
        {"{\"name\":\"a\",\"path\":\"a\",\"text\":\"\"}", "are the same"},
        {"{\"name\":\"../a\",\"text\":\"\"}", ".."},
        {"{\"name\":\"a\\u0000b\",\"text\":\"\"}", "must be an array"},
        {"{\"uri\":\"https://x/y\"}", "names no file"},
        {"{\"uri\":\"execution://" EXEC_A "/files/\"}", "names no file"},
        {"{\"uri\":\"execution://exec_1/files/a\"}", "names no file"},
        {"{\"uri\":\"execution://" EXEC_A "/files/%zz\"}", "names no file"},
        {"{\"uri\":\"execution://" EXEC_A "/files/%00\"}", "names no file"},
        {"{\"uri\":\"execution://" EXEC_A "/files/../a\"}", ".."},
    };
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_int_equal(q.n_files, 4);
    assert_int_equal(q.files[0].from, REQUEST_FILE_TEXT);
    assert_string_equal(q.files[0].path, "a.txt");
    assert_memory_equal(body + q.files[0].at, "\"\\u0000b\"", q.files[0].bytes);
    assert_int_equal(q.files[1].from, REQUEST_FILE_BASE64);
    assert_string_equal(q.files[1].path, "b/c");
    assert_int_equal(q.files[2].from, REQUEST_FILE_LEFT);
    assert_string_equal(q.files[2].id, EXEC_A);
    assert_string_equal(q.files[2].left, "d e/f.txt");
    assert_string_equal(q.files[2].path, "d e/f.txt");
    assert_string_equal(q.files[3].left, "g");
    assert_string_equal(q.files[3].path, "h");
    request_finish(&q);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {0};
        char text[512];

        snprintf(text, sizeof(text), "{\"skill\":\"x\",\"files\":[%s]}", bad[i][0]);
        assert_int_equal(request_parse(text, strlen(text), false, &q, &err), -EINVAL);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("%s: got %s", bad[i][0], err.message);
    }
}

static void takes_text_for_input(void **state)
{
    static const char *const bad[][2] = {
        {"\"stdin\":\"\",\"input\":1", "exclude each other"},
        {"\"input\":1,\"stdin\":\"\"", "exclude each other"},
        {"\"stdin\":{}", "must be a string"},
        {"\"stdin\":\"a\\u0000\"", "NUL"},
    };
    const char *body = "{\"skill\":\"x\",\"stdin\": \"a\\n\"}";
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_true(q.has_input && q.input_is_text);
    assert_int_equal(q.input_bytes, 5);
    assert_memory_equal(body + q.input_at, "\"a\\n\"", q.input_bytes);
    request_finish(&q);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {0};
        char text[128];

        snprintf(text, sizeof(text), "{\"skill\":\"x\",%s}", bad[i][0]);
        assert_int_equal(request_parse(text, strlen(text), false, &q, &err), -EINVAL);
        assert_non_null(strstr(err.message, bad[i][1]));
    }
}

static void knows_file_names(void **state)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "/a", "a/", "a\nb", "a\\b", "\xff"};
    char name[REQUEST_FILE_NAME_SIZE], large[REQUEST_FILE_NAME_SIZE + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(request_file_name(bad[i], name, NULL), -EINVAL);
    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    assert_int_equal(request_file_name(large, name, NULL), -EINVAL);
    assert_int_equal(request_file_name(large + 1, name, NULL), 0);
    assert_int_equal(request_file_name("\xc3\xa4 b.csv", name, NULL), 0);
    assert_string_equal(name, "\xc3\xa4 b.csv");
}

static void takes_code(void **state)
{
    static const char *const cases[][3] = {
        {"\"print(\\\"\\u00e4\\\")\\n\"", "print(\"\xc3\xa4\")\n", "python"},
        {"\"ls\",\"lang\":\"Shell\"", "ls", "bash"},
        {"\"#!/bin/sh\"", "#!/bin/sh", "bash"},
        {"\"# no program\",\"skill\":null,\"version\":null", "# no program", "python"},
    };
    char body[256];
    struct request q;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(body, sizeof(body), "{\"code\":%s}", cases[i][0]);
        assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
        assert_string_equal(q.code, cases[i][1]);
        assert_string_equal(q.code_lang, cases[i][2]);
        assert_null(q.skill);
        request_finish(&q);
        /* Beside an archive it is one too many. */
        assert_int_equal(request_parse(body, strlen(body), true, &q, NULL), -EINVAL);
    }
}

static void takes_little(void **state)
{
    const char *body = "{\"skill\":\"x\",\"version\":\"latest\",\"env\":null,\"timeout\":2.5}";
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_null(q.version);
    assert_false(q.has_input);
    assert_int_equal(q.timeout_ms, 2500);
    request_finish(&q);
    assert_int_equal(request_parse("{}", 2, true, &q, NULL), 0);
    request_finish(&q);
    body = "{\"skill\":\"x\",\"version\":\"\",\"entrypoint\":\"\",\"input\":null,"
           "\"timeout\":1e300}";
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_null(q.version);
    assert_null(q.entry_point);
    assert_false(q.has_input);
    assert_int_equal(q.timeout_ms, LIMIT_TIMEOUT_MS);
    request_finish(&q);
}

/* As a client sends it that writes every field that it knows. */
static void takes_all_absent(void **state)
{
    const char *body =
        "{\"skill\":\"x\",\"version\":null,\"code\":null,\"lang\":null,\"script\":null,"
        "\"module\":null,\"entry_point\":null,\"entrypoint\":null,\"env\":null,"
        "\"args\":null,\"timeout\":null,\"limits\":null,\"files\":null,"
        "\"input_files\":null,\"async\":null,\"fresh\":null,\"idempotency_key\":null,"
        "\"input\":null,\"stdin\":null,\"image\":null,\"session_id\":null,"
        "\"network\":null,\"retries\":null}";
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_string_equal(q.skill, "x");
    request_finish(&q);
    body = "{\"skill\":\"x\",\"limits\":{\"memory\":null,\"pids\":null}}";
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_int_equal(q.memory_bytes, 0);
    assert_int_equal(q.pids, 0);
    request_finish(&q);
}

static void expect(const char *body, int result, const char *part)
{
    struct request q;
    struct err err = {0};

    assert_int_equal(request_parse(body, strlen(body), false, &q, &err), result);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void refuses_with_a_reason(void **state)
{
    (void)state;
    expect("", -EINVAL, "JSON");
    expect("[]", -EINVAL, "object");
    expect("{}", -EINVAL, "\"skill\" is missing");
    expect("{\"skill\":1}", -EINVAL, "\"skill\" must be a string");
    expect("{\"skill\":\"\"}", -EINVAL, "no valid skill name");
    expect("{\"skill\":\"../x\"}", -EINVAL, "no valid skill name");
    expect("{\"skill\":\"a/b\"}", -EINVAL, "no valid skill name");
    expect("{\"skill\":\"a@1\"}", -EINVAL, "no valid skill name");
    expect("{\"skill\":\"a\\u0000b\"}", -EINVAL, "NUL");
    expect("{\"skill\":\"a\\nb\"}", -EINVAL, "no valid skill name");
    expect("{\"skill\":\"a\",\"version\":\"1/2\"}", -EINVAL, "no valid version");
    expect("{\"skill\":\"a\",\"sk\\u0069ll\":\"b\"}", -EINVAL, "unknown key");
    expect("{\"skill\":\"a\",\"skill\":\"b\"}", -EINVAL, "comes twice");
    expect("{\"skill\":\"a\",\"shell\":[]}", -EINVAL, "unknown key \"shell\"");
    expect("{\"skill\":\"a\",\"retries\":1}", -EINVAL, "needs \"async\"");
    expect("{\"skill\":\"a\",\"async\":true,\"retries\":6}", -EINVAL, "from 0 to 5");
    expect("{\"skill\":\"a\",\"async\":true,\"retries\":-1}", -EINVAL, "from 0 to 5");
    expect("{\"skill\":\"a\",\"async\":true,\"retries\":1.5}", -EINVAL, "from 0 to 5");
    expect("{\"skill\":\"a\",\"async\":true,\"retries\":\"1\"}", -EINVAL, "from 0 to 5");
    expect("{\"skill\":\"a\",\"async\":true,\"retries\":1,\"session_id\":\"s\"}", -EINVAL,
           "exclude each other");
    expect("{\"skill\":\"a\",\"env\":[]}", -EINVAL, "\"env\" must be an object");
    expect("{\"skill\":\"a\",\"env\":{\"A\":1}}", -EINVAL, "must be a string");
    expect("{\"skill\":\"a\",\"env\":{\"\":\"\"}}", -EINVAL, "no name");
    expect("{\"skill\":\"a\",\"env\":{\"A=B\":\"\"}}", -EINVAL, "no name");
    expect("{\"skill\":\"a\",\"env\":{\"A\":\"\",\"A\":\"\"}}", -EINVAL, "comes twice");
    expect("{\"skill\":\"a\",\"args\":\"x\"}", -EINVAL, "\"args\"");
    expect("{\"skill\":\"a\",\"args\":[1]}", -EINVAL, "\"args\"");
    expect("{\"skill\":\"a\",\"timeout\":0}", -EINVAL, "more than zero");
    expect("{\"skill\":\"a\",\"timeout\":-1}", -EINVAL, "\"timeout\"");
    expect("{\"skill\":\"a\",\"timeout\":\"soon\"}", -EINVAL, "no duration");
    expect("{\"skill\":\"a\",\"timeout\":true}", -EINVAL, "\"timeout\"");
    expect("{\"skill\":\"a\",\"limits\":{\"memory\":\"lots\"}}", -EINVAL, "limits.memory");
    expect("{\"skill\":\"a\",\"limits\":{\"cpu\":1}}", -EINVAL, "limits.cpu");
    expect("{\"skill\":\"a\",\"limits\":{\"cpu\":null}}", -EINVAL, "limits.cpu");
    expect("{\"skill\":\"a\",\"limits\":{\"pids\":1.5}}", -EINVAL, "limits.pids");
    expect("{\"skill\":\"a\",\"script\":\"x\",\"module\":\"y\"}", -EINVAL, "exclude");
    expect("{\"skill\":\"a\",\"entrypoint\":\"x\",\"module\":\"y\"}", -EINVAL, "exclude");
    expect("{\"skill\":\"a\",\"entrypoint\":\"x\",\"entry_point\":\"y\"}", -EINVAL, "the same");
    expect("{\"skill\":\"a\",\"entrypoint\":1}", -EINVAL, "\"entry_point\" must be a string");
}

static void leaves_reserved_variables_out(void **state)
{
    static const char *const names[] = {"PATH",    "HOME",          "LD_PRELOAD",
                                        "PYTHON",  "PYTHONPATH",    "NODE_OPTIONS",
                                        "SKILL_X", "SANDBOX_INPUT", "SKILL_INSTRUCTIONS"};
    char body[128];
    struct request q;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(body, sizeof(body), "{\"skill\":\"a\",\"env\":{\"A\":\"1\",\"%s\":\"\"}}",
                 names[i]);
        assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
        assert_int_equal(q.env.len, 1);
        assert_string_equal(q.env.items[0], "A=1");
        assert_int_equal(q.warnings.len, 1);
        assert_non_null(strstr(q.warnings.items[0], names[i]));
        request_finish(&q);
    }
}

static void takes_what_changes_only_how_an_interpreter_runs(void **state)
{
    static const char body[] = "{\"skill\":\"a\",\"env\":{\"PYTHONUNBUFFERED\":\"1\","
                               "\"NODE_ENV\":\"production\",\"PYTHONHASHSEED\":\"0\"}}";
    struct request q;

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), false, &q, NULL), 0);
    assert_int_equal(q.env.len, 3);
    assert_string_equal(q.env.items[1], "NODE_ENV=production");
    assert_int_equal(q.warnings.len, 0);
    request_finish(&q);
}

static void expect_large(const char *format, size_t size)
{
    struct buf body = buf_init(64 * LIMIT_MIB);
    struct request q;
    char *filler = malloc(size + 1);

    assert_non_null(filler);
    memset(filler, 'x', size);
    filler[size] = '\0';
    /* The formats are this file's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_int_equal(buf_printf(&body, format, filler), 0);
#pragma GCC diagnostic pop
    assert_int_equal(request_parse((char *)body.data, body.len, false, &q, NULL), -EFBIG);
    free(filler);
    buf_finish(&body);
}

static void refuses_what_is_too_large(void **state)
{
    (void)state;
    expect_large("{\"skill\":\"a\",\"input\":\"%s\"}", LIMIT_INPUT_BYTES);
    expect_large("{\"skill\":\"a\",\"env\":{\"A\":\"%s\"}}", LIMIT_ENV_BYTES);
    expect_large("{\"skill\":\"a\",\"args\":[\"%s\"]}", LIMIT_ARGS_BYTES);
    expect_large("{\"skill\":\"a\",\"limits\":{\"%s\":1}}", 2 * LIMIT_MIB);
}

/* A value of one byte takes 80 in a tree of them, which is not made. */
static void refuses_too_many_values(void **state)
{
    static const char *const members[] = {"args", "env", "network", "limits", "timeout"};

    (void)state;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct buf body = buf_init(LIMIT_MIB);

        (void)buf_printf(&body, "{\"skill\":\"a\",\"%s\":[0", members[i]);
        for (unsigned k = 0; k < 100000; k++)
            (void)buf_append(&body, ",0", 2);
        (void)buf_printf(&body, "]}");
        expect(buf_cstr(&body), -EFBIG, "is too large");
        buf_finish(&body);
    }
}

static void knows_ids(void **state)
{
    (void)state;
    assert_true(ids_valid(ID_EXECUTION, "exec_0123456789abcdef0123456789abcdef"));
    assert_false(ids_valid(ID_EXECUTION, "exec_0123456789abcdef0123456789abcde"));
    assert_false(ids_valid(ID_EXECUTION, "exec_0123456789abcdef0123456789abcdeg"));
    assert_false(ids_valid(ID_EXECUTION, "exec_0123456789ABCDEF0123456789abcdef"));
    assert_false(ids_valid(ID_EXECUTION, "../../../../etc/passwd"));
    assert_false(ids_valid(ID_EXECUTION, ""));
}

static void makes_ids(void **state)
{
    char a[4 + ID_DIGITS + 1], b[sizeof(a)], small[sizeof(a) - 1];

    (void)state;
    assert_int_equal(ids_make(ID_TENANT, a, sizeof(a)), 0);
    assert_int_equal(ids_make(ID_TENANT, b, sizeof(b)), 0);
    assert_true(ids_valid(ID_TENANT, a) && ids_valid(ID_TENANT, b));
    assert_string_not_equal(a, b);
    assert_int_equal(ids_make(ID_TENANT, small, sizeof(small)), -EIO);
    assert_int_equal(ids_make_digits(33, NULL), -EIO);
}

static void inline_excludes_a_name(void **state)
{
    struct request q;
    const char *body = "{\"skill\":\"a\"}";

    (void)state;
    assert_int_equal(request_parse(body, strlen(body), true, &q, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_everything),
        cmocka_unit_test(takes_retries),
        cmocka_unit_test(takes_files),
        cmocka_unit_test(refuses_files),
        cmocka_unit_test(takes_content),
        cmocka_unit_test(takes_text_for_input),
        cmocka_unit_test(knows_file_names),
        cmocka_unit_test(takes_code),
        cmocka_unit_test(takes_little),
        cmocka_unit_test(takes_all_absent),
        cmocka_unit_test(refuses_with_a_reason),
        cmocka_unit_test(leaves_reserved_variables_out),
        cmocka_unit_test(takes_what_changes_only_how_an_interpreter_runs),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(refuses_too_many_values),
        cmocka_unit_test(knows_ids),
        cmocka_unit_test(makes_ids),
        cmocka_unit_test(inline_excludes_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
