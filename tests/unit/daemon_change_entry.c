/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a skill, a file or a session, as it is written and as it is read of a stranger.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/change_entry.h"

#include <errno.h>
#include <stdio.h>
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

static struct change filled_file(void)
{
    struct change c = {.kind = CHANGE_FILE,
                       .id = "fil_" DIGITS,
                       .file = {.tenant = "ten_" DIGITS,
                                .id = "file_" DIGITS,
                                .digest = DIGEST,
                                .bytes = LIMIT_INFILE_BYTES,
                                .created_ns = 1700000000123456789u,
                                .expires_ns = INT64_MAX}};

    /* Each is written as two. */
    memset(c.file.name, '"', sizeof(c.file.name) - 1);
    memset(c.file.content_type, 't', sizeof(c.file.content_type) - 1);
    return c;
}

static void a_file_is_read_as_it_is_written(void **state)
{
    const struct change c = filled_file();
    struct change back = {0};
    enum node_refusal why;
    struct buf text;
    char key[CHANGE_KEY_SIZE];

    (void)state;
    change_entry_key(c.kind, c.id, key);
    assert_string_equal(key, "file.fil_" DIGITS);
    assert_int_equal(change_entry_write(&c, &text), 0);
    assert_int_equal(change_entry_parse(key, buf_cstr(&text), text.len, false, &back, &why), 0);
    assert_memory_equal(&c, &back, sizeof(c));
    buf_finish(&text);
    assert_int_equal(change_entry_parse(key, NULL, 0, true, &back, &why), 0);
    assert_true(back.is_removed);
    assert_int_equal(change_entry_parse("file.file_" DIGITS, NULL, 0, true, &back, &why),
                     -EINVAL);
    assert_int_equal(why, NODE_WRONG_NAME);
}

/* Whether what is left of an entry is a file. */
static int parse_file(const char *name, const char *id, const char *rest)
{
    char text[512];
    struct change c;
    enum node_refusal why;

    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"default\",\"id\":\"%s\",\"name\":\"%s\",%s,"
             "\"created_ns\":1,\"expires_ns\":2}",
             id, name, rest);
    return change_entry_parse("file.fil_" DIGITS, text, strlen(text), false, &c, &why);
}

#define HOLDS(type, digest, bytes)                                                             \
    "\"content_type\":\"" type "\",\"digest\":\"" digest "\",\"bytes\":" bytes

/* What a skill would find elsewhere than among its inputs, or no upload can have been. */
static void what_is_no_file_is_refused(void **state)
{
    static const char *const names[] = {"",   ".",      "..",        "a/b",
                                        "/a", "a\\\\b", "a\\u0001b", "a\\u0000b"};
    static const char good[] = HOLDS("a/b", DIGEST, "1");

    (void)state;
    assert_int_equal(parse_file("...", "file_" DIGITS, good), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (parse_file(names[i], "file_" DIGITS, good) == 0)
            fail_msg("%s is a name", names[i]);
    }
    /* A later version may say more. */
    assert_int_equal(parse_file("x", "file_" DIGITS,
                                "\"later\":{\"of\":[1,null]}," HOLDS("a/b", DIGEST, "1")),
                     0);
    assert_int_equal(parse_file("x", "file_" DIGITS "0", good), -EINVAL);
    assert_int_equal(parse_file("x", "exec_" DIGITS, good), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("", DIGEST, "1")), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("a\\r\\nb", DIGEST, "1")), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("a/b", "../x", "1")), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("a/b", "", "1")), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("a/b", DIGEST, "-1")), -EINVAL);
    assert_int_equal(parse_file("x", "file_" DIGITS, HOLDS("a/b", DIGEST, "104857601")),
                     -EINVAL);
}

static void a_session_is_read_as_it_is_written(void **state)
{
    struct change c = {.kind = CHANGE_SESSION,
                       .id = "ses_" DIGITS,
                       .session = {.tenant = "ten_" DIGITS,
                                   .digest = DIGEST,
                                   .bytes = LIMIT_SESSION_STREAM,
                                   .files = LIMIT_SESSION_FILES,
                                   .content_bytes = LIMIT_SESSION_BYTES,
                                   .created_ns = 1700000000123456789u,
                                   .changed_ns = INT64_MAX,
                                   .used_ns = INT64_MAX}};
    struct change back = {0};
    enum node_refusal why;
    struct buf text;
    char key[CHANGE_KEY_SIZE];

    (void)state;
    memset(c.session.name, 's', sizeof(c.session.name) - 1);
    change_entry_key(c.kind, c.id, key);
    assert_string_equal(key, "session.ses_" DIGITS);
    assert_int_equal(change_entry_write(&c, &text), 0);
    assert_int_equal(change_entry_parse(key, buf_cstr(&text), text.len, false, &back, &why), 0);
    assert_memory_equal(&c, &back, sizeof(c));
    buf_finish(&text);
    assert_int_equal(change_entry_parse(key, NULL, 0, true, &back, &why), 0);
    assert_true(back.is_removed);
}

static int parse_session(const char *name, const char *digest, const char *bytes,
                         const char *files)
{
    char text[640];
    struct change c;
    enum node_refusal why;

    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"default\",\"name\":\"%s\",\"digest\":\"%s\","
             "\"bytes\":%s,\"files\":%s,\"content_bytes\":1,\"created_ns\":1,"
             "\"changed_ns\":2,\"used_ns\":3}",
             name, digest, bytes, files);
    return change_entry_parse("session.ses_" DIGITS, text, strlen(text), false, &c, &why);
}

static void what_is_no_session_is_refused(void **state)
{
    static const char *const names[] = {"", ".x", "-x", "a b", "a/b", "\\u00e4", "a\\u0000b"};
    char longest[CHANGE_SESSION_NAME_SIZE + 1] = {0};

    (void)state;
    assert_int_equal(parse_session("Chat:1.2_3-x", DIGEST, "1", "1"), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (parse_session(names[i], DIGEST, "1", "1") == 0)
            fail_msg("%s is a name", names[i]);
    }
    memset(longest, 'x', CHANGE_SESSION_NAME_SIZE);
    assert_int_equal(parse_session(longest, DIGEST, "1", "1"), -EINVAL);
    assert_int_equal(parse_session("s", "", "1", "1"), -EINVAL);
    assert_int_equal(parse_session("s", "../x", "1", "1"), -EINVAL);
    assert_int_equal(parse_session("s", DIGEST, "-1", "1"), -EINVAL);
    assert_int_equal(parse_session("s", DIGEST, "9999999999", "1"), -EINVAL);
    assert_int_equal(parse_session("s", DIGEST, "1", "10001"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(a_file_is_read_as_it_is_written),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_session_is_read_as_it_is_written),
        cmocka_unit_test(what_is_no_session_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
