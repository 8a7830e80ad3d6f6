/* SPDX-License-Identifier: Apache-2.0 */
/* Times, amounts and colours as a person reads them. */
#include "tests/unit/cmocka_all.h"

#include "api/cli/show.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ages(void **state)
{
    static const struct {
        time_t age_s;
        const char *text;
    } cases[] = {{0, "0s"},      {99, "99s"},       {100, "1m"},
                 {5999, "99m"},  {6000, "1h"},      {172799, "47h"},
                 {172800, "2d"}, {8640000, "100d"}, {-5, "0s"}};
    const time_t created = 1767225600; /* 2026-01-01T00:00:00Z */
    char out[SHOW_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(show_age("2026-01-01T00:00:00.123Z", created + cases[i].age_s, out),
                            cases[i].text);
    assert_string_equal(show_age(NULL, 0, out), "-");
    assert_string_equal(show_age("yesterday", 0, out), "-");
}

static void amounts(void **state)
{
    char out[SHOW_SIZE];

    (void)state;
    assert_string_equal(show_bytes(0, out), "0 B");
    assert_string_equal(show_bytes(1023, out), "1023 B");
    assert_string_equal(show_bytes(1536, out), "1.5 KiB");
    assert_string_equal(show_bytes(20.0 * 1024 * 1024, out), "20 MiB");
    assert_string_equal(show_bytes(5e18, out), "4441 PiB");
    assert_string_equal(show_ms(0, out), "0 ms");
    assert_string_equal(show_ms(999, out), "999 ms");
    assert_string_equal(show_ms(1500, out), "1.5 s");
    assert_string_equal(show_ms(120000, out), "2 m 0 s");
    assert_string_equal(show_ms(7260000, out), "2 h 1 m");
}

static void texts(void **state)
{
    char printed[256] = "";
    FILE *f = fmemopen(printed, sizeof(printed), "w");

    (void)state;
    show_text(f, "a\tb\n\x1b[31mred\x07 \xc3\xa4 \xc2\x9b"
                 "2J \xff\x7f \xf0\x9f\x98\x80");
    (void)fclose(f);
    assert_string_equal(printed, "a\tb\n?[31mred? \xc3\xa4 ?2J ?? \xf0\x9f\x98\x80");
}

static void colours(void **state)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), ends[2];

    (void)state;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    assert_true(terminal >= 0);
    assert_true(show_colours(terminal));
    setenv("NO_COLOR", "", 1);
    assert_true(show_colours(terminal));
    setenv("NO_COLOR", "1", 1);
    assert_false(show_colours(terminal));
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    assert_false(show_colours(terminal));
    setenv("TERM", "xterm", 1);
    assert_int_equal(pipe(ends), 0);
    assert_false(show_colours(ends[1]));
    close(ends[0]);
    close(ends[1]);
    close(terminal);
    assert_string_equal(show_colour_of("failed"), "\033[31m");
    assert_string_equal(show_colour_of("word-counter"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages),
        cmocka_unit_test(amounts),
        cmocka_unit_test(texts),
        cmocka_unit_test(colours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
