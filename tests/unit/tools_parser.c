/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a parser, as a guest may send it: what is read, and what is refused. */
#include "tests/unit/cmocka_all.h"

#include "api/tools/parser.h"
#include "api/tools/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE(more)                                                                            \
    "{\"kind\":\"store\",\"dest\":\"a\",\"options\":[\"--a\"],\"type\":\"string\","            \
    "\"required\":false" more "}"

static char *describe(const char *actions)
{
    char *text = NULL;

    assert_true(asprintf(&text,
                         "{\"version\":1,\"doc\":null,\"parser\":{\"description\":null,"
                         "\"actions\":[%s]}}",
                         actions) > 0);
    return text;
}

static void expect_refused(const char *text)
{
    struct parser_script script;
    struct err err = {0};

    if (parser_read(text, strlen(text), &script, &err) != -EINVAL)
        fail_msg("taken: %.200s", text);
    assert_int_equal(err.code, EINVAL);
}

static void expect_refused_actions(const char *actions)
{
    char *text = describe(actions);

    expect_refused(text);
    free(text);
}

static void expect_schema(const char *actions, const char *part)
{
    char *text = describe(actions);
    struct parser_script script;
    struct buf out = buf_init(SCHEMA_BYTES_MAX);
    struct err err = {0};

    if (parser_read(text, strlen(text), &script, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    assert_int_equal(schema_write(&script.parser, &out), 0);
    if (!strstr(buf_cstr(&out), part))
        fail_msg("no %s in %s", part, buf_cstr(&out));
    buf_finish(&out);
    parser_script_finish(&script);
    free(text);
}

static void whole_descriptions(void **state)
{
    static const char text[] = "{\"version\":1,\"doc\":\"Words.\",\"parser\":null}";
    struct parser_script script;

    (void)state;
    assert_int_equal(parser_read(text, strlen(text), &script, NULL), 0);
    assert_false(script.has_parser);
    assert_string_equal(script.doc, "Words.");
    parser_script_finish(&script);
    parser_script_finish(&script);
    expect_schema("", "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
    expect_schema(STORE(",\"help\":\"h\",\"default\":\"d\",\"choices\":[\"d\",\"e\"]"),
                  "\"a\":{\"type\":\"string\",\"enum\":[\"d\",\"e\"],\"default\":\"d\","
                  "\"description\":\"h\"}");
}

static void what_is_no_description(void **state)
{
    (void)state;
    expect_refused("");
    expect_refused("nothing");
    expect_refused("[]");
    expect_refused("{}");
    expect_refused("{\"version\":2,\"parser\":null}");
    expect_refused("{\"version\":1,\"doc\":7}");
    expect_refused("{\"version\":1,\"parser\":7}");
    expect_refused("{\"version\":1,\"parser\":{}}");
    expect_refused("{\"version\":1,\"parser\":{\"actions\":{}}}");
    expect_refused("{\"version\":1,\"doc\":\"a\\u0000b\"}");
    expect_refused("{\"version\":1,\"doc\":\"\\ud800\"}");
    expect_refused("{\"version\":1,\"version\":1,\"doc\":\"\xff\"}");
}

static void what_is_no_action(void **state)
{
    (void)state;
    expect_refused_actions("7");
    expect_refused_actions("{}");
    expect_refused_actions("{\"kind\":\"run\",\"required\":false}");
    expect_refused_actions(
        "{\"kind\":\"store\",\"options\":[\"--a\"],\"type\":\"string\",\"required\":1}");
    expect_refused_actions(
        "{\"kind\":\"store\",\"options\":[\"--a\"],\"type\":\"code\",\"required\":true}");
    expect_refused_actions(
        "{\"kind\":\"store\",\"options\":[\"a\"],\"type\":\"string\",\"required\":true}");
    expect_refused_actions(
        "{\"kind\":\"store\",\"options\":[\"--a=b\"],\"type\":\"string\",\"required\":true}");
    expect_refused_actions(
        "{\"kind\":\"store\",\"options\":\"--a\",\"type\":\"string\",\"required\":true}");
    expect_refused_actions(
        "{\"kind\":\"set\",\"options\":[],\"type\":\"string\",\"required\":true}");
    expect_refused_actions(STORE(",\"nargs\":0"));
    expect_refused_actions(STORE(",\"nargs\":1.5"));
    expect_refused_actions(STORE(",\"nargs\":1e300"));
    expect_refused_actions(STORE(",\"nargs\":\"many\""));
    expect_refused_actions(STORE(",\"choices\":7"));
    expect_refused_actions(STORE(",\"help\":[]"));
    expect_refused_actions("{\"kind\":\"commands\",\"required\":true,\"commands\":[]}");
    expect_refused_actions("{\"kind\":\"commands\",\"required\":true,\"commands\":[{}]}");
    expect_refused_actions(
        "{\"kind\":\"commands\",\"required\":true,\"commands\":[{\"name\":\"-a\","
        "\"parser\":{\"actions\":[]}}]}");
    expect_refused_actions("{\"kind\":\"commands\",\"required\":true,\"commands\":["
                           "{\"name\":\"a\",\"parser\":{\"actions\":[]}},"
                           "{\"name\":\"a\",\"parser\":{\"actions\":[]}}]}");
}

/* What does not fit the type is left out, not passed on. */
static void odd_choices_and_defaults(void **state)
{
    (void)state;
    expect_schema(STORE(",\"choices\":[1,\"a\"],\"default\":{\"a\":1}"),
                  "\"a\":{\"type\":\"string\"}");
    expect_schema(STORE(",\"choices\":[],\"default\":[\"a\"]"), "\"a\":{\"type\":\"string\"}");
    expect_schema(STORE(",\"nargs\":\"*\",\"default\":[\"a\"]"),
                  "\"items\":{\"type\":\"string\"},\"default\":[\"a\"]");
    expect_schema("{\"kind\":\"store\",\"dest\":\"i\",\"options\":[],\"type\":\"integer\","
                  "\"required\":true,\"choices\":[1e300]}",
                  "\"i\":{\"type\":\"integer\"}},\"required\":[\"i\"]");
    expect_schema("{\"kind\":\"append\",\"dest\":\"l\",\"options\":[],\"type\":\"integer\","
                  "\"required\":false}",
                  "\"l\":{\"type\":\"integer\"}");
}

static void names_that_clash(void **state)
{
    (void)state;
    expect_schema(STORE("") "," STORE("") "," STORE(""), "\"a_3\":");
    expect_schema("{\"kind\":\"store\",\"dest\":\"\",\"options\":[],\"type\":\"json\","
                  "\"required\":false}",
                  "\"argument_2\":{}");
    expect_schema("{\"kind\":\"commands\",\"dest\":null,\"required\":false,\"commands\":["
                  "{\"name\":\"x\",\"parser\":{\"actions\":["
                  "{\"kind\":\"store\",\"dest\":\"command\",\"options\":[\"--c\"],"
                  "\"type\":\"string\",\"required\":false}]}}]}",
                  "\"c\":{\"type\":\"string\",\"description\":\"With the command x.\"}");
}

static void too_much(void **state)
{
    struct buf text = buf_init(1u << 20);

    (void)state;
    for (unsigned i = 0; i <= PARSER_ACTIONS_MAX; i++)
        assert_int_equal(buf_printf(&text, "%s%s", i ? "," : "", STORE("")), 0);
    expect_refused_actions(buf_cstr(&text));
    buf_clear(&text);
    /* Commands below commands below commands. */
    for (unsigned i = 0; i <= PARSER_DEPTH_MAX; i++)
        assert_int_equal(buf_printf(&text,
                                    "{\"kind\":\"commands\",\"dest\":null,\"required\":true,"
                                    "\"commands\":[{\"name\":\"x\",\"parser\":{\"actions\":["),
                         0);
    for (unsigned i = 0; i <= PARSER_DEPTH_MAX; i++)
        assert_int_equal(buf_printf(&text, "]}}]}"), 0);
    expect_refused_actions(buf_cstr(&text));
    buf_clear(&text);
    /* Few in each parser, many together. */
    assert_int_equal(
        buf_printf(&text, "{\"kind\":\"commands\",\"required\":true,\"commands\":["), 0);
    for (unsigned i = 0; i < 30; i++) {
        assert_int_equal(
            buf_printf(&text, "%s{\"name\":\"c%u\",\"parser\":{\"actions\":[", i ? "," : "", i),
            0);
        for (unsigned k = 0; k < 60; k++)
            assert_int_equal(buf_printf(&text, "%s%s", k ? "," : "", STORE("")), 0);
        assert_int_equal(buf_printf(&text, "]}}"), 0);
    }
    assert_int_equal(buf_printf(&text, "]}"), 0);
    expect_refused_actions(buf_cstr(&text));
    buf_finish(&text);
}

static void expect_arguments(const char *schema, const char *arguments, const char *reason)
{
    struct err err = {0};
    int r = schema_check(schema, arguments, strlen(arguments), &err);

    if (reason ? r != -EINVAL || !strstr(err.message, reason) : r != 0)
        fail_msg("%s: %d %s", arguments, r, err.message);
}

/* An object of so many members. */
static void write_object(struct buf *out, unsigned n)
{
    (void)buf_printf(out, "{\"k\":0");
    for (unsigned i = 1; i < n; i++)
        (void)buf_printf(out, ",\"k%u\":0", i);
    (void)buf_printf(out, "}");
}

/* To compare it takes the square of its members, and its tree many times its bytes. */
static void what_is_large_is_no_choice(void **state)
{
    static const unsigned sizes[] = {500, 5000};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buf schema = buf_init(1u << 20), arguments = buf_init(1u << 20);

        (void)buf_printf(&schema, "{\"properties\":{\"a\":{\"enum\":[1,");
        write_object(&schema, sizes[i]);
        (void)buf_printf(&schema, "]}}}");
        (void)buf_printf(&arguments, "{\"a\":");
        write_object(&arguments, sizes[i]);
        (void)buf_printf(&arguments, "}");
        expect_arguments(buf_cstr(&schema), buf_cstr(&arguments), i > 0 ? "one of" : NULL);
        buf_finish(&schema);
        buf_finish(&arguments);
    }
}

static void schemas_are_checked(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},"
        "\"i\":{\"type\":\"integer\"},\"n\":{\"type\":[\"number\",\"null\"]},"
        "\"e\":{\"enum\":[\"x\",2]},\"o\":{\"type\":\"object\"},\"b\":{\"type\":\"boolean\"},"
        "\"l\":{\"type\":\"array\"},\"any\":{}},\"required\":[\"s\"],"
        "\"additionalProperties\":false}";

    (void)state;
    expect_arguments(schema, "{\"s\":\"\"}", NULL);
    expect_arguments(schema, "{\"\\u0073\":\"\"}", NULL);
    expect_arguments(schema,
                     "{\"s\":\"a\",\"i\":-2,\"n\":null,\"e\":2,\"o\":{},\"b\":true,\"l\":[1],"
                     "\"any\":1.5}",
                     NULL);
    expect_arguments(schema, "{\"s\":\"a\",\"i\":1.0,\"n\":1.5,\"e\":\"x\"}", NULL);
    expect_arguments(schema, "{}", "\"s\" is missing");
    expect_arguments(schema, "{\"s\":1}", "\"s\" must be of type \"string\"");
    expect_arguments(schema, "{\"s\":\"\",\"i\":1.5}", "\"i\" must be of type");
    expect_arguments(schema, "{\"s\":\"\",\"i\":\"1\"}", "\"i\" must be of type");
    expect_arguments(schema, "{\"s\":\"\",\"n\":true}", "type [\"number\",\"null\"]");
    expect_arguments(schema, "{\"s\":\"\",\"e\":3}", "\"e\" must be one of [\"x\",2]");
    expect_arguments(schema, "{\"s\":\"\",\"other\":3}", "no argument \"other\"");
    expect_arguments(schema, "{\"s\":\"\",\"o\":[]}", "\"o\" must be of type");
    expect_arguments(schema, "[]", "object");
    expect_arguments(schema_open, "{\"whatever\":[1,2,{}]}", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_descriptions),
        cmocka_unit_test(what_is_no_description),
        cmocka_unit_test(what_is_no_action),
        cmocka_unit_test(odd_choices_and_defaults),
        cmocka_unit_test(names_that_clash),
        cmocka_unit_test(too_much),
        cmocka_unit_test(what_is_large_is_no_choice),
        cmocka_unit_test(schemas_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
