/* SPDX-License-Identifier: Apache-2.0 */
/* What comes with an execution that another node gives, of this version and of others. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/forward_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGITS  "0123456789abcdef0123456789abcdef"
#define ID      "exec_" DIGITS
#define REST    "\"tenant\":\"default\",\"id\":\"" ID "\",\"digest\":\"\",\"seen\":5,\"sent_ns\":7"
#define REQUEST "{\"skill\":\"demo\"}"

static void what_is_written_is_read(void **state)
{
    _cleanup_buf_ struct buf out = buf_init(4096);
    struct forward_head head = {.tenant = "default",
                                .id = ID,
                                .seen = INT64_MAX,
                                .sent_ns = 1,
                                .from = "a-1",
                                .node = "a-1",
                                .instance = DIGITS};
    struct forward_head back;
    ssize_t at;

    (void)state;
    assert_int_equal(forward_head_write(&head, &out), 0);
    assert_int_equal(buf_append(&out, REQUEST, strlen(REQUEST)), 0);
    at = forward_head_parse(buf_cstr(&out), out.len, &back);
    assert_true(at > 0);
    assert_memory_equal(&back, &head, sizeof(back));
    assert_string_equal(buf_cstr(&out) + at, REQUEST);
}

/* One of before does not say who it is, and a later one may say more. */
static void other_versions_are_understood(void **state)
{
    static const char before[] = "{\"schema\":1," REST "}\n" REQUEST;
    static const char later[] =
        "{\"schema\":1,\"later\":{\"of\":[1,null]}," REST ",\"from\":\"b\"}\n" REQUEST;
    static const char newer[] = "{\"schema\":2," REST "}\n" REQUEST;
    struct forward_head head;
    ssize_t at;

    (void)state;
    at = forward_head_parse(before, strlen(before), &head);
    assert_true(at > 0);
    assert_string_equal(before + at, REQUEST);
    assert_string_equal(head.from, "");
    at = forward_head_parse(later, strlen(later), &head);
    assert_true(at > 0);
    assert_string_equal(later + at, REQUEST);
    assert_string_equal(head.from, "b");
    assert_int_equal(head.seen, 5);
    assert_int_equal(forward_head_parse(newer, strlen(newer), &head), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(other_versions_are_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
