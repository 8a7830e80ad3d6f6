/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator wants of a node, as it is written and as it is read from a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/node_wish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void what_is_written_is_read(void **state)
{
    struct node_drain drain = {.is_draining = true, .running = 1000000, .waiting = 7}, back;

    (void)state;
    for (int i = 0; i < NODE_WISHES; i++) {
        _cleanup_buf_ struct buf text = {0};
        enum node_wish wish;

        assert_int_equal(node_wish_write((enum node_wish)i, &text), 0);
        assert_int_equal(node_wish_parse(buf_cstr(&text), text.len, &wish), 0);
        assert_int_equal(wish, i);
    }
    snprintf(drain.refused, sizeof(drain.refused), "no \"room\" \xc3\xa9");
    {
        _cleanup_buf_ struct buf text = {0};

        assert_int_equal(node_drain_write(&drain, &text), 0);
        assert_int_equal(node_drain_parse(buf_cstr(&text), text.len, &back), 0);
    }
    assert_true(back.is_draining && back.running == 1000000 && back.waiting == 7);
    assert_string_equal(back.refused, drain.refused);
}

static void what_a_later_version_adds_is_left_alone(void **state)
{
    static const char text[] = "{\"schema\":1,\"later\":[{}],\"wish\":\"drain\"}";
    static const char answer[] = "{\"schema\":1,\"draining\":true,\"running\":3,\"waiting\":0,"
                                 "\"refused\":\"\",\"later\":{\"of\":[1,null]}}";
    struct node_drain drain;
    enum node_wish wish = NODE_WISH_UNDO;

    (void)state;
    assert_int_equal(node_wish_parse(text, strlen(text), &wish), 0);
    assert_int_equal(wish, NODE_WISH_DRAIN);
    assert_int_equal(node_drain_parse(answer, strlen(answer), &drain), 0);
    assert_int_equal(drain.running, 3);
}

static void nonsense_is_refused(void **state)
{
    static const char *const wishes[] = {
        "",
        "[]",
        "{}",
        "{\"schema\":1}",
        "{\"schema\":2,\"wish\":\"drain\"}",
        "{\"schema\":1,\"wish\":\"burn\"}",
        "{\"schema\":1,\"wish\":3}",
    };
    static const char *const answers[] = {
        "{\"schema\":1}",
        "{\"schema\":1,\"draining\":1,\"running\":0,\"waiting\":0,\"refused\":\"\"}",
        "{\"schema\":1,\"draining\":true,\"running\":-1,\"waiting\":0,\"refused\":\"\"}",
        "{\"schema\":1,\"draining\":true,\"running\":1000001,\"waiting\":0,\"refused\":\"\"}",
        "{\"schema\":1,\"draining\":true,\"running\":0,\"waiting\":0}",
        "{\"schema\":1,\"draining\":true,\"running\":0,\"waiting\":0,\"refused\":\"\\u001b\"}",
    };
    struct node_drain drain = {.running = 5};
    enum node_wish wish = NODE_WISH_UNDO;

    (void)state;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
        assert_int_equal(node_wish_parse(wishes[i], strlen(wishes[i]), &wish), -EINVAL);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        assert_int_equal(node_drain_parse(answers[i], strlen(answers[i]), &drain), -EINVAL);
    assert_int_equal(wish, NODE_WISH_UNDO);
    assert_int_equal(drain.running, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_a_later_version_adds_is_left_alone),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
