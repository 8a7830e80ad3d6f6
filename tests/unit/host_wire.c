/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/host/wire: only the exact preamble with the exact token is accepted.
 */
#include "api/host/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static const uint8_t token[WIRE_TOKEN_SIZE] = "0123456789abcdef0123456789ABCDE";

static void test_round_trip(void **state)
{
    uint8_t preamble[WIRE_PREAMBLE_SIZE];

    (void)state;
    for (int op = WIRE_OP_CONNECT; op <= WIRE_OP_POWEROFF; op++) {
        const struct wire_request said = {(enum wire_op)op, 0x1122334455667788u, 65534};
        struct wire_request got;

        wire_encode(preamble, &said, token);
        assert_int_equal(wire_decode(preamble, token, &got), 0);
        assert_int_equal(got.op, op);
        assert_true(got.realtime_ns == said.realtime_ns);
        assert_int_equal(got.uid, 65534);
    }
}

static void test_any_wrong_bit_is_refused(void **state)
{
    uint8_t preamble[WIRE_PREAMBLE_SIZE];
    struct wire_request said = {WIRE_OP_CONNECT, 0, 0}, got = {.realtime_ns = 7};

    (void)state;
    for (size_t i = 0; i < sizeof(preamble); i++) {
        int want = i >= 20 ? -EACCES : -EPROTO;

        if (i >= 8 && i < 20)
            continue; /* the time and the user may be anything */
        wire_encode(preamble, &said, token);
        preamble[i] ^= 0x80;
        assert_int_equal(wire_decode(preamble, token, &got), want);
        assert_true(got.realtime_ns == 7);
    }
    said.op = (enum wire_op)4;
    wire_encode(preamble, &said, token);
    assert_int_equal(wire_decode(preamble, token, &got), -EPROTO);
    said.op = (enum wire_op)0;
    wire_encode(preamble, &said, token);
    assert_int_equal(wire_decode(preamble, token, &got), -EPROTO);
}

static void test_token_file(void **state)
{
    char path[] = "/tmp/skillvm-wire.XXXXXX";
    uint8_t got[WIRE_TOKEN_SIZE];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(wire_token_read(path, got), -EINVAL);
    assert_int_equal(write(fd, token, sizeof(token)), sizeof(token));
    assert_int_equal(wire_token_read(path, got), 0);
    assert_memory_equal(got, token, sizeof(token));
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(wire_token_read(path, got), -EINVAL);
    close(fd);
    unlink(path);
    assert_int_equal(wire_token_read(path, got), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_any_wrong_bit_is_refused),
        cmocka_unit_test(test_token_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
