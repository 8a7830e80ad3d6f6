/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, sizes and CPUs as people write them. */
#include "api/skill/duration.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void durations(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        {"30s", 30000},
        {"1m30s", 90000},
        {"1.5h", 5400000},
        {"250ms", 250},
        {"0", 0},
        {"0s", 0},
        {"1us", 1},
        {"1\xc2\xb5s", 1},
        {"1ns", 1},
        {"999999ns", 1},
        {"1000001ns", 2},
        {"120", 120000},
        {"2.5", 2500},
        {"+3s", 3000},
        {".5s", 500},
        {"5.s", 5000},
        {"1h1m1s1ms", 3661001},
        {"1000h", 3600000000ull},
        {"0.1s", 100},
        {"3m0.5s", 180500},
    };
    static const char *const bad[] = {
        "",       "s",     "-1s", "1",     "1 s",
        "1s ",    "1d",    "1x",  "1001h", "99999999999999999999s",
        "1s2",    "1e3s",  ".",   ".s",    "+",
        "1.2.3s", "0x10s",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t ms = 77;
        assert_int_equal(duration_parse(good[i].text, &ms), 0);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t ms = 77;
        if (i == 3) /* a bare number is seconds */
            continue;
        assert_int_equal(duration_parse(bad[i], &ms), -EINVAL);
        assert_int_equal(ms, 77);
    }
}

static void sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"256Mi", 256u << 20},
        {"256MiB", 256u << 20},
        {"256m", 256u << 20},
        {"256M", 256u << 20},
        {"256MB", 256000000u},
        {"1g", 1u << 30},
        {"1.5Gi", 1610612736},
        {"268435456", 1u << 28},
        {"512 MiB", 512u << 20},
        {"64KB", 64000},
        {"64k", 65536},
        {"7b", 7},
        {"0", 0},
        {"1Ti", 1ull << 40},
    };
    static const char *const bad[] = {
        "", "Mi", "-1", "1X", "1MiBs", "1,5G", "1e9", "2000Ti", "99999999999999999999"};
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t bytes = 77;
        assert_int_equal(size_parse(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t bytes = 77;
        assert_int_equal(size_parse(bad[i], &bytes), -EINVAL);
        assert_int_equal(bytes, 77);
    }
}

static void cpus(void **state)
{
    uint32_t millis = 77;
    (void)state;

    assert_int_equal(cpu_parse("1", &millis), 0);
    assert_int_equal(millis, 1000);
    assert_int_equal(cpu_parse("0.5", &millis), 0);
    assert_int_equal(millis, 500);
    assert_int_equal(cpu_parse("250m", &millis), 0);
    assert_int_equal(millis, 250);
    assert_int_equal(cpu_parse("0", &millis), -EINVAL);
    assert_int_equal(cpu_parse("0.0001", &millis), -EINVAL);
    assert_int_equal(cpu_parse("1025", &millis), -EINVAL);
    assert_int_equal(cpu_parse("one", &millis), -EINVAL);
    assert_int_equal(millis, 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(sizes),
        cmocka_unit_test(cpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
