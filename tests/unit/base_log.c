/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log: one line per call whatever the value holds, levels, and the rate limit.
 */
#include "base/log.h"

#include <string.h>
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
        cmocka_unit_test(test_control_bytes_cannot_forge_a_line),
        cmocka_unit_test(test_utf8_passes),
        cmocka_unit_test(test_long_line_is_clipped_and_ended),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_limit_burst_then_refill),
        cmocka_unit_test(test_limit_never_passes_burst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
