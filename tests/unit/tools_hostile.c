/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of a tool may make the daemon do: little, however its arguments are made. */
#include "tests/unit/cmocka_all.h"

#include "api/json/json_text.h"
#include "api/tools/arguments.h"
#include "api/tools/parser.h"
#include "api/tools/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 30 /* of objects: what takes twice as long for each takes hours */

static void check(struct buf *schema, const char *arguments, const char *reason)
{
    struct err err = {0};
    int r = schema_check(buf_cstr(schema), arguments, strlen(arguments), &err);

    if (reason ? r != -EINVAL || !strstr(err.message, reason) : r != 0)
        fail_msg("%.80s: %d %s", arguments, r, err.message);
}

static void write_deep(struct buf *out, const char *innermost)
{
    for (int i = 0; i < DEPTH; i++)
        (void)buf_printf(out, "{\"a\":");
    (void)buf_printf(out, "%s", innermost);
    for (int i = 0; i < DEPTH; i++)
        (void)buf_printf(out, "}");
}

static void choices_may_be_deep(void **state)
{
    static const char *const innermost[] = {"1.0", "2"};
    _cleanup_buf_ struct buf schema = buf_init(1u << 16);

    (void)state;
    (void)buf_printf(&schema, "{\"properties\":{\"x\":{\"enum\":[");
    write_deep(&schema, "1");
    (void)buf_printf(&schema, "]}}}");
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buf_ struct buf arguments = buf_init(1u << 16);

        (void)buf_printf(&arguments, "{\"x\": ");
        write_deep(&arguments, innermost[i]);
        (void)buf_printf(&arguments, "}");
        check(&schema, buf_cstr(&arguments), i == 0 ? NULL : "one of");
    }
}

/* Else one property is checked as often as it can be spelled. */
static void no_argument_comes_twice(void **state)
{
    _cleanup_buf_ struct buf schema = buf_init(1u << 16);

    (void)state;
    (void)buf_printf(&schema, "{\"properties\":{\"a\":{\"enum\":[1]}}}");
    check(&schema, "{\"a\":1}", NULL);
    check(&schema, "{\"a\":1,\"\\u0061\":1}", "comes twice");
}

/* There are seven, and a long number is read for each. */
static void too_many_types_are_none(void **state)
{
    _cleanup_buf_ struct buf schema = buf_init(1u << 16);

    (void)state;
    (void)buf_printf(&schema, "{\"properties\":{\"a\":{\"type\":[\"integer\",\"null\"]},"
                              "\"b\":{\"type\":[");
    for (int i = 0; i < 7; i++)
        (void)buf_printf(&schema, "\"integer\",");
    (void)buf_printf(&schema, "\"integer\"]}}}");
    check(&schema, "{\"a\":1.5}", "of type");
    check(&schema, "{\"b\":1.5}", NULL);
}

static void arguments_are_not_without_number(void **state)
{
    static const char text[] = "{\"version\":1,\"doc\":null,\"parser\":{\"description\":null,"
                               "\"actions\":[{\"kind\":\"store\",\"dest\":\"z\",\"options\":"
                               "[\"--z\"],\"type\":\"integer\",\"required\":false}]}}";
    static const struct {
        unsigned n;
        const char *reason;
    } cases[] = {{1024, NULL}, {1025, "more than 1024 arguments"}, {9000, "8192 values"}};
    struct parser_script script;

    (void)state;
    assert_int_equal(parser_read(text, strlen(text), &script, NULL), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_buf_ struct buf arguments = buf_init(1u << 20);
        struct skill_strings argv = {0};
        struct err err = {0};
        int r;

        (void)buf_printf(&arguments, "{\"z\":1");
        for (unsigned k = 1; k < cases[i].n; k++)
            (void)buf_printf(&arguments, ",\"z\":1");
        (void)buf_printf(&arguments, "}");
        r = arguments_to_argv(&script.parser, buf_cstr(&arguments), arguments.len, &argv, &err);
        assert_int_equal(r, cases[i].reason ? -EINVAL : 0);
        assert_true(!cases[i].reason || strstr(err.message, cases[i].reason));
        skill_strings_finish(&argv);
    }
    parser_script_finish(&script);
}

/* Each is compared with all before it. */
static void keys_are_not_long(void **state)
{
    static const size_t sizes[] = {1024, 1025};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buf_ struct buf object = buf_init(1u << 16);
        struct json_member member;
        struct err err = {0};
        size_t n = 0;

        (void)buf_printf(&object, "{\"");
        for (size_t k = 0; k < sizes[i]; k++)
            (void)buf_append(&object, "k", 1);
        (void)buf_printf(&object, "\":1}");
        assert_int_equal(
            json_text_members((char *)object.data, object.len, &member, 1, &n, &err),
            i == 0 ? 0 : -EINVAL);
        assert_true(i == 0 || strstr(err.message, "longer than 1024 bytes"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_may_be_deep),
        cmocka_unit_test(no_argument_comes_twice),
        cmocka_unit_test(too_many_types_are_none),
        cmocka_unit_test(arguments_are_not_without_number),
        cmocka_unit_test(keys_are_not_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
