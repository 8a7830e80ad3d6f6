/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a skill, as it is written and as it is read of a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/change_entry.h"

#include <errno.h>
#include <string.h>

#define DIGITS "0123456789abcdef0123456789abcdef"
#define KEY    "skill.skl_" DIGITS
#define DIGEST DIGITS DIGITS

static struct change filled(void)
{
    struct change c = {.kind = CHANGE_SKILL,
                       .id = "skl_" DIGITS,
                       .skill = {.tenant = "ten_" DIGITS,
                                 .digest = DIGEST,
                                 .created_ns = 1700000000123456789u,
                                 .bytes = 300ull << 20,
                                 .place = CHANGE_PLACE_MAX,
                                 .is_floating = true,
                                 .packages_digest = DIGEST,
                                 .packages_python = 11}};

    memset(c.skill.name, 'n', sizeof(c.skill.name) - 1);
    memset(c.skill.version, '9', sizeof(c.skill.version) - 1);
    memset(c.skill.description, 'd', sizeof(c.skill.description) - 1);
    memset(c.skill.packages, '1', sizeof(c.skill.packages) - 1);
    c.skill.packages[0] = '[';
    c.skill.packages[sizeof(c.skill.packages) - 2] = ']';
    return c;
}

/* The largest that there can be fits, and comes back as it was. */
static void what_is_written_is_read(void **state)
{
    const struct change c = filled();
    struct change back = {0};
    enum node_refusal why;
    struct buf text;
    char key[CHANGE_KEY_SIZE];

    (void)state;
    change_entry_key(c.kind, c.id, key);
    assert_string_equal(key, KEY);
    assert_int_equal(change_entry_write(&c, &text), 0);
    assert_int_equal(change_entry_parse(key, buf_cstr(&text), text.len, false, &back, &why), 0);
    assert_memory_equal(&c, &back, sizeof(c));
    buf_finish(&text);
    assert_int_equal(change_entry_parse(key, NULL, 0, true, &back, &why), 0);
    assert_true(back.is_removed);
    assert_string_equal(back.id, c.id);
}

/* A row whose packages have no room in a change. */
static void what_does_not_fit_is_not_written(void **state)
{
    struct change c = filled();
    struct buf text;

    (void)state;
    (void)strcpy(c.skill.packages, "!");
    assert_int_equal(change_entry_write(&c, &text), -E2BIG);
}

static void expect_refusal(const char *name, const char *version, const char *digest,
                           const char *rest)
{
    char text[512];
    struct change c;
    enum node_refusal why = NODE_TOO_MANY;

    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"default\",\"name\":\"%s\",\"version\":\"%s\","
             "\"digest\":\"%s\",\"description\":\"\",\"created_ns\":1,%s\"packages_python\":0}",
             name, version, digest, rest);
    if (change_entry_parse(KEY, text, strlen(text), false, &c, &why) == 0)
        fail_msg("%s is taken", text);
    assert_int_equal(why, NODE_MALFORMED);
}

#define REST "\"bytes\":1,\"place\":1,\"floating\":false,"

static void what_is_none_is_refused(void **state)
{
    (void)state;
    expect_refusal("", "1", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal("../x", "1", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal(".x", "1", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal("a@b", "1", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal("x", "a/b", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal("x", "", DIGEST, REST "\"packages_digest\":\"\",");
    expect_refusal("x", "1", "0123", REST "\"packages_digest\":\"\",");
    expect_refusal("x", "1", DIGEST, REST "\"packages_digest\":\"../x\",");
    /* Packages without a list of them. */
    expect_refusal("x", "1", DIGEST, REST "\"packages_digest\":\"" DIGEST "\",");
    expect_refusal("x", "1", DIGEST, REST "\"packages\":{},\"packages_digest\":\"\",");
    expect_refusal("x", "1", DIGEST, REST);
    expect_refusal("x", "1", DIGEST,
                   "\"bytes\":1,\"place\":9007199254740993,\"floating\":false,"
                   "\"packages_digest\":\"\",");
    expect_refusal("x", "1", DIGEST,
                   "\"bytes\":-1,\"place\":1,\"floating\":false,\"packages_digest\":\"\",");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(what_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
