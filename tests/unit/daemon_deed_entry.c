/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the audit, as it is written for other nodes and as it is read of a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/deed_entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS  "0123456789abcdef0123456789abcdef"
#define ENTRY   "a-1_B." DIGITS
#define WHO     "\"tenant\":\"default\",\"actor\":\"tcp\","
#define WHAT    "\"action\":\"x\",\"target\":\"\",\"detail\":\"\"}"
#define HEAD    "{\"schema\":1,\"id\":1,"
#define BEGUN   HEAD "\"at_ns\":1,"
#define MINIMAL BEGUN WHO WHAT

static struct deed largest(char c)
{
    struct deed deed = {.entry = ENTRY,
                        .id = INT64_MAX,
                        .at_ns = INT64_MAX,
                        .tenant = "ten_" DIGITS,
                        .actor = "key_" DIGITS,
                        .action = "tenant.create"};

    memset(deed.target, c, sizeof(deed.target) - 1);
    memset(deed.detail, c, sizeof(deed.detail) - 1);
    return deed;
}

static void expect_back(const struct deed *deed)
{
    struct deed back;
    enum node_refusal why;
    struct buf text;

    assert_int_equal(deed_entry_write(deed, &text), 0);
    assert_int_equal(deed_entry_parse(deed->entry, buf_cstr(&text), text.len, &back, &why), 0);
    assert_memory_equal(deed, &back, sizeof(back));
    buf_finish(&text);
}

static void what_was_written_is_read(void **state)
{
    struct deed small = {.entry = ENTRY, .id = 1, .at_ns = 1, .action = "x"};
    struct deed lines = {.entry = ENTRY,
                         .id = 1,
                         .at_ns = 1,
                         .action = "tenant.update",
                         .detail = "{\n\t\"limits\": {}}"};
    const struct deed quotes = largest('"');

    (void)state;
    expect_back(&small);
    /* What a caller sent has whatever he likes. */
    expect_back(&lines);
    expect_back(&quotes);
}

static void what_is_no_text_is_mended_and_what_is_too_long_fits_no_entry(void **state)
{
    struct deed cut = {
        .entry = ENTRY, .id = 1, .at_ns = 1, .action = "x", .detail = "a\xe2\x82"};
    const struct deed controls = largest(1);
    struct deed back;
    enum node_refusal why;
    struct buf text;

    (void)state;
    assert_int_equal(deed_entry_write(&cut, &text), 0);
    assert_int_equal(deed_entry_parse(ENTRY, buf_cstr(&text), text.len, &back, &why), 0);
    assert_memory_equal(back.detail, "a\xef\xbf\xbd", 4);
    buf_finish(&text);
    assert_int_equal(deed_entry_write(&controls, &text), -E2BIG);
}

static void what_a_later_version_adds_is_left_alone(void **state)
{
    static const char text[] = BEGUN "\"later\":{\"of\":[1,null]}," WHO WHAT;
    struct deed back;
    enum node_refusal why;

    (void)state;
    assert_int_equal(deed_entry_parse(ENTRY, text, strlen(text), &back, &why), 0);
    assert_string_equal(back.action, "x");
}

static void expect_refused(const char *key, const char *text, enum node_refusal wanted)
{
    struct deed unused;
    enum node_refusal why;

    if (deed_entry_parse(key, text, strlen(text), &unused, &why) == 0)
        fail_msg("taken: %s %s", key, text);
    assert_int_equal(why, wanted);
}

static void what_is_none_is_refused(void **state)
{
    static const char *const keys[] = {"",
                                       "a",
                                       DIGITS,
                                       "." DIGITS,
                                       "a." DIGITS "0",
                                       "a.b." DIGITS,
                                       "a b." DIGITS,
                                       "a.0123456789ABCDEF0123456789abcdef"};
    static const char *const texts[] = {
        "",
        "[]",
        "{\"schema\":1}",
        HEAD "\"at_ns\":0," WHO WHAT,
        HEAD "\"at_ns\":-1," WHO WHAT,
        HEAD "\"at_ns\":9223372036854775808," WHO WHAT,
        HEAD "\"at_ns\":1.0," WHO WHAT,
        "{\"schema\":1,\"id\":0,\"at_ns\":1," WHO WHAT,
        BEGUN "\"tenant\":\"x\",\"actor\":\"tcp\"," WHAT,
        BEGUN "\"tenant\":null,\"actor\":\"tcp\"," WHAT,
        BEGUN "\"tenant\":\"\",\"actor\":\"\\n\"," WHAT,
        BEGUN WHO "\"action\":\"\",\"target\":\"\",\"detail\":\"\"}",
        BEGUN WHO "\"action\":\"\\u001b\",\"target\":\"\",\"detail\":\"\"}",
        BEGUN WHO "\"action\":\"x\",\"target\":\"\\u0000\",\"detail\":\"\"}",
        BEGUN WHO "\"action\":\"x\",\"target\":\"\xff\",\"detail\":\"\"}",
        BEGUN WHO "\"action\":\"x\",\"target\":\"\"}",
        MINIMAL "x",
    };
    struct deed deed;
    enum node_refusal why;
    char large[DEED_ENTRY_BYTES_MAX + 2], node[FLEET_NODE_SIZE + 1 + sizeof("." DIGITS)];

    (void)state;
    assert_int_equal(deed_entry_parse(ENTRY, MINIMAL, strlen(MINIMAL), &deed, &why), 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        expect_refused(keys[i], MINIMAL, NODE_WRONG_NAME);
    memset(node, 'n', FLEET_NODE_SIZE);
    (void)strcpy(node + FLEET_NODE_SIZE, "." DIGITS);
    expect_refused(node, MINIMAL, NODE_WRONG_NAME);
    expect_refused(node + 1, "", NODE_MALFORMED);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_refused(ENTRY, texts[i], NODE_MALFORMED);
    expect_refused(ENTRY, "{\"schema\":2}", NODE_NEWER);
    memset(large, ' ', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    expect_refused(ENTRY, large, NODE_TOO_LARGE);
    /* Longer than a row may have. */
    (void)snprintf(large, sizeof(large),
                   BEGUN WHO "\"action\":\"x\",\"target\":\"%0*d\",\"detail\":\"\"}",
                   (int)DEED_TARGET_SIZE, 0);
    expect_refused(ENTRY, large, NODE_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(what_a_later_version_adds_is_left_alone),
        cmocka_unit_test(what_is_no_text_is_mended_and_what_is_too_long_fits_no_entry),
        cmocka_unit_test(what_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
