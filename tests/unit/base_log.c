/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log: one line per call whatever the value holds, levels, and the rate limit.
 */
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#define SECOND_NS 1000000000u

struct capture {
    int saved;
    int pipe[2];
};

static void capture_start(struct capture *c)
{
    assert_int_equal(pipe(c->pipe), 0);
    c->saved = dup(STDERR_FILENO);
    assert_true(c->saved >= 0);
    assert_int_equal(dup2(c->pipe[1], STDERR_FILENO), STDERR_FILENO);
    fd_close(&c->pipe[1]);
}

/* What was logged since capture_start, NUL-terminated. */
static void capture_stop(struct capture *c, char *text, size_t cap)
{
    ssize_t n;

    assert_int_equal(dup2(c->saved, STDERR_FILENO), STDERR_FILENO);
    fd_close(&c->saved);
    n = fd_read_full(c->pipe[0], text, cap - 1);
    fd_close(&c->pipe[0]);
    assert_true(n >= 0);
    text[n] = 0;
}

static void test_line_shape(void **state)
{
    struct capture c;
    char text[256];

    (void)state;
    capture_start(&c);
    log_warn("daemon", "id=%s n=%d", "a", 3);
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text, "warn daemon id=a n=3\n");
}

/* The journal reads a priority from the beginning of a line. */
static void test_journal_gets_priorities(void **state)
{
    static const char expected[] = "<3>error daemon a=1\n<4>warn daemon a=2\n"
                                   "<6>info daemon a=3\n<7>debug daemon a=4\n";
    struct capture c;
    struct stat st;
    char text[256], stream[64];
    int detected;

    (void)state;
    capture_start(&c);
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    detected = log_detect_journal();
    log_set_level(LOG_LEVEL_DEBUG);
    log_error("daemon", "a=1");
    log_warn("daemon", "a=2");
    log_info("daemon", "a=3");
    log_debug("daemon", "a=4");
    log_set_level(LOG_LEVEL_INFO);
    capture_stop(&c, text, sizeof(text));
    assert_int_equal(detected, 1);
    assert_string_equal(text, expected);
    /* Standard error is another stream again. */
    assert_int_equal(log_detect_journal(), 0);
    setenv("JOURNAL_STREAM", "junk", 1);
    assert_int_equal(log_detect_journal(), 0);
    unsetenv("JOURNAL_STREAM");
    assert_int_equal(log_detect_journal(), 0);
}

static void test_control_bytes_cannot_forge_a_line(void **state)
{
    struct capture c;
    char text[256];

    (void)state;
    capture_start(&c);
    log_info("guest", "name=%s", "a\nerror daemon forged\r\x1b[31m\x7f");
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text, "info guest name=a\\x0aerror daemon forged\\x0d\\x1b[31m\\x7f\n");
}

/* Controls of a terminal that are two bytes of UTF-8: U+009B begins what ESC [ does. */
static void test_c1_controls_are_escaped(void **state)
{
    struct capture c;
    char text[256];

    (void)state;
    capture_start(&c);
    log_info("guest", "name=%s",
             "a\xc2\x80"
             "b\xc2\x9b"
             "31m\xc2\xa0\xc2");
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text, "info guest name=a\\xc2\\x80b\\xc2\\x9b31m\xc2\xa0\xc2\n");
}

/* A value in quotes stays in them, whatever it has. */
static void test_quotes_cannot_forge_a_field(void **state)
{
    static const char all[] =
        "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
        "\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\" b=1";
    struct capture c;
    char text[1024];

    (void)state;
    capture_start(&c);
    log_info("tools", "script=\"%s\" result=\"%s\"", "a\" result=\"described", "b\\");
    log_info("tools", "script=\"%s\"", "\x01 b=1");
    log_info("tools", "script=\"%s\"", all);
    log_info("tools", "%s is \"%s\"", "what is said: \"x\"", "a \"y\"");
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text,
                        "info tools script=\"a\\\" result=\\\"described\" result=\"b\\\\\"\n"
                        "info tools script=\"\\x01 b=1\"\n"
                        "info tools script=\"%s\"\n"
                        "info tools what is said: \"x\" is \"a \\\"y\\\"\"\n");
}

static void test_utf8_passes(void **state)
{
    struct capture c;
    char text[256];

    (void)state;
    capture_start(&c);
    log_info("guest", "name=%s", "caf\xc3\xa9");
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text, "info guest name=caf\xc3\xa9\n");
}

static void test_long_line_is_clipped_and_ended(void **state)
{
    struct capture c;
    char value[4096];
    char text[8192];

    (void)state;
    memset(value, '\n', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    capture_start(&c);
    log_info("guest", "v=%s", value);
    capture_stop(&c, text, sizeof(text));
    assert_true(strlen(text) <= 2048);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_levels(void **state)
{
    struct capture c;
    char text[256];

    (void)state;
    capture_start(&c);
    log_debug("x", "hidden=1");
    log_set_level(LOG_LEVEL_ERROR);
    log_warn("x", "hidden=2");
    log_error("x", "shown=3");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("x", "shown=4");
    log_set_level(LOG_LEVEL_INFO);
    capture_stop(&c, text, sizeof(text));
    assert_string_equal(text, "error x shown=3\ndebug x shown=4\n");
}

static void test_limit_burst_then_refill(void **state)
{
    struct log_limit limit = {.per_second = 1, .burst = 3};
    uint64_t now = 5 * (uint64_t)SECOND_NS;
    uint64_t suppressed = 99;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(log_limit_allow(&limit, now, &suppressed));
    assert_int_equal(suppressed, 0);
    for (int i = 0; i < 7; i++)
        assert_false(log_limit_allow(&limit, now + SECOND_NS / 2, NULL));
    assert_true(log_limit_allow(&limit, now + SECOND_NS, &suppressed));
    assert_int_equal(suppressed, 7);
    assert_false(log_limit_allow(&limit, now + SECOND_NS, NULL));
}

static void test_limit_never_passes_burst(void **state)
{
    struct log_limit limit = {.per_second = 4000000000u, .burst = 2};
    uint64_t now = SECOND_NS;
    int allowed = 0;

    (void)state;
    assert_true(log_limit_allow(&limit, now, NULL));
    now += 3600u * (uint64_t)SECOND_NS;
    while (log_limit_allow(&limit, now, NULL))
        allowed++;
    assert_int_equal(allowed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_shape),
        cmocka_unit_test(test_journal_gets_priorities),
        cmocka_unit_test(test_control_bytes_cannot_forge_a_line),
        cmocka_unit_test(test_c1_controls_are_escaped),
        cmocka_unit_test(test_quotes_cannot_forge_a_field),
        cmocka_unit_test(test_utf8_passes),
        cmocka_unit_test(test_long_line_is_clipped_and_ended),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_limit_burst_then_refill),
        cmocka_unit_test(test_limit_never_passes_burst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
