/* SPDX-License-Identifier: Apache-2.0 */
/* A line as long as a file, full of URLs, is read in the time that its length takes. */
#include "api/skill/needs_internal.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/cmocka_all.h"

static size_t hosts_in(const char *text)
{
    struct needs_reader *r = calloc(1, sizeof(*r));
    size_t n;

    assert_non_null(r);
    assert_int_equal(needs_read_hosts(r, "a.py", 1, (struct text_span){text, strlen(text)}), 0);
    n = r->needs.len;
    needs_finish(&r->needs);
    free(r);
    return n;
}

/* As an archive packs it into a few KiB. */
static void test_a_line_of_blanks_and_urls(void **state)
{
    _cleanup_buf_ struct buf line = buf_init(NEEDS_FILE_BYTES_MAX + 1);
    clock_t began;

    (void)state;
    buf_printf(&line, "%*s", (int)NEEDS_FILE_BYTES_MAX / 2, "");
    while (line.len < NEEDS_FILE_BYTES_MAX - 32)
        buf_printf(&line, "ws://");
    buf_printf(&line, "api.example.com/");
    assert_non_null(buf_cstr(&line));
    began = clock();
    assert_int_equal(hosts_in(buf_cstr(&line)), 1);
    /* Of the processor's, however busy it is: by the square of the length it is ten seconds. */
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC);
}

static void test_what_a_url_is_given_to(void **state)
{
    (void)state;
    assert_int_equal(hosts_in("    xmlns   =   \"https://a.example.com/\""), 0);
    assert_int_equal(hosts_in("    MY_NS = 'https://a.example.com/'"), 0);
    assert_int_equal(hosts_in("    MY_URL = 'https://a.example.com/'"), 1);
    assert_int_equal(hosts_in("https://a.example.com/"), 1);
    assert_int_equal(hosts_in("   https://a.example.com/"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_of_blanks_and_urls),
        cmocka_unit_test(test_what_a_url_is_given_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
