/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The serial port: lines reach the console whole, nothing else answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "vmm/serial.h"

static void put(struct serial *s, const char *text)
{
    for (; *text; text++)
        serial_write(s, 0, text, 1);
}

static void writes_lines(void **unused)
{
    struct serial s;
    char found[16] = "";
    int fds[2];

    (void)unused;
    assert_int_equal(pipe(fds), 0);
    serial_init(&s, fds[1]);
    put(&s, "boot");
    assert_int_equal(fd_set_nonblock(fds[0], true), 0);
    assert_int_equal(read(fds[0], found, sizeof(found)), -1);
    put(&s, "ing\nx");
    assert_int_equal(read(fds[0], found, sizeof(found)), 8);
    assert_memory_equal(found, "booting\n", 8);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

static void a_line_without_end_is_cut(void **unused)
{
    struct serial s;

    (void)unused;
    serial_init(&s, -1);
    for (unsigned i = 0; i < 10 * SERIAL_LINE_MAX; i++)
        put(&s, "y");
    assert_true(s.line_len < SERIAL_LINE_MAX);
}

static void interrupts_when_asked_to(void **unused)
{
    struct serial s;
    uint8_t v = 2;

    (void)unused;
    serial_init(&s, -1);
    put(&s, "a");
    assert_false(serial_take_interrupt(&s));
    serial_write(&s, 1, &v, 1);
    assert_true(serial_take_interrupt(&s));
    assert_false(serial_take_interrupt(&s));
    serial_read(&s, 2, &v, 1);
    assert_int_equal(v, 2);
    serial_read(&s, 2, &v, 1);
    assert_int_equal(v, 1);
    put(&s, "b");
    assert_true(serial_take_interrupt(&s));
}

static void any_access_is_harmless(void **unused)
{
    struct serial s;
    uint8_t data[8];

    (void)unused;
    serial_init(&s, -1);
    for (uint64_t offset = 0; offset < 64; offset++) {
        for (uint32_t len = 0; len <= sizeof(data); len++) {
            memset(data, 0xff, sizeof(data));
            serial_write(&s, offset, data, len);
            serial_read(&s, offset, data, len);
        }
    }
    serial_read(&s, UINT64_MAX, data, 8);
    assert_memory_equal(data, "\0\0\0\0\0\0\0\0", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_lines),
        cmocka_unit_test(a_line_without_end_is_cut),
        cmocka_unit_test(interrupts_when_asked_to),
        cmocka_unit_test(any_access_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
