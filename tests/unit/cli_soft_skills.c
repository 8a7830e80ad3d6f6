/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a software host's skills were when it was stopped: known to whoever asked then, for as
 * long as its disk is what it was.
 */
#include "api/cli/soft_skills.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/cli/remote.h"

static struct cli cli;
static char hint[NEAREST_HINT_SIZE];

static void run(const char *command)
{
    char line[PATH_MAX + 256];

    (void)snprintf(line, sizeof(line), "cd '%s' && %s", cli.data_dir, command);
    assert_int_equal(system(line), 0);
}

static int start(void **unused)
{
    (void)unused;
    cli = (struct cli){.data_dir = "/tmp/skillvm-soft-skills.XXXXXX"};
    if (!mkdtemp(cli.data_dir))
        return -1;
    run("mkdir softhost && echo x >softhost/disk.img");
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    run("rm -rf \"$PWD\"");
    return 0;
}

static void keep(const char *json)
{
    _cleanup_buf_ struct buf skills = buf_init(SOFT_SKILLS_MAX);

    assert_int_equal(buf_append(&skills, json, strlen(json)), 0);
    soft_skills_keep(&cli, &skills);
}

static void what_is_not_there_is_known(void **unused)
{
    (void)unused;
    assert_false(soft_skills_lack(&cli, "two", hint));
    keep("[{\"name\": \"one\"}, {\"name\": \"twoo\", \"version\": \"1\"}]");
    assert_true(soft_skills_lack(&cli, "two", hint));
    assert_string_equal(hint, "; did you mean \"twoo\"?");
    assert_false(soft_skills_lack(&cli, "one", hint));
    keep("[]");
    assert_true(soft_skills_lack(&cli, "one", hint));
    assert_string_equal(hint, REMOTE_NO_SKILLS);
}

static void a_disk_that_was_written_to_is_unknown(void **unused)
{
    (void)unused;
    keep("[]");
    assert_true(soft_skills_lack(&cli, "one", hint));
    run("touch -d '+1 second' softhost/disk.img");
    assert_false(soft_skills_lack(&cli, "one", hint));
    keep("[]");
    run("rm softhost/disk.img");
    assert_false(soft_skills_lack(&cli, "one", hint));
}

static void who_did_not_hear_keeps_nothing(void **unused)
{
    (void)unused;
    keep("[]");
    keep("");
    assert_false(soft_skills_lack(&cli, "one", hint));
}

/* Another tenant, or by a key, may have others. */
static void another_caller_knows_nothing(void **unused)
{
    (void)unused;
    keep("[]");
    cli.tenant = "other";
    assert_false(soft_skills_lack(&cli, "one", hint));
    cli.tenant = NULL;
    strcpy(cli.key, "secret");
    assert_false(soft_skills_lack(&cli, "one", hint));
    cli.key[0] = '\0';
    assert_true(soft_skills_lack(&cli, "one", hint));
}

static void what_is_no_list_is_unknown(void **unused)
{
    static const char *const bad[] = {"{}", "[1]", "[{}]", "[", "nothing", "[{\"name\": 1}]"};

    (void)unused;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        keep(bad[i]);
        assert_false(soft_skills_lack(&cli, "one", hint));
    }
    keep("[]");
    run("truncate -s 5 softhost/skills.json");
    assert_false(soft_skills_lack(&cli, "one", hint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_there_is_known, start, finish),
        cmocka_unit_test_setup_teardown(a_disk_that_was_written_to_is_unknown, start, finish),
        cmocka_unit_test_setup_teardown(who_did_not_hear_keeps_nothing, start, finish),
        cmocka_unit_test_setup_teardown(another_caller_knows_nothing, start, finish),
        cmocka_unit_test_setup_teardown(what_is_no_list_is_unknown, start, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
