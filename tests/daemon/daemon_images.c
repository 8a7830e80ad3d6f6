/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which image a skill runs in: chosen by what it needs, or by whoever names one, and only of
 * those that its tenant may use. It is told wherever somebody asks.
 */
#include "tests/unit/cmocka_all.h"

#include "base/fd.h"
#include "tests/daemon/daemon_harness.h"
#include "tests/unit/fake_built.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect harness_expect
#define MD     "---\nname: %s\ndescription: A skill of a test.\nversion: \"1\"\n%s---\n"
#define DATA                                                                                   \
    "\"image\":\"data\",\"image_reason\":\"smallest of 3 that has Python, numpy, pandas\""
#define SMALLEST "\"image\":\"python\",\"image_reason\":\"smallest of 3 that has Python\""
#define SHELL    "program bash\nprogram sh\n"
#define PYTHON   "language python 3.11\nstandard json\n" SHELL

/* The image python is the smallest; node is as large, and runs no Python. */
static int start(void **state)
{
    struct harness *h = calloc(1, sizeof(*h));
    char recipes[256];

    *state = h;
    harness_init(h, "boot", "restore");
    fake_built(h->dir, "data.erofs", "restore, and larger");
    fake_built(h->dir, "node.erofs", "restore");
    harness_write(h, "python.manifest", PYTHON);
    harness_write(h, "data.manifest", PYTHON "module numpy\nmodule pandas\nmemory 512Mi\n");
    harness_write(h, "node.manifest", "program node\n" SHELL);
    harness_write(h, "away.manifest", PYTHON "module torch\n");
    snprintf(recipes, sizeof(recipes), "%s/images/recipes", h->data);
    assert_int_equal(fd_make_folders(recipes, 0700, 0700), 0);
    harness_write(h, "data/images/recipes/geo.yaml",
                  "name: geo\nextends: python.yaml\npackages: [python3-shapely]\n"
                  "brings: [module shapely]\n");
    harness_start(h, NULL);
    harness_wait_ready(h);
    return 0;
}

static struct answer push(const struct harness *h, const char *name, const char *fields,
                          const char *file, const char *text)
{
    char md[256];
    const struct harness_file files[] = {{"SKILL.md", md}, {file, text}, {NULL, NULL}};

    snprintf(md, sizeof(md), MD, name, fields);
    return harness_push_files(h, files);
}

static void push_python(const struct harness *h, const char *name, const char *text,
                        const char *part)
{
    expect(push(h, name, "", "main.py", text), 201, part);
}

static struct answer change(const struct harness *h, const char *limits)
{
    char json[1200];

    snprintf(json, sizeof(json), "{\"limits\":{%s}}", limits);
    return harness_request(h, "PATCH", "/v1/admin/tenants/default",
                           "Content-Type: application/json\r\n", json, strlen(json));
}

/* What is said of it, once it was run, by the record of it too. */
static void check_run(const struct harness *h, const char *json, const char *part)
{
    struct answer a = harness_run(h, json);
    char path[64] = "/v1/executions/";
    const char *id = strstr(a.body, "exec_");

    assert_int_equal(a.status, 200);
    assert_non_null(id);
    strncat(path, id, 37);
    if (!answer_has(&a, part))
        fail_msg("no %s in %s", part, a.body);
    answer_finish(&a);
    expect(harness_get(h, path), 200, part);
}

static void the_smallest_that_has_everything(void **state)
{
    push_python(*state, "small", "import json\n", SMALLEST);
    push_python(*state, "tables", "import numpy\nimport pandas\n", DATA);
    for (int i = 0; i < 2; i++) {
        check_run(*state, "{\"skill\":\"small\"}", SMALLEST);
        check_run(*state, "{\"skill\":\"tables\"}", DATA);
    }
    expect(harness_get(*state, "/v1/skills/tables/1/inspect"), 200, DATA);
    expect(push(*state, "script", "", "main.js", "1\n"), 201, "\"image\":\"node\"");
}

/* Of a skill in two languages each script runs where it can. */
static void of_the_script_that_is_run(void **state)
{
    const struct harness_file files[] = {
        {"SKILL.md", "---\nname: both\ndescription: A skill of a test.\n---\n"},
        {"main.py", "import json, numpy\n"},
        {"scripts/a.js", "1\n"},
        {NULL, NULL}};

    expect(harness_push_files(*state, files), 201, "\"image\":\"data\"");
    check_run(*state, "{\"skill\":\"both\"}", "\"image\":\"data\"");
    check_run(*state, "{\"skill\":\"both\",\"script\":\"scripts/a.js\"}", "\"image\":\"node\"");
    check_run(*state, "{\"skill\":\"both\"}", "\"image\":\"data\"");
}

static void also_of_what_nobody_registered(void **state)
{
    size_t len;
    char *tar = harness_skill("check", "1", "import pandas, numpy\n", &len);

    check_run(*state, "{\"code\":\"import numpy, pandas\"}", DATA);
    check_run(*state, "{\"code\":\"import json\"}", SMALLEST);
    check_run(*state, "{\"code\":\"echo x\",\"lang\":\"bash\"}", "\"image\":\"node\"");
    expect(harness_request(*state, "POST", "/v1/skills/validate",
                           "Content-Type: application/octet-stream\r\n", tar, len),
           200, "\"image\":\"data\"");
    free(tar);
}

static void a_tool_runs_where_its_skill_does(void **state)
{
    static const char call[] = "{\"name\":\"called\",\"arguments\":{}}",
                      other[] = "{\"name\":\"called\",\"image\":\"python\"}";
    static const char type[] = "Content-Type: application/json\r\n";

    push_python(*state, "called", "import numpy\nimport pandas\n", DATA);
    expect(harness_request(*state, "POST", "/v1/tools/call", type, call, strlen(call)), 200,
           DATA);
    expect(harness_request(*state, "POST", "/v1/tools/call", type, other, strlen(other)), 200,
           "\"image\":\"python\",\"image_reason\":\"the request names it\"");
}

static void what_is_named_wins(void **state)
{
    expect(push(*state, "named", "image: data\n", "main.py", "import json\n"), 201,
           "\"image\":\"data\",\"image_reason\":\"SKILL.md names it\"");
    check_run(*state, "{\"skill\":\"named\"}", "\"image_reason\":\"SKILL.md names it\"");
    check_run(*state, "{\"skill\":\"named\",\"image\":\"python\"}",
              "\"image\":\"python\",\"image_reason\":\"the request names it\"");
    check_run(*state, "{\"skill\":\"named\",\"image\":\"\"}", "\"image\":\"data\"");
    expect(harness_run(*state, "{\"skill\":\"named\",\"image\":\"big\"}"), 400,
           "\"message\":\"there is no image \\\"big\\\" here; there is python, data, node\"");
    expect(harness_run(*state, "{\"skill\":\"named\",\"image\":7}"), 400,
           "\\\"image\\\" must be a string");
}

/* One of another runner is the same as none. */
static void a_name_that_is_not_here(void **state)
{
    expect(push(*state, "foreign", "image: python:3.12\n", "main.py", "import numpy, pandas\n"),
           201, "there is no image \\\"python:3.12\\\" here: it runs in the image data");
    check_run(*state, "{\"skill\":\"foreign\"}", DATA);
    check_run(*state, "{\"skill\":\"foreign\"}",
              "\"warnings\":[\"there is no image python:3.12 here: it ran in data\"]");
}

static void warnings_are_of_the_chosen_one(void **state)
{
    push_python(*state, "lacking", "import numpy\nimport leftpad\n",
                "\"image\":\"data\",\"image_reason\":\"none of 3 has all: this one lacks "
                "leftpad\",\"warnings\":[\"main.py line 2: the image data has no module "
                "\\\"leftpad\\\": if it is pure Python, put its folder beside the script, else "
                "a wheel of it into wheels/\"]");
    push_python(*state, "deep", "import torch\n",
                "and nothing in the image stands in for it: put a wheel of it into wheels/; "
                "the image away has it, which is "
                "not installed here: `skillvm image build away` makes it");
}

static void an_operators_recipe_is_told_of(void **state)
{
    static const char makes[] = "the image geo has it, which is not installed here: "
                                "`skillvm image build geo` makes it";

    push_python(*state, "places", "import shapely\n", makes);
    expect(harness_get(*state, "/v1/skills/places/1/inspect"), 200, makes);
    expect(push(*state, "placed", "image: geo\n", "main.py", "import json\n"), 201,
           "there is no image \\\"geo\\\" here, and `skillvm image build geo` makes it: it "
           "runs in "
           "the image python");
}

static void a_tenant_has_its_images(void **state)
{
    push_python(*state, "plain", "import json\n", SMALLEST);
    expect(change(*state, "\"images\":[\"python\",\"node\",\"python\"]"), 200,
           "\"images\":[\"python\",\"node\"]");
    /* What is chosen, and what is only told of. */
    push_python(*state, "wants", "import pandas\n",
                "\"image\":\"python\",\"image_reason\":\"none of 2 has all: this one lacks "
                "pandas\"");
    check_run(*state, "{\"skill\":\"plain\"}",
              "\"image_reason\":\"smallest of 2 that has Python\"");
    /* What is named. */
    expect(push(*state, "forbidden", "image: data\n", "main.py", "import json\n"), 201,
           "the image \\\"data\\\" may not be used here");
    expect(harness_run(*state, "{\"skill\":\"forbidden\"}"), 403,
           "\"error\":\"image_not_allowed\",\"message\":\"this tenant may not use the image "
           "\\\"data\\\"; it may use python, node\"");
    expect(harness_run(*state, "{\"skill\":\"plain\",\"image\":\"data\"}"), 403,
           "\"error\":\"image_not_allowed\"");
    expect(harness_run(*state, "{\"skill\":\"forbidden\",\"image\":\"node\"}"), 200,
           "\"image\":\"node\"");
    expect(change(*state, "\"images\":[\"elsewhere\"]"), 200, "\"images\":[\"elsewhere\"]");
    expect(harness_run(*state, "{\"skill\":\"plain\"}"), 403,
           "none of the images that this tenant may use is here: elsewhere");
    push_python(*state, "nowhere", "import json\n", "\"image\":null,\"image_reason\":null");
    /* The next request has it again. */
    expect(change(*state, "\"images\":null"), 200, "\"images\":[]");
    check_run(*state, "{\"skill\":\"forbidden\"}", "\"image\":\"data\"");
    check_run(*state, "{\"skill\":\"plain\"}", SMALLEST);
}

/* What nobody asks for is the image's; who asks gets that. */
static void memory_is_the_images(void **state)
{
    expect(push(*state, "big", "resources: {memory: 96Mi}\n", "main.py", "import pandas\n"),
           201, "\"image\":\"data\"");
    check_run(*state, "{\"code\":\"import json\"}", ":268435456,");
    check_run(*state, "{\"code\":\"import pandas\"}", ":536870912,");
    check_run(*state, "{\"code\":\"import json\",\"image\":\"data\"}", ":536870912,");
    check_run(*state, "{\"code\":\"import pandas\",\"limits\":{\"memory\":\"64Mi\"}}",
              ":67108864,");
    check_run(*state, "{\"skill\":\"big\"}", ":100663296,");
    expect(harness_get(*state, "/v1/skills/big/1/inspect"), 200,
           "\"image_memory_bytes\":536870912,");
    expect(change(*state, "\"max_memory_bytes\":268435456"), 200, "268435456");
    check_run(*state, "{\"code\":\"import pandas\"}",
              "\"the memory limit was cut to 256 MiB\"");
    expect(change(*state, "\"max_memory_bytes\":0"), 200, "\"max_memory_bytes\":0");
}

static void lists_that_are_none(void **state)
{
    static const char *const bad[] = {
        "\"images\":\"python\"",     "\"images\":{}",           "\"images\":[1]",
        "\"images\":[\"\"]",         "\"images\":[\"Python\"]", "\"images\":[\"a b\"]",
        "\"images\":[\"a\\u0000\"]", "\"images\":[null]",
    };
    char many[1024] = "\"images\":[\"a\"";

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(change(*state, bad[i]), 400, "must be an array of names of images");
    for (int i = 0; i < 17; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many),
                 ",\"an-image-with-a-name-so-long--%02d\"", i);
    strcat(many, "]");
    expect(change(*state, many), 400, "names too many images");
    expect(harness_get(*state, "/v1/admin/tenants/default"), 200, "\"images\":[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_that_has_everything),
        cmocka_unit_test(of_the_script_that_is_run),
        cmocka_unit_test(also_of_what_nobody_registered),
        cmocka_unit_test(a_tool_runs_where_its_skill_does),
        cmocka_unit_test(what_is_named_wins),
        cmocka_unit_test(a_name_that_is_not_here),
        cmocka_unit_test(warnings_are_of_the_chosen_one),
        cmocka_unit_test(an_operators_recipe_is_told_of),
        cmocka_unit_test(a_tenant_has_its_images),
        cmocka_unit_test(memory_is_the_images),
        cmocka_unit_test(lists_that_are_none),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
