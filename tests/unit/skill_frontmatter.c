/* SPDX-License-Identifier: Apache-2.0 */
/* SKILL.md: what is read, what is forgiven with a warning, what is refused and why. */
#include "api/skill/frontmatter.h"
#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_refused(const char *text, int code, const char *reason)
{
    struct skill skill;
    struct err err = {0};

    assert_int_equal(frontmatter_parse(text, strlen(text), &skill, &err), code);
    assert_int_equal(err.code, -code);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
}

static struct skill parse(const char *text)
{
    struct skill skill;
    struct err err = {0};

    if (frontmatter_parse(text, strlen(text), &skill, &err))
        fail_msg("%s", err.message);
    return skill;
}

static void expect_warning(const struct skill *skill, const char *text)
{
    for (size_t i = 0; i < skill->warnings.len; i++) {
        if (strstr(skill->warnings.items[i], text))
            return;
    }
    fail_msg("no warning says \"%s\"", text);
}

static void all_fields(void **state)
{
    struct skill skill = parse("---\n"
                               "name: word-counter\n"
                               "description: Counts words.\n"
                               "license: Apache-2.0\n"
                               "compatibility: needs python\n"
                               "allowed-tools: Read Write\n"
                               "version: 1.10\n"
                               "lang: python\n"
                               "entry_point: scripts/count.py\n"
                               "timeout: 1m30s\n"
                               "image: python\n"
                               "network: false\n"
                               "resources:\n"
                               "  memory: 512Mi\n"
                               "  cpu: 0.5\n"
                               "metadata:\n"
                               "  author: somebody\n"
                               "  since: 2024-01-02\n"
                               "---\n"
                               "\n# Words\n\nUse it.\n\n");
    (void)state;

    assert_string_equal(skill.name, "word-counter");
    assert_string_equal(skill.description, "Counts words.");
    assert_string_equal(skill.license, "Apache-2.0");
    assert_string_equal(skill.compatibility, "needs python");
    assert_string_equal(skill.allowed_tools, "Read Write");
    assert_string_equal(skill.version, "1.10");
    assert_string_equal(skill.lang, "python");
    assert_string_equal(skill.entry_point, "scripts/count.py");
    assert_int_equal(skill.timeout_ms, 90000);
    assert_string_equal(skill.image, "python");
    assert_string_equal(skill.network, "");
    assert_int_equal(skill.memory_bytes, 512u << 20);
    assert_int_equal(skill.cpu_millis, 500);
    assert_int_equal(skill.n_metadata, 2);
    assert_string_equal(skill.metadata[1].key, "since");
    assert_string_equal(skill.metadata[1].value, "2024-01-02");
    assert_string_equal(skill.instructions, "# Words\n\nUse it.");
    assert_int_equal(skill.instructions_len, strlen(skill.instructions));
    assert_int_equal(skill.warnings.len, 0);
    skill_finish(&skill);
}

static void smallest(void **state)
{
    struct skill skill = parse("\xef\xbb\xbf---  \r\ndescription: x\r\n---\r\n");
    (void)state;

    assert_null(skill.name);
    assert_string_equal(skill.description, "x");
    assert_string_equal(skill.instructions, "");
    skill_finish(&skill);
}

/* Their lines are counted. */
static void empty_lines_come_before(void **state)
{
    struct skill skill =
        parse("\n  \r\n---\nname: a\ndescription: use: it\nentrypoint: x.py\n---\n");
    (void)state;

    assert_string_equal(skill.name, "a");
    assert_string_equal(skill.entry_point, "x.py");
    assert_int_equal(skill.warnings.len, 1);
    assert_non_null(strstr(skill.warnings.items[0], "line 5: a value with a colon"));
    assert_true(skill.is_floating);
    skill_finish(&skill);
}

static void an_empty_version_is_none(void **state)
{
    struct skill skill = parse("---\ndescription: x\nversion: \"\"\n---\n");
    (void)state;

    assert_null(skill.version);
    assert_true(skill.is_floating);
    skill_finish(&skill);
    skill = parse("---\ndescription: x\nversion: ''\nmetadata:\n  version: 2.0\n---\n");
    assert_string_equal(skill.version, "2.0");
    assert_false(skill.is_floating);
    skill_finish(&skill);
}

static void colons_get_quotes(void **state)
{
    struct skill skill = parse("---\n"
                               "name: a\n"
                               "description: Use when: it's needed, e.g. \"now\": yes\n"
                               "metadata:\n"
                               "  note: see: below\n"
                               "compatibility: |\n"
                               "  kept: as: it is\n"
                               "---\nbody");
    (void)state;

    assert_string_equal(skill.description, "Use when: it's needed, e.g. \"now\": yes");
    assert_string_equal(skill.metadata[0].value, "see: below");
    assert_string_equal(skill.compatibility, "kept: as: it is\n");
    expect_warning(&skill, "line 3");
    skill_finish(&skill);
}

static void forgiven(void **state)
{
    struct skill skill = parse("---\n"
                               "name: Not_A Name\n"
                               "name: second\n"
                               "description: d\n"
                               "timeout: soon\n"
                               "resources: {memory: lots, cpu: 0, disk: 1}\n"
                               "license: [a, b]\n"
                               "lang: [python, bash]\n"
                               "allowed-tools: [Read, Write]\n"
                               "metadata: {a: {b: c}, version: '2.0', d: e}\n"
                               "colour: red\n"
                               "? [x]\n"
                               ": y\n"
                               "compatibility: ~\n"
                               "---\n");
    (void)state;

    assert_string_equal(skill.name, "Not_A Name");
    assert_string_equal(skill.version, "2.0");
    assert_string_equal(skill.allowed_tools, "Read Write");
    assert_null(skill.license);
    assert_null(skill.lang);
    assert_null(skill.compatibility);
    assert_int_equal(skill.timeout_ms, 0);
    assert_int_equal(skill.memory_bytes, 0);
    assert_int_equal(skill.cpu_millis, 0);
    assert_int_equal(skill.n_metadata, 2);
    expect_warning(&skill, "lower-case");
    expect_warning(&skill, "twice");
    expect_warning(&skill, "\"timeout\"");
    expect_warning(&skill, "resources.memory");
    expect_warning(&skill, "resources.disk");
    expect_warning(&skill, "\"license\"");
    expect_warning(&skill,
                   "line 8: \"lang\" is one language: keep that of the script which runs");
    expect_warning(&skill, "\"metadata\"");
    expect_warning(&skill, "colour");
    expect_warning(&skill, "no text");
    skill_finish(&skill);
}

static void names_of_any_script(void **state)
{
    struct skill skill = parse("---\nname: \xe6\x97\xa5\xe6\x9c\xac-1\ndescription: d\n---\n");
    (void)state;

    assert_int_equal(skill.warnings.len, 0);
    skill_finish(&skill);
}

static void refused(void **state)
{
    (void)state;

    expect_refused("", -EINVAL, "begin");
    expect_refused("# no front matter\n", -EINVAL, "begin");
    expect_refused("----\nname: a\n----\n", -EINVAL, "begin");
    expect_refused("---\nname: a\n", -EINVAL, "closing");
    expect_refused("---\n---\n", -EINVAL, "empty");
    expect_refused("---\n# only a comment\n---\n", -EINVAL, "empty");
    expect_refused("---\n- a\n- b\n---\n", -EINVAL, "key: value");
    expect_refused("---\njust text\n---\n", -EINVAL, "key: value");
    expect_refused("---\nname: a\n---\n", -EINVAL, "description");
    expect_refused("---\nname: a\ndescription: '  '\n---\n", -EINVAL, "description");
    expect_refused("---\nname: a\ndescription: {a: b}\n---\n", -EINVAL, "description");
    expect_refused("---\nname: [a\ndescription: d\n---\n", -EINVAL, "line");
    expect_refused("---\nname: a\n\tdescription: d\n---\n", -EINVAL, "line 3");
    expect_refused("---\nname: \"a\\u0007b\"\ndescription: d\n---\n", -EINVAL, "control");
    expect_refused("---\nname: a\ndescription: \"x\\0y\"\n---\n", -EINVAL, "NUL");
    expect_refused("---\nname: a\ndescription: \xff\n---\n", -EINVAL, "UTF-8");
}

static void bounded(void **state)
{
    char text[FRONTMATTER_YAML_MAX + 200], *big = malloc(FRONTMATTER_FILE_MAX + 2);
    struct skill skill;
    size_t n;
    (void)state;

    /* Aliases are how a kilobyte becomes a gigabyte. */
    expect_refused("---\na: &a [x, x]\nb: &b [*a, *a]\ndescription: d\n---\n", -EINVAL,
                   "aliases");

    strcpy(text, "---\ndescription: d\nx: ");
    for (unsigned i = 0; i < FRONTMATTER_DEPTH_MAX + 1; i++)
        strcat(text, "[");
    for (unsigned i = 0; i < FRONTMATTER_DEPTH_MAX + 1; i++)
        strcat(text, "]");
    strcat(text, "\n---\n");
    expect_refused(text, -EFBIG, "deep");

    n = (size_t)sprintf(text, "---\ndescription: d\nx: [");
    for (unsigned i = 0; i < FRONTMATTER_NODES_MAX; i++)
        n += (size_t)sprintf(text + n, "1,");
    sprintf(text + n, "]\n---\n");
    expect_refused(text, -EFBIG, "values");

    n = (size_t)sprintf(text, "---\ndescription: ");
    memset(text + n, 'a', FRONTMATTER_YAML_MAX);
    strcpy(text + n + FRONTMATTER_YAML_MAX, "\n---\n");
    expect_refused(text, -EFBIG, "over");

    assert_non_null(big);
    memset(big, 'a', FRONTMATTER_FILE_MAX + 1);
    assert_int_equal(frontmatter_parse(big, FRONTMATTER_FILE_MAX + 1, &skill, NULL), -EFBIG);
    free(big);
}

static void not_terminated(void **state)
{
    /* Only len bytes are the file's, and a NUL among them is refused. */
    const char text[] = "---\ndescription: d\n---\nbody\0more";
    struct skill skill;
    (void)state;

    assert_int_equal(frontmatter_parse(text, sizeof(text) - 1, &skill, NULL), -EINVAL);
    assert_int_equal(frontmatter_parse(text, strlen(text), &skill, NULL), 0);
    skill_finish(&skill);
    skill_finish(&skill);
}

/* What becomes of an input_schema, and what is warned of where it cannot be used. */
static void expect_schema(const char *yaml, const char *json, const char *warning)
{
    char text[4096];
    struct skill skill;

    snprintf(text, sizeof(text), "---\nname: a\ndescription: d\n%s---\n", yaml);
    skill = parse(text);
    if (json)
        assert_string_equal(skill.input_schema, json);
    else
        assert_null(skill.input_schema);
    if (warning)
        expect_warning(&skill, warning);
    else
        assert_int_equal(skill.warnings.len, 0);
    skill_finish(&skill);
}

/* What hosts a field declares, and a part of the warning where there is one. */
static void hosts_are_declared(void **state)
{
    static const struct {
        const char *field, *list, *warning;
    } cases[] = {
        {"network: [API.example.com, \"*.example.org:8443\"]",
         "api.example.com *.example.org:8443", NULL},
        {"network:\n  - a.example\n  - a.example\n  - b.example", "a.example b.example", NULL},
        {"network: a.example, b.example:22", "a.example b.example:22", NULL},
        {"network: none", "", NULL},
        {"network: []", "", NULL},
        {"network:", NULL, NULL},
        {"network: true", NULL,
         "line 4: \"network: true\" names no hosts, and it reaches none"},
        {"network: full", NULL, "as in network: [api.example.com]"},
        {"network: \"*\"", NULL, "names no hosts"},
        {"network: [\"*\", a.example]", "a.example", "is every host"},
        {"network: [https://a.example/v1, b.example]", "b.example", "without https://"},
        {"network: [\"*.com\"]", NULL, "too wide"},
        {"network: [10.0.0.1]", NULL, "is an address"},
        {"network: [{host: a.example}]", NULL, "is no text"},
        {"network: {allow: [a.example]}", NULL, "must be a list of hosts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        struct skill skill;

        (void)snprintf(text, sizeof(text), "---\nname: a\ndescription: b\n%s\n---\n",
                       cases[i].field);
        skill = parse(text);
        if (cases[i].list)
            assert_string_equal(skill.network, cases[i].list);
        else
            assert_null(skill.network);
        assert_int_equal(skill.warnings.len, cases[i].warning != NULL);
        if (cases[i].warning && !strstr(skill.warnings.items[0], cases[i].warning))
            fail_msg("%s", skill.warnings.items[0]);
        skill_finish(&skill);
    }
}

static void input_schemas(void **state)
{
    static const char json[] =
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1,"
        "\"default\":12345678901234567890},\"s\":{\"enum\":[\"1\",\"yes\",null,true,-2.5e3,"
        "\"01\",\".5\"]},\"S\":{}},\"required\":[\"n\"]}";

    (void)state;
    expect_schema("input_schema:\n  type: object\n  properties:\n    n:\n      type: integer\n"
                  "      minimum: 1\n      default: 12345678901234567890\n"
                  "    s: {enum: [\"1\", yes, ~, true, -2.5e3, 01, .5]}\n    S: {}\n"
                  "  required: [n]\n",
                  json, NULL);
    expect_schema("metadata:\n  input_schema: '{\"properties\": {\"a\": {}}}'\n",
                  "{\"properties\":{\"a\":{}},\"type\":\"object\"}", NULL);
    expect_schema("metadata:\n  author: me\n  input_schema:\n    properties: {a: true}\n",
                  "{\"properties\":{\"a\":true},\"type\":\"object\"}", NULL);
    expect_schema("input_schema: {}\n", "{\"type\":\"object\",\"properties\":{}}", NULL);
    expect_schema("input_schema:\n", NULL, NULL);
    expect_schema("input_schema: some text\n", NULL, "cannot be used: it must be a map");
    expect_schema("input_schema: [1]\n", NULL, "cannot be used: it must be a map");
    expect_schema("input_schema: {type: string}\n", NULL, "its type must be \"object\"");
    expect_schema("input_schema: {properties: [a]}\n", NULL, "\"properties\" must be a map");
    expect_schema("input_schema: {properties: {a: 1}}\n", NULL, "\"a\" must be a map");
    expect_schema("input_schema: {required: a}\n", NULL, "\"required\" must be a list");
    expect_schema("input_schema: {required: [1]}\n", NULL, "must be a list of names");
    expect_schema("input_schema: {a: 1, a: 2}\n", NULL, "there twice");
}

static void expect_shown(const char *front, const char *body, const char *json,
                         const char *warning)
{
    char text[4096];
    struct skill skill;

    snprintf(text, sizeof(text), "---\nname: a\ndescription: d\n%s---\n%s", front, body);
    skill = parse(text);
    if (json && (!skill.input_schema || strcmp(skill.input_schema, json) != 0))
        fail_msg("%s instead of %s in:\n%s", skill.input_schema, json, body);
    if (!json && skill.input_schema)
        fail_msg("%s in:\n%s", skill.input_schema, body);
    if (warning)
        expect_warning(&skill, warning);
    else
        assert_int_equal(skill.warnings.len, 0);
    skill_finish(&skill);
}

#define BLOCK  "```json\n{\"properties\": {\"n\": {}}}\n```\n"
#define SHOWN  "{\"properties\":{\"n\":{}},\"type\":\"object\"}"
#define OTHERS "```json\n{\"other\": 1}\n```\n"

/* A schema in the instructions, below its heading. */
static void schemas_in_the_body(void **state)
{
    (void)state;
    expect_shown("", "# A\n\n## Input schema\n\nText.\n\n" BLOCK, SHOWN, NULL);
    expect_shown("", "### `input_schema`:\r\n" BLOCK OTHERS, SHOWN, NULL);
    expect_shown("", "# INPUT-SCHEMA #\n```sh\nx\n```\n" BLOCK, SHOWN, NULL);
    expect_shown("", "# Input schema\n  ~~~~ JSON title\n{\"properties\":\n{}}\n~~~\n~~~~\n",
                 NULL, "cannot be used");
    expect_shown("", "# Input schema\n~~~~ json\n{\"properties\":\n{\"n\":{}}}\n ~~~~~\n",
                 SHOWN, NULL);
    expect_shown("input_schema: {}\n", "# Input schema\n" BLOCK,
                 "{\"type\":\"object\",\"properties\":{}}", NULL);
    /* Another heading, no heading, one in a block, a block that is not closed, no JSON. */
    expect_shown("", "# Input schema\n## Example\n" BLOCK, NULL, NULL);
    expect_shown("", BLOCK "# Input schema\n", NULL, NULL);
    expect_shown("", "# Input schemas\n" BLOCK, NULL, NULL);
    expect_shown("", "Input schema\n" BLOCK, NULL, NULL);
    expect_shown("", "```\n# Input schema\n```\n" BLOCK, NULL, NULL);
    expect_shown("", "#Input schema\n" BLOCK, NULL, NULL);
    expect_shown("", "Text.\n\n    # Input schema\n" BLOCK, NULL, NULL);
    expect_shown("", "# Input schema\n```json\n{\"properties\": {}}\n", NULL, NULL);
    expect_shown("", "# Input schema\n```json5\n{}\n```\n", NULL, NULL);
    expect_shown("", "# Input schema\n```json", NULL, NULL);
    /* What is shown and cannot be meant. */
    expect_shown("", "# Input schema\n" OTHERS BLOCK, NULL, "with \"properties\"");
    expect_shown("", "# Input schema\n```json\n{oops\n```\n", NULL, "with \"properties\"");
    expect_shown("", "# Input schema\n```json\n```\n", NULL, "with \"properties\"");
    expect_shown("", "# Input schema\n```json\n{\"properties\": [1]}\n```\n", NULL,
                 "\"properties\" must be a map");
}

static void warnings_have_a_limit(void **state)
{
    struct buf text = buf_init(1u << 16);
    struct skill skill;

    (void)state;
    buf_printf(&text, "---\nname: a\ndescription: d\n");
    for (unsigned i = 0; i < 300; i++)
        buf_printf(&text, "field-%u: x\n", i);
    buf_printf(&text, "---\n");
    skill = parse(buf_cstr(&text));
    assert_int_equal(skill.warnings.len, 100);
    expect_warning(&skill, "unknown field \"field-98\" is ignored");
    assert_string_equal(skill.warnings.items[99],
                        "there is more to warn of, which is left out");
    skill_finish(&skill);
    buf_finish(&text);
}

static void a_large_input_schema(void **state)
{
    struct buf text = buf_init(1u << 20);
    struct skill skill;

    (void)state;
    buf_printf(&text, "---\nname: a\ndescription: d\ninput_schema: {title: \"");
    for (unsigned i = 0; i < 40000; i++)
        buf_append(&text, "x", 1);
    buf_printf(&text, "\"}\n---\n");
    skill = parse(buf_cstr(&text));
    assert_null(skill.input_schema);
    expect_warning(&skill, "it is over 32768 bytes");
    skill_finish(&skill);
    buf_clear(&text);
    buf_printf(&text, "---\nname: a\ndescription: d\ninput_schema: '");
    for (unsigned i = 0; i < 30; i++)
        buf_printf(&text, "{\"a\":");
    buf_printf(&text, "1");
    for (unsigned i = 0; i < 30; i++)
        buf_printf(&text, "}");
    buf_printf(&text, "'\n---\n");
    skill = parse(buf_cstr(&text));
    assert_null(skill.input_schema);
    expect_warning(&skill, "levels deep");
    skill_finish(&skill);
    buf_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields),
        cmocka_unit_test(hosts_are_declared),
        cmocka_unit_test(input_schemas),
        cmocka_unit_test(schemas_in_the_body),
        cmocka_unit_test(warnings_have_a_limit),
        cmocka_unit_test(a_large_input_schema),
        cmocka_unit_test(smallest),
        cmocka_unit_test(empty_lines_come_before),
        cmocka_unit_test(an_empty_version_is_none),
        cmocka_unit_test(colons_get_quotes),
        cmocka_unit_test(forgiven),
        cmocka_unit_test(names_of_any_script),
        cmocka_unit_test(refused),
        cmocka_unit_test(bounded),
        cmocka_unit_test(not_terminated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
