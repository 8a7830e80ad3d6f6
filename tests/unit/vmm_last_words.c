/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel without a console wrote last: its last lines, however much came before them, in
 * one piece that fits into the log of a machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "vmm/last_words.h"

static struct last_words words;
static char told[4 * LAST_WORDS_BYTES];

static void say(const char *text)
{
    for (; *text; text++)
        last_words_keep(&words, *text);
}

/* Into told. */
static void tell(void)
{
    int fds[2];
    ssize_t n;

    assert_int_equal(pipe(fds), 0);
    last_words_tell(&words, fds[1]);
    fd_close(&fds[1]);
    n = fd_read_full(fds[0], told, sizeof(told) - 1);
    assert_true(n >= 0);
    told[n] = '\0';
    fd_close(&fds[0]);
}

static int silence(void **unused)
{
    (void)unused;
    words = (struct last_words){0};
    return 0;
}

static void silence_is_not_told(void **unused)
{
    (void)unused;
    tell();
    assert_string_equal(told, "");
}

static void lines_are_ended(void **unused)
{
    (void)unused;
    say("one\r\ntwo");
    tell();
    assert_string_equal(told, "one\ntwo\n");
    say("\r\n");
    tell();
    assert_string_equal(told, "one\ntwo\n");
}

static void the_last_lines_are_told(void **unused)
{
    char line[32], expected[LAST_WORDS_LINES * sizeof(line)] = "";

    (void)unused;
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(line, sizeof(line), "line %u\n", i);
        say(line);
        if (i >= 1000 - LAST_WORDS_LINES)
            (void)strcat(expected, line);
    }
    tell();
    assert_string_equal(told, expected);
}

static void a_line_without_end_is_cut(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 10 * LAST_WORDS_BYTES; i++)
        last_words_keep(&words, 'x');
    say("y");
    tell();
    assert_int_equal(strlen(told), LAST_WORDS_BYTES + 1);
    assert_string_equal(told + LAST_WORDS_BYTES - 1, "y\n");
}

static void nobody_who_hears_is_waited_for(void **unused)
{
    int fds[2];

    (void)unused;
    say("x");
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fd_set_nonblock(fds[1], true), 0);
    while (write(fds[1], told, sizeof(told)) > 0)
        continue;
    last_words_tell(&words, fds[1]);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(silence_is_not_told, silence),
        cmocka_unit_test_setup(lines_are_ended, silence),
        cmocka_unit_test_setup(the_last_lines_are_told, silence),
        cmocka_unit_test_setup(a_line_without_end_is_cut, silence),
        cmocka_unit_test_setup(nobody_who_hears_is_waited_for, silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
