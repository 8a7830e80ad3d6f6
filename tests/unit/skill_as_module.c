/* SPDX-License-Identifier: Apache-2.0 */
/* Which scripts run as modules of their skill, and which stay as they are. */
#include "api/skill/as_module.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

/* Makes a skill in which path has this text, and compares what it runs as; NULL: as it is. */
static void check(const char *path, const char *text, const char *want)
{
    const struct member members[] = {
        {.path = "SKILL.md", .content = "---\nname: x\ndescription: y\n---\n"},
        {.path = "core/__init__.py", .content = ""},
        {.path = "core/deep/part.py", .content = ""},
        {.path = "json.py", .content = ""},
        {.path = "scripts/common.py", .content = ""},
        {.path = path, .content = text},
        {.path = NULL}};
    _cleanup_fd_ int in = make_archive(TAR, members);
    _cleanup_fd_ int tar = memfd_create("tar", MFD_CLOEXEC);
    struct skill_entry entry = {PROTO_MODE_SCRIPT, strdup(path), "python"};
    struct skill_archive archive;
    struct err err = {0};

    if (skill_archive_ingest(in, &archive_limits_default, NULL, tar, &archive, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(as_module(tar, &archive, &entry, &err), 0);
    if (strcmp(entry.entry, want ? want : path) != 0 ||
        entry.mode != (want ? PROTO_MODE_MODULE : PROTO_MODE_SCRIPT))
        fail_msg("%s with \"%s\" became %s", path, text, entry.entry);
    skill_entry_finish(&entry);
    skill_archive_finish(&archive);
}

static void own_packages(void **state)
{
    (void)state;
    check("scripts/a.py", "from scripts.common import x\n", "scripts.a");
    check("scripts/a.py", "from scripts import common\n", "scripts.a");
    check("scripts/a.py", "import os, core\n", "scripts.a");
    check("scripts/a.py", "import core.deep.part as p\n", "scripts.a");
    check("scripts/a.py", "from .common import x\n", "scripts.a");
    check("scripts/sub/a_1.py", "from core.deep import part\n", "scripts.sub.a_1");
}

static void what_runs_as_it_is(void **state)
{
    (void)state;
    check("scripts/a.py", "import os\n", NULL);
    check("scripts/a.py", "", NULL);
    check("scripts/a.py", "import common\n", NULL);
    /* Of the standard library, and of nobody. */
    check("scripts/a.py", "import json\n", NULL);
    check("scripts/a.py", "from core import\n", NULL);
    check("scripts/a.py", "from core.other import x\n", NULL);
    /* As a module it would not find what is beside it. */
    check("scripts/a.py",
          "try:\n    from .common import x\nexcept ImportError:\n"
          "    from common import x\n",
          NULL);
    check("scripts/a.py", "import sys\nsys.path.insert(0, '..')\nimport core\n", NULL);
    check("a.py", "import core\n", NULL);
    check("scripts/a-b.py", "import core\n", NULL);
    check("scripts/1.py", "import core\n", NULL);
}

static void other_languages(void **state)
{
    struct skill_entry entry = {PROTO_MODE_SCRIPT, strdup("scripts/a.sh"), "bash"};

    (void)state;
    assert_int_equal(as_module(-1, NULL, &entry, NULL), 0);
    assert_string_equal(entry.entry, "scripts/a.sh");
    skill_entry_finish(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_packages),
        cmocka_unit_test(what_runs_as_it_is),
        cmocka_unit_test(other_languages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
