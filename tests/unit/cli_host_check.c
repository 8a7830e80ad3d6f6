/* SPDX-License-Identifier: Apache-2.0 */
/* What doctor says of the kernel. */
#include "api/cli/host_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void too_old(void **state)
{
    char text[512];
    (void)state;

    host_check_kernel_advice(5, 9, text, sizeof(text));
    assert_non_null(strstr(text, "5.10 is the oldest"));
    assert_non_null(strstr(text, "; from 5.14 on "));
    assert_non_null(strstr(text, "; from 6.4 on "));
    host_check_kernel_advice(4, 19, text, sizeof(text));
    assert_non_null(strstr(text, "5.10 is the oldest"));
    host_check_kernel_advice(5, 10, text, sizeof(text));
    assert_null(strstr(text, "oldest"));
}

static void gains_end_where_they_are_there(void **state)
{
    char text[512];
    (void)state;

    host_check_kernel_advice(6, 1, text, sizeof(text));
    assert_ptr_equal(strstr(text, "from 6.4 on "), text);
    host_check_kernel_advice(6, 3, text, sizeof(text));
    assert_non_null(strstr(text, "6.4"));
    host_check_kernel_advice(6, 4, text, sizeof(text));
    assert_null(strstr(text, "6.4"));
    host_check_kernel_advice(7, 0, text, sizeof(text));
    assert_string_equal(text, "");
}

static void short_buffer(void **state)
{
    char text[24];
    (void)state;

    memset(text, 'x', sizeof(text));
    host_check_kernel_advice(4, 0, text, 16);
    assert_int_equal(strlen(text), 15);
    assert_int_equal(text[16], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_old),
        cmocka_unit_test(gains_end_where_they_are_there),
        cmocka_unit_test(short_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
