/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool is given beside its own arguments, through a real daemon. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tools_world.h"

#include <stdio.h>
#include <string.h>

#define NOBODY "exec_00000000000000000000000000000000"
#define FRONT(name, more)                                                                      \
    "---\nname: " name "\ndescription: Does " name ".\n" more "---\nBody.\n"

/* A script that says nothing about itself has a command line and standard input all the same.
 */
static void plain_arguments(void **state)
{
    const struct harness_file files[] = {
        {"SKILL.md", FRONT("silent", "")}, {"main.sh", "sort\n"}, {NULL, NULL}};
    const struct harness_file own[] = {
        {"SKILL.md", FRONT("owner", "input_schema: {properties: {args: {}, n: {}}}\n")},
        {"main.sh", "sort\n"},
        {NULL, NULL}};

    (void)state;
    push(files);
    push(own);
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"args\":[\"-r\",\"a b\"]}}"), 200,
                   ":\"a b\",");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"args\":[\"-r\"]}}"), 200,
                   "\"input\":{}");
    harness_expect(
        call("{\"name\":\"silent\",\"arguments\":{\"a\":10000000000000001, \"args\":[\"-r\"], "
             "\"b\" : {\"args\":1}}}"),
        200, "\"input\":{\"a\":10000000000000001,\"b\":{\"args\":1}}");
    /* The stand-in's guest shows what came as JSON, which this text is. */
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"stdin\":\"[\\u0031,\\n2]\"}}"),
                   200, "\"input\":[1,2]");
    harness_expect(
        call("{\"name\":\"silent\",\"arguments\":{\"stdin\":\"7\",\"args\":[\"-n\"]}}"), 200,
        "\"input\":7");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"stdin\":null,\"args\":null}}"),
                   200, "\"input\":{}");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"stdin\":\"\",\"n\":1}}"), 400,
                   "exclude each other");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"stdin\":1}}"), 400,
                   "\\\"stdin\\\" must be a string");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"stdin\":\"\\u0000\"}}"), 400,
                   "\\\"stdin\\\" holds a NUL");
    harness_expect(call("{\"name\":\"silent\",\"arguments\":{\"args\":\"-r\"}}"), 400,
                   "\\\"args\\\" must be an array of strings");
    /* Where the skill says what it takes, they are its own. */
    harness_expect(call("{\"name\":\"owner\",\"arguments\":{\"args\":[1],\"stdin\":2}}"), 200,
                   "\"input\":{\"args\":[1],\"stdin\":2}");
}

/* Parts of a skill have scripts of their own; what lies elsewhere is no tool. */
static void scripts_of_parts(void **state)
{
    const struct harness_file files[] = {{"SKILL.md", FRONT("office", "")},
                                         {"ooxml/scripts/pack.py", "pass\n"},
                                         {"ooxml/scripts/unpack.py", "pass\n"},
                                         {"ooxml/scripts/lib/inner.py", "pass\n"},
                                         {"ooxml/scripts/__init__.py", ""},
                                         {"core/outer.py", "pass\n"},
                                         {NULL, NULL}};
    struct answer a;

    (void)state;
    push(files);
    harness_expect(call("{\"name\":\"office__ooxml_scripts_unpack\"}"), 200,
                   ":\"ooxml/scripts/unpack.py\",");
    a = harness_get(&h, "/v1/tools");
    assert_true(answer_has(&a, "\"name\":\"office__ooxml_scripts_pack\""));
    assert_null(strstr(a.body, "inner"));
    assert_null(strstr(a.body, "outer"));
    assert_null(strstr(a.body, "init"));
    answer_finish(&a);
}

/* A name of its own comes first; what an execution takes is any tool's else. */
static void files_of_a_call(void **state)
{
    static const char *const bad[][2] = {
        {"[{\"name\":\"a\",\"base64\":\"Zh==\"}]", "no base64"},
        {"[{\"name\":\"a\",\"text\":\"\"},{\"name\":\"a/b\",\"text\":\"\"}]", "cannot both be"},
        {"[{\"name\":\"/a\",\"text\":\"\"}]", "absolute"},
        {"[{\"uri\":\"execution://" NOBODY "/files/a\"}]", "left no file a"},
        {"[\"file_00000000000000000000000000000000\"]", "there is no file"},
        {"{}", "must be an array"},
    };
    const struct harness_file typed[] = {
        {"SKILL.md",
         FRONT("typed", "input_schema: {type: object, properties: {n: {type: integer}},"
                        " required: [n], additionalProperties: false}\n")},
        {"main.py", "pass\n"},
        {NULL, NULL}};
    const struct harness_file own[] = {
        {"SKILL.md",
         FRONT("files owner", "input_schema: {properties: {files: {type: integer}}}\n")},
        {"main.py", "pass\n"},
        {NULL, NULL}};
    char text[512];

    (void)state;
    push(typed);
    push(own);
    harness_expect(call("{\"name\":\"typed\",\"arguments\":{\"n\":10000000000000001,\"files\":["
                        "{\"name\":\"a.csv\",\"text\":\"1,2\"},{\"name\":\"b/c\",\"base64\":"
                        "\"Zm9v\"}]}}"),
                   200, "\"input\":{\"n\":10000000000000001}");
    harness_expect(call("{\"name\":\"typed\",\"arguments\":{\"n\":1,\"files\":["
                        "{\"name\":\"a.csv\",\"text\":\"1,2\"},{\"name\":\"b/c\",\"base64\":"
                        "\"Zm9v\"}]}}"),
                   200, "\"foo\"]");
    harness_expect(call("{\"name\":\"typed\",\"arguments\":{\"files\":[]}}"), 400,
                   "\\\"n\\\" is missing");
    harness_expect(call("{\"name\":\"files_owner\",\"arguments\":{\"files\":7}}"), 200,
                   "\"input\":{\"files\":7}");
    harness_expect(
        call("{\"name\":\"typed\",\"arguments\":{\"n\":1,\"files\":[]},\"files\":[]}"), 400,
        "files");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "{\"name\":\"typed\",\"arguments\":{\"n\":1,\"files\":%s}}", bad[i][0]);
        harness_expect(call(text), 400, bad[i][1]);
    }
    harness_assert_clean(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arguments),
        cmocka_unit_test(scripts_of_parts),
        cmocka_unit_test(files_of_a_call),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
