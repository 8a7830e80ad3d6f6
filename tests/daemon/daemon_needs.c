/* SPDX-License-Identifier: Apache-2.0 */
/* What a skill needs and the image does not have: at a push, in a look at it, and in a result.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"
#include "tests/unit/fake_built.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect harness_expect
#define MD     "---\nname: %s\ndescription: A skill of a test.\nversion: \"1\"\n---\n"
#define NONE                                                                                   \
    "module \\\"pandas\\\": it has compiled code; csv, sqlite3 and statistics are there"

/* One whose image has a list of what is in it. */
static int start(void **state)
{
    struct harness *h = calloc(1, sizeof(*h));

    *state = h;
    harness_init(h, "boot", "restore");
    harness_write(h, "python.manifest",
                  "language python 3.11\nprogram bash\nprogram sh\nstandard json\nmodule yaml\n"
                  "package pyyaml 6.0\n");
    harness_start(h, NULL);
    harness_wait_ready(h);
    return 0;
}

/* The smaller of two that run JavaScript has what is needed, or a push says what it lacks. */
static void a_skill_in_javascript_gets_its_image(void **state)
{
    static const char md[] = "---\nname: script\ndescription: A skill of a test.\n---\n";
    struct harness_file files[] = {
        {"SKILL.md", md}, {"main.mjs", "import 'docx'\n"}, {NULL, NULL}};
    struct harness h;

    (void)state;
    harness_init(&h, "boot", "restore");
    harness_write(&h, "python.manifest", "language python 3.11\nprogram bash\n");
    fake_built(h.dir, "node.erofs", "restore");
    harness_write(&h, "node.manifest", "language node 18\nprogram node\nnode ajv\n");
    fake_built(h.dir, "web.erofs", "restore, and larger");
    harness_write(&h, "web.manifest", "language node 18\nprogram node\nnode ajv\nnode docx\n");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    expect(harness_push_files(&h, files), 201,
           "\"image\":\"web\",\"image_reason\":\"smallest of 3 that has JavaScript, docx\"");
    expect(harness_run(&h, "{\"skill\":\"script\"}"), 200, "\"image\":\"web\"");
    files[1].content = "import 'ajv'\nimport 'axios'\n";
    expect(
        harness_push_files(&h, files), 201,
        "\"warnings\":[\"main.mjs line 2: the image node has no module \\\"axios\\\": fetch, "
        "of Node itself, is there");
    expect(harness_get(&h, "/v1/skills/script/latest/inspect"), 200,
           "\"imports\":[{\"module\":\"ajv\",\"from\":\"image\",\"file\":\"main.mjs\",\"line\":"
           "1,\"guarded\":false},{\"module\":\"axios\",\"from\":\"missing\"");
    expect(harness_run(&h, "{\"skill\":\"script\",\"env\":{\"FAKE\":\"stderr\",\"FAKE_DATA\":"
                           "\"Error: Cannot find module 'axios'\\nRequire stack:\\n\"}}"),
           200, "\"warnings\":[\"the image node has no module \\\"axios\\\": fetch");
    harness_finish(&h);
}

static struct answer push(const struct harness *h, const char *name, const char *script)
{
    char md[256];
    const struct harness_file files[] = {{"SKILL.md", md}, {"main.py", script}, {NULL, NULL}};

    snprintf(md, sizeof(md), MD, name);
    return harness_push_files(h, files);
}

static void push_and_validate_warn(void **state)
{
    size_t len;
    char *tar = harness_skill("check", "1", "import json\nimport pandas\n", &len);

    expect(push(*state, "good", "import json, yaml\n"), 201, "\"warnings\":[]");
    expect(push(*state, "lacking", "import json\nimport pandas\n"), 201,
           "\"warnings\":[\"main.py line 2: the image python has no " NONE "\"]");
    expect(harness_request(*state, "POST", "/v1/skills/validate",
                           "Content-Type: application/octet-stream\r\n", tar, len),
           200, "\"warnings\":[\"main.py line 2: the image python has no " NONE "\"]");
    free(tar);
}

/* Of what the image has in another version: at a push, and in the answer of a run. */
static void a_version_that_is_not_there_is_told(void **state)
{
    static const char md[] = "---\nname: newer\ndescription: A skill of a test.\n---\n";
    static const char told[] =
        "requirements.txt line 2: it asks for pyyaml >=7, and the image python has 6.0: put a "
        "wheel of it into wheels/, or ask for what the image has\"";
    const struct harness_file files[] = {{"SKILL.md", md},
                                         {"main.py", "import yaml\n"},
                                         {"requirements.txt", "# tables\nPyYAML>=7\n"},
                                         {NULL, NULL}};
    static const char code[] = "{\"code\":\"# /// script\\n# dependencies = "
                               "['pyyaml~=5.4']\\n# ///\\nimport yaml\\n\","
                               "\"lang\":\"python\"}";

    expect(harness_push_files(*state, files), 201, told);
    expect(harness_get(*state, "/v1/skills/newer/latest/inspect"), 200, told);
    expect(harness_run(*state, code), 200,
           "line 2: it asks for pyyaml ~=5.4, and the image python has 6.0: put a wheel");
}

/* Where no image that may be taken has Node, what to do is said. */
static void a_language_without_an_image_is_refused(void **state)
{
    static const char code[] = "{\"code\":\"x\",\"lang\":\"node\"}";

    expect(harness_run(*state, code), 400, "the image \\\"python\\\" does not run node");
    expect(harness_run(*state, code), 400, "`skillvm image build node`");
}

static void inspection_tells_where_things_are_from(void **state)
{
    expect(push(*state, "seen", "import json, yaml, gone\n"), 201, "gone");
    expect(harness_get(*state, "/v1/skills/seen/latest/inspect"), 200,
           "{\"name\":\"seen\",\"version\":\"1\",\"packages\":[],\"image\":\"python\",\"image_"
           "reason\":\"the "
           "only one to choose "
           "from\",\"image_known\":true,\"image_memory_bytes\":null,\"imports\":["
           "{\"module\":\"json\",\"from\":\"standard library\",\"file\":\"main.py\",\"line\":1,"
           "\"guarded\":false},"
           "{\"module\":\"yaml\",\"from\":\"image\",\"file\":\"main.py\",\"line\":1,"
           "\"guarded\":false},"
           "{\"module\":\"gone\",\"from\":\"missing\",\"file\":\"main.py\",\"line\":1,"
           "\"guarded\":false}],\"programs\":[],\"requirements\":[],\"languages\":[{\"name\":"
           "\"Python\",\"detail\":null,\"from\":\"image\",\"image_version\":null,"
           "\"fits\":true,\"file\":\"main.py\",\"line\":1}],"
           "\"fields\":[],\"hosts\":[],\"secrets\":[],\"warnings\":[\"main.py line 1: ");
    expect(harness_get(*state, "/v1/skills/seen/2/inspect"), 404, "has no version 2");
    expect(harness_get(*state, "/v1/skills/unseen/1/inspect"), 404, "no skill named unseen");
}

static struct answer run(const struct harness *h, const char *how, const char *said)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{\"skill\":\"fails\",\"env\":{\"FAKE\":\"%s\",\"FAKE_DATA\":\"%s\"}}", how, said);
    return harness_run(h, json);
}

static void results_say_why(void **state)
{
    expect(push(*state, "fails", "import json\n"), 201, "\"warnings\":[]");
    expect(run(*state, "stderr", "ModuleNotFoundError: No module named 'pandas'\\n"), 200,
           "\"warnings\":[\"the image python has no " NONE "\"]");
    expect(run(*state, "stderr", "main.sh: line 1: gs: command not found\\n"), 200,
           "\"warnings\":[\"the image python has no program \\\"gs\\\": use Python, or bring a "
           "program "
           "that is a script\"]");
    expect(run(*state, "stderr", "PermissionError: [Errno 13] Permission denied: 'a.csv'\\n"),
           200,
           "\"warnings\":[\"it could not write \\\"a.csv\\\": the folders of a skill are "
           "read-only; files for the caller go to /sandbox/out/files (SANDBOX_FILES_DIR), "
           "others to /tmp\"]");
    /* What is there failed for another reason, and what went well has none. */
    expect(run(*state, "stderr", "ModuleNotFoundError: No module named 'yaml.x'\\n"), 200,
           "\"warnings\":[]");
    expect(run(*state, "stdout", "ModuleNotFoundError: No module named 'pandas'\\n"), 200,
           "\"warnings\":[]");
    expect(run(*state, "stdout", "PermissionError: [Errno 13] Permission denied: 'x'\\n"), 200,
           "\"warnings\":[]");
}

/* Without a list nothing is said to be missing. */
static void without_a_list(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    expect(push(&h, "fails", "import pandas\n"), 201, "\"warnings\":[]");
    expect(harness_get(&h, "/v1/skills/fails/1/inspect"), 200,
           "\"image\":\"python\",\"image_reason\":\"nothing is known of what it "
           "has\",\"image_known\":"
           "false");
    expect(run(&h, "stderr", "ModuleNotFoundError: No module named 'pandas'\\n"), 200,
           "\"warnings\":[]");
    harness_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_and_validate_warn),
        cmocka_unit_test(a_version_that_is_not_there_is_told),
        cmocka_unit_test(a_language_without_an_image_is_refused),
        cmocka_unit_test(a_skill_in_javascript_gets_its_image),
        cmocka_unit_test(inspection_tells_where_things_are_from),
        cmocka_unit_test(results_say_why),
        cmocka_unit_test(without_a_list),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
