/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a session is removed: the others stay, and its room is given back. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/sessions_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a metric without labels is now. */
static unsigned long metric(const struct harness *h, const char *name)
{
    struct answer a = harness_get(h, "/metrics");
    unsigned long value;
    const char *at;
    char line[80];

    snprintf(line, sizeof(line), "\n%s ", name);
    at = strstr(a.body, line);
    assert_non_null(at);
    value = strtoul(at + strlen(line), NULL, 10);
    answer_finish(&a);
    return value;
}

static unsigned long stored_bytes(const struct harness *h)
{
    struct answer a = harness_get(h, "/v1/admin/tenants/default");
    unsigned long value = (unsigned long)answer_number(&a, "stored_bytes");

    answer_finish(&a);
    return value;
}

/* The others stay as they are, a name that needs a record of its own too, and so does who reads
 * them; what is gone is not stored. */
static void one_file_is_removed(void **state)
{
    unsigned objects = harness_count_files(*state, "objects");
    unsigned long sessions = metric(*state, "skillvm_sessions"), bytes, stored;

    expect_status(run(*state, "cut", "session", "a=one"), 200);
    expect_status(run(*state, "cut", "session", "sub/\xc3\xbc=deep"), 200);
    expect_status(run(*state, "cut", "session", "z=last"), 200);
    assert_int_equal(metric(*state, "skillvm_sessions"), sessions + 1);
    bytes = metric(*state, "skillvm_sessions_bytes");
    expect(remove_file(*state, "", "cut", "b"), 404, "session cut has no file b");
    expect(remove_file(*state, "", "cut", "sub"), 404, "session cut has no file sub");
    expect(remove_file(*state, "", "cut", "sub/"), 404, "there is nothing at");
    expect(remove_file(*state, "", "none", "a"), 404, "there is no session none");
    expect(harness_get(*state, "/v1/sessions/cut/files/sub/%c3%bc"), 200, "deep");
    expect(harness_get(*state, "/v1/sessions/cut"), 200, "{\"path\":\"sub/\xc3\xbc\",");
    stored = stored_bytes(*state);
    expect_status(remove_file(*state, "", "cut", "sub/%c3%bc"), 204);
    expect(remove_file(*state, "", "cut", "sub/%c3%bc"), 404, "has no file");
    expect(harness_get(*state, "/v1/sessions/cut"), 200,
           "\"files_list\":[{\"path\":\"a\",\"size_bytes\":3},{\"path\":\"z\",\"size_bytes\":"
           "4}],\"truncated\":false}");
    expect(harness_get(*state, "/v1/sessions/cut"), 200, "\"bytes\":7,\"files\":2,");
    expect(harness_get(*state, "/v1/sessions/cut/files/z"), 200, "last");
    /* Its header, its record with another, and a block of content. */
    assert_int_equal(metric(*state, "skillvm_sessions_bytes"), bytes - 4 * 512);
    assert_int_equal(stored_bytes(*state), stored - 4 * 512);
    assert_int_equal(harness_count_files(*state, "objects"), objects + 1);
    /* What a run then finds is that, byte for byte what it would leave itself. */
    expect_both(run(*state, "cut", "session", "b=two"), "\"a\":[3,", "\"committed\":true,");
    expect(harness_get(*state, "/v1/sessions/cut"), 200, "\"files\":3,");
    expect_status(remove_file(*state, "", "cut", "a"), 204);
    expect_status(remove_file(*state, "", "cut", "b"), 204);
    expect_status(remove_file(*state, "", "cut", "z"), 204);
    expect(harness_get(*state, "/v1/sessions/cut"), 200, "\"bytes\":0,\"files\":0,");
    expect(run(*state, "cut", "session", "c=new"), 200, "\"output\":{}");
    forget(*state, "cut");
    assert_int_equal(harness_count_files(*state, "objects"), objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_is_removed),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
