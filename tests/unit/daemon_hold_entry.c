/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a session, as it is written and as it is read of a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/hold_entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789abcdef0123456789abcdef"
#define EXEC   "exec_" DIGITS

static void what_was_written_is_read(void **state)
{
    struct hold holds[] = {
        {.node = "a-1", .instance = DIGITS, .execution = EXEC, .seen = INT64_MAX},
        {.node = "b", .instance = DIGITS, .is_over = true},
    };

    (void)state;
    memset(holds[1].node, 'n', sizeof(holds[1].node) - 1);
    for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]); i++) {
        struct hold back;
        struct buf text;

        assert_int_equal(hold_entry_write(&holds[i], &text), 0);
        assert_int_equal(hold_entry_parse(buf_cstr(&text), text.len, &back), 0);
        assert_memory_equal(&back, &holds[i], sizeof(back));
        buf_finish(&text);
    }
}

static int parse(const char *schema, const char *node, const char *instance,
                 const char *execution, const char *rest)
{
    char text[512];
    struct hold hold;

    snprintf(text, sizeof(text),
             "{\"schema\":%s,\"node\":\"%s\",\"instance\":\"%s\",\"execution\":\"%s\",%s}",
             schema, node, instance, execution, rest);
    return hold_entry_parse(text, strlen(text), &hold);
}

static void what_is_none_is_refused(void **state)
{
    static const char good[] = "\"seen\":0,\"over\":false";
    char large[HOLD_ENTRY_BYTES_MAX + 2];
    struct hold hold;

    (void)state;
    assert_int_equal(parse("1", "a", DIGITS, EXEC, good), 0);
    assert_int_equal(parse("1", "a", DIGITS, "", good), 0);
    assert_int_equal(parse("1", "a", DIGITS, "", "\"x\":[],\"seen\":0,\"over\":false"), 0);
    assert_int_equal(parse("2", "a", DIGITS, EXEC, good), -EINVAL);
    assert_int_equal(parse("1", "", DIGITS, EXEC, good), -EINVAL);
    assert_int_equal(parse("1", "a b", DIGITS, EXEC, good), -EINVAL);
    assert_int_equal(parse("1", "a", "", EXEC, good), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS "0", EXEC, good), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS, "file_" DIGITS, good), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS, EXEC "0", good), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS, EXEC, "\"seen\":-1,\"over\":false"), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS, EXEC, "\"seen\":0,\"over\":0"), -EINVAL);
    assert_int_equal(parse("1", "a", DIGITS, EXEC, "\"seen\":0"), -EINVAL);
    assert_int_equal(hold_entry_parse("", 0, &hold), -EINVAL);
    assert_int_equal(hold_entry_parse("[]", 2, &hold), -EINVAL);
    memset(large, ' ', sizeof(large));
    assert_int_equal(hold_entry_parse(large, sizeof(large), &hold), -EINVAL);
    assert_true(hold_entry_is_key("ses_" DIGITS));
    assert_false(hold_entry_is_key(EXEC));
    assert_false(hold_entry_is_key("ses_" DIGITS "0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(what_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
