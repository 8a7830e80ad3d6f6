/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/frame: frames survive any cutting of the stream, bad headers are refused, the
 * writer gathers frames and never blocks when it must not.
 */
#include "guest-init/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

static void test_header_round_trip(void **state)
{
    uint8_t header[PROTO_HEADER_SIZE];
    uint8_t type;
    uint32_t len;

    (void)state;
    frame_header_encode(header, PROTO_RUN, PROTO_PAYLOAD_MAX);
    assert_int_equal(frame_header_decode(header, &type, &len), 0);
    assert_int_equal(type, PROTO_RUN);
    assert_int_equal(len, PROTO_PAYLOAD_MAX);
    assert_memory_equal(header, "\x00\x00\x10\x00\x02\x00\x00\x00", sizeof(header));
}

static void test_header_refused(void **state)
{
    static const uint8_t bad[][PROTO_HEADER_SIZE] = {
        {0x01, 0x00, 0x10, 0x00, 0x02, 0, 0, 0}, /* one over the limit */
        {0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0},
        {0, 0, 0, 0, 0x02, 1, 0, 0},
        {0, 0, 0, 0, 0x02, 0, 1, 0},
        {0, 0, 0, 0, 0x02, 0, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t type;
        uint32_t len;

        assert_int_equal(frame_header_decode(bad[i], &type, &len), -EPROTO);
    }
}

/* Three frames fed in pieces of every size come out the same. */
static void test_reader_any_cut(void **state)
{
    static const uint32_t lengths[] = {10, 0, 300};
    uint8_t stream[3 * PROTO_HEADER_SIZE + 10 + 0 + 300];
    uint8_t payload[300];
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < 3; i++) {
        frame_header_encode(stream + at, PROTO_SKILL, lengths[i]);
        memcpy(stream + at + PROTO_HEADER_SIZE, payload, lengths[i]);
        at += PROTO_HEADER_SIZE + lengths[i];
    }
    assert_int_equal(at, sizeof(stream));

    for (size_t step = 1; step <= sizeof(stream); step++) {
        struct frame_reader r;
        size_t got = 0;

        frame_reader_init(&r);
        for (size_t pos = 0; pos < sizeof(stream); pos += step) {
            size_t n = step < sizeof(stream) - pos ? step : sizeof(stream) - pos;
            struct frame frame;

            assert_int_equal(frame_reader_feed(&r, stream + pos, n), 0);
            while (frame_reader_next(&r, &frame) == 1) {
                assert_true(got < 3);
                assert_int_equal(frame.len, lengths[got++]);
                assert_memory_equal(frame.data, payload, frame.len);
            }
        }
        assert_int_equal(got, 3);
        frame_reader_finish(&r);
    }
}

static void test_reader_bad_header(void **state)
{
    struct frame_reader r;
    struct frame frame;

    (void)state;
    frame_reader_init(&r);
    assert_int_equal(frame_reader_feed(&r, "\xff\xff\xff\xff\x01\0\0\0", 8), 0);
    assert_int_equal(frame_reader_next(&r, &frame), -EPROTO);
    frame_reader_finish(&r);
}

static void test_wait_over_a_socket(void **state)
{
    struct frame_reader r;
    struct frame_writer w;
    struct frame frame;
    struct err err = {0};
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    frame_writer_init(&w, pair[0]);
    frame_reader_init(&r);
    assert_int_equal(frame_writer_send(&w, PROTO_STDOUT, "abc", 3), 0);
    assert_int_equal(frame_writer_send(&w, PROTO_DONE, NULL, 0), 0);
    assert_true(frame_writer_pending(&w));
    assert_int_equal(frame_writer_flush(&w), 0);
    assert_false(frame_writer_pending(&w));
    fd_close(&pair[0]);
    assert_int_equal(frame_reader_wait(&r, pair[1], &frame, &err), 1);
    assert_int_equal(frame.type, PROTO_STDOUT);
    assert_memory_equal(frame.data, "abc", 3);
    assert_int_equal(frame_reader_wait(&r, pair[1], &frame, &err), 1);
    assert_int_equal(frame.type, PROTO_DONE);
    assert_int_equal(frame_reader_wait(&r, pair[1], &frame, &err), 0);
    assert_int_equal(err.code, 0);
    frame_reader_finish(&r);
    frame_writer_finish(&w);
    fd_close(&pair[1]);
}

static void test_wait_end_inside_a_frame(void **state)
{
    struct frame_reader r;
    struct frame frame;
    struct err err = {0};
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(fd_write_full(pair[0], "\x05\0\0\0\x01\0\0\0ab", 10), 0);
    fd_close(&pair[0]);
    frame_reader_init(&r);
    assert_int_equal(frame_reader_wait(&r, pair[1], &frame, &err), -ECONNRESET);
    frame_reader_finish(&r);
    fd_close(&pair[1]);
}

/* A reader that does not read: push returns instead of blocking, and nothing is lost. */
static void test_push_does_not_block(void **state)
{
    static uint8_t chunk[PROTO_CHUNK_MAX];
    struct frame_reader r;
    struct frame_writer w;
    struct frame frame;
    unsigned sent = 0, got = 0;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    frame_writer_init(&w, pair[0]);
    frame_reader_init(&r);
    while (frame_writer_add(&w, PROTO_STDOUT, chunk, sizeof(chunk)) == 0) {
        sent++;
        (void)frame_writer_push(&w);
        assert_true(sent < 1000);
    }
    assert_int_equal(frame_writer_push(&w), -EAGAIN);
    assert_true(frame_writer_room(&w) < sizeof(chunk));
    while (frame_writer_push(&w) == -EAGAIN || got < sent) {
        assert_true(frame_reader_fill(&r, pair[1], MSG_DONTWAIT) != 0);
        while (frame_reader_next(&r, &frame) == 1) {
            assert_int_equal(frame.len, sizeof(chunk));
            got++;
        }
    }
    assert_int_equal(got, sent);
    assert_int_equal(frame_reader_fill(&r, pair[1], MSG_DONTWAIT), -EAGAIN);
    frame_reader_finish(&r);
    frame_writer_finish(&w);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_round_trip),
        cmocka_unit_test(test_header_refused),
        cmocka_unit_test(test_reader_any_cut),
        cmocka_unit_test(test_reader_bad_header),
        cmocka_unit_test(test_wait_over_a_socket),
        cmocka_unit_test(test_wait_end_inside_a_frame),
        cmocka_unit_test(test_push_does_not_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
