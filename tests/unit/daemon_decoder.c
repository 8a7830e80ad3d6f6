/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a hostile guest: order, sizes, limits, and independence of how they are cut. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/guest_decoder.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "tests/unit/frame_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the sink saw, as text. */
struct seen {
    struct buf text;
    int refuse; /* what every member returns */
    bool has_session;
};

static int on_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                  struct err *err)
{
    struct seen *s = ctx;

    (void)err;
    buf_printf(&s->text, "%s<%.*s>", stream == GUEST_STDERR ? "err" : "out", (int)len,
               (const char *)data);
    return s->refuse;
}

static int on_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct seen *s = ctx;

    (void)err;
    buf_printf(&s->text, "output<%.*s>", (int)len, (const char *)data);
    return s->refuse;
}

static int on_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct seen *s = ctx;

    (void)data;
    (void)err;
    buf_printf(&s->text, "files<%zu>", len);
    return s->refuse;
}

static int on_session(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct seen *s = ctx;

    (void)data;
    (void)err;
    buf_printf(&s->text, "session<%zu>", len);
    return s->refuse;
}

static void on_stage(void *ctx, enum guest_stage stage)
{
    struct seen *s = ctx;

    buf_printf(&s->text, "[%d]", (int)stage);
}

static const struct guest_decoder_limits limits = {
    .output_bytes = 100, .files_bytes = 100, .session_bytes = 100};

static void put(struct buf *out, uint8_t type, const void *data, size_t len)
{
    uint8_t header[PROTO_HEADER_SIZE];

    frame_header_write(header, type, len);
    assert_int_equal(buf_append(out, header, sizeof(header)), 0);
    assert_int_equal(buf_append(out, data, len), 0);
}

static void put_exit(struct buf *out, uint32_t code, uint32_t sig, uint32_t flags)
{
    uint8_t raw[PROTO_EXIT_SIZE] = {0};
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u32(&w, code);
    bytes_put_u32(&w, sig);
    bytes_put_u32(&w, flags);
    bytes_put_u32(&w, 3);
    put(out, PROTO_EXIT, raw, sizeof(raw));
}

static void put_ready(struct buf *out)
{
    static const uint8_t version[] = {PROTO_VERSION, 0, 0, 0};

    put(out, PROTO_READY, version, sizeof(version));
}

static struct buf whole_run(void)
{
    struct buf b = buf_init(1u << 20);

    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    put(&b, PROTO_STDOUT, "hello", 5);
    put(&b, PROTO_STDERR, "warn", 4);
    put_exit(&b, 42, 0, 0);
    put(&b, PROTO_OUTPUT, "{}", 2);
    put(&b, PROTO_OUTPUT, NULL, 0);
    put(&b, PROTO_FILES, "tar", 3);
    put(&b, PROTO_FILES, NULL, 0);
    put(&b, PROTO_DONE, NULL, 0);
    return b;
}

/* Feeds one piece, which may hold several stages. */
static int feed_piece(struct guest_decoder *d, const uint8_t *data, size_t len,
                      struct seen *seen, struct err *err)
{
    const struct guest_sink sink = {.ctx = seen,
                                    .log = on_log,
                                    .output = on_output,
                                    .files = on_files,
                                    .session = on_session};
    size_t used = 0;
    int r = 0;

    for (size_t at = 0; r == 0 && at < len; at += used) {
        enum guest_stage stage = d->stage;

        r = guest_decoder_feed(d, data + at, len - at, &sink, &used, err);
        assert_true(r < 0 || (used > 0 && used <= len - at));
        if (r == 0 && d->stage == GUEST_OUTPUT && stage != d->stage)
            buf_printf(&seen->text, "exit<%u %u %u>", d->exit.code, d->exit.signal,
                       d->exit.flags);
        if (d->stage != stage)
            on_stage(seen, d->stage);
        else
            assert_true(r < 0 || used == len - at);
    }
    return r;
}

/* Feeds in pieces of a size; injected from the start, as if the host were fast. */
static int feed(const struct buf *b, size_t piece, struct seen *seen, struct err *err)
{
    struct guest_decoder *d = malloc(sizeof(*d));
    int r = 0;

    assert_non_null(d);
    guest_decoder_init(d, &limits);
    d->injected = true;
    d->has_session = seen->has_session;
    for (size_t at = 0; r == 0 && at < b->len; at += piece)
        r = feed_piece(d, b->data + at, b->len - at < piece ? b->len - at : piece, seen, err);
    free(d);
    return r;
}

static void whole_run_in_any_pieces(void **state)
{
    const char *want = "[1][2]out<hello>err<warn>exit<42 0 0>[3]output<{}>[4]files<3>[6][7]";
    struct buf b = whole_run();

    (void)state;
    for (size_t piece = 1; piece <= b.len; piece++) {
        struct seen seen = {.text = buf_init(1000)};

        assert_int_equal(feed(&b, piece, &seen, NULL), 0);
        assert_string_equal(buf_cstr(&seen.text), want);
        buf_finish(&seen.text);
    }
    buf_finish(&b);
}

static void expect_breach(struct buf *b, const char *part)
{
    struct seen seen = {.text = buf_init(1u << 20)};
    struct err err = {0};

    assert_int_equal(feed(b, SIZE_MAX / 2, &seen, &err), -EPROTO);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    buf_finish(&seen.text);
    buf_finish(b);
}

/* Every frame at every stage but its own is a breach. */
static void order_is_enforced(void **state)
{
    static const uint8_t types[] = {PROTO_READY,  PROTO_STARTED, PROTO_STDOUT,
                                    PROTO_STDERR, PROTO_EXIT,    PROTO_OUTPUT,
                                    PROTO_FILES,  PROTO_DONE,    PROTO_SESSION};
    static const struct {
        int frames; /* of a whole run that come before */
        uint8_t due[3];
    } stages[] = {
        {0, {PROTO_READY}},
        {1, {PROTO_STARTED}},
        {2, {PROTO_STDOUT, PROTO_STDERR, PROTO_EXIT}},
        {5, {PROTO_OUTPUT}},
        {7, {PROTO_FILES}},
        {9, {PROTO_DONE}},
        {10, {0}},
    };
    struct buf run = whole_run();

    (void)state;
    for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
        for (size_t t = 0; t < sizeof(types); t++) {
            struct buf b = buf_init(1u << 20);
            size_t at = 0;

            if (memchr(stages[s].due, types[t], sizeof(stages[s].due)))
                continue;
            for (int i = 0; i < stages[s].frames; i++)
                at += PROTO_HEADER_SIZE + run.data[at];
            assert_int_equal(buf_append(&b, run.data, at), 0);
            put(&b, types[t], NULL, 0);
            expect_breach(&b, "at stage");
        }
    }
    buf_finish(&run);
}

/* Whose job has no network may not speak of any. */
static void connections_are_for_those_that_have_any(void **state)
{
    static const uint8_t types[][2] = {{PROTO_NET_ASK, 3},
                                       {PROTO_NET_OPEN, 6},
                                       {PROTO_NET_GUEST_DATA, 3},
                                       {PROTO_NET_GUEST_ROOM, 8},
                                       {PROTO_NET_GUEST_END, 4}};

    (void)state;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        struct buf b = buf_init(1u << 20);

        put_ready(&b);
        put(&b, PROTO_STARTED, NULL, 0);
        put(&b, types[t][0], "\0\0\0\0\0\0\0", types[t][1]);
        expect_breach(&b, "where it may have none");
    }
}

static void started_waits_for_the_host(void **state)
{
    struct guest_decoder *d = malloc(sizeof(*d));
    struct seen seen = {.text = buf_init(100)};
    struct buf b = buf_init(100);

    (void)state;
    assert_non_null(d);
    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    guest_decoder_init(d, &limits);
    assert_int_equal(feed_piece(d, b.data, b.len, &seen, NULL), -EPROTO);
    free(d);
    buf_finish(&b);
    buf_finish(&seen.text);
}

static void sizes_are_enforced(void **state)
{
    static const uint8_t header[] = {0xff, 0xff, 0xff, 0xff, PROTO_READY, 0, 0, 0};
    struct buf b = buf_init(1u << 20);
    char *large = calloc(1, PROTO_CHUNK_MAX + 1);

    (void)state;
    assert_non_null(large);
    buf_append(&b, header, sizeof(header));
    expect_breach(&b, "4294967295 bytes");
    put(&b, PROTO_READY, "\1\0\0", 3);
    expect_breach(&b, "3 bytes");
    put_ready(&b);
    put(&b, PROTO_STARTED, "x", 1);
    expect_breach(&b, "1 bytes");
    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    put(&b, PROTO_STDOUT, NULL, 0);
    expect_breach(&b, "0 bytes");
    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    put(&b, PROTO_STDOUT, large, PROTO_CHUNK_MAX + 1);
    expect_breach(&b, "65537 bytes");
    put(&b, PROTO_FAIL, large, 1025);
    expect_breach(&b, "1025 bytes");
    put(&b, 0x42, NULL, 0);
    expect_breach(&b, "0x42");
    put_ready(&b);
    b.data[5] = 1;
    expect_breach(&b, "reserved");
    put(&b, PROTO_READY, "\143\0\0\0", 4);
    expect_breach(&b, "protocol 99,");
    free(large);
}

static void totals_are_enforced(void **state)
{
    struct buf b = buf_init(1u << 20);
    char bytes[101] = {0};

    (void)state;
    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    put_exit(&b, 0, 0, 0);
    put(&b, PROTO_OUTPUT, bytes, 100);
    put(&b, PROTO_OUTPUT, bytes, 1);
    expect_breach(&b, "more bytes");
    put_ready(&b);
    put(&b, PROTO_STARTED, NULL, 0);
    put_exit(&b, 0, 0, 0);
    put(&b, PROTO_OUTPUT, NULL, 0);
    put(&b, PROTO_FILES, bytes, 101);
    expect_breach(&b, "more bytes");
}

static void exits_are_checked(void **state)
{
    static const uint32_t bad[][3] = {{256, 0, 0}, {0, 65, 0}, {1, 9, 0}, {0, 0, 512}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf b = buf_init(1000);

        put_ready(&b);
        put(&b, PROTO_STARTED, NULL, 0);
        put_exit(&b, bad[i][0], bad[i][1], bad[i][2]);
        expect_breach(&b, "EXIT");
    }
}

static void fail_is_made_printable(void **state)
{
    struct buf b = buf_init(1000);
    struct seen seen = {.text = buf_init(100)};
    struct err err = {0};

    (void)state;
    put_ready(&b);
    put(&b, PROTO_FAIL, "no \x1b[31m\n\xff", 10);
    assert_int_equal(feed(&b, 3, &seen, &err), -EREMOTEIO);
    assert_non_null(strstr(err.message, "no ?[31m??"));
    buf_clear(&b);
    err = (struct err){0};
    put_ready(&b);
    put(&b, PROTO_FAIL, "a\" b=\"c \xc2\x9b \xc3\xa4", 13);
    assert_int_equal(feed(&b, 3, &seen, &err), -EREMOTEIO);
    assert_non_null(strstr(err.message, "a' b='c ?? \xc3\xa4"));
    buf_finish(&b);
    buf_finish(&seen.text);
}

/* What nobody takes is checked all the same, and goes. */
static void sinks_may_be_missing(void **state)
{
    static const struct guest_sink nobody;
    struct guest_decoder *d = malloc(sizeof(*d));
    struct buf b = whole_run();
    size_t used = 0;

    (void)state;
    assert_non_null(d);
    guest_decoder_init(d, &limits);
    d->injected = true;
    for (size_t at = 0; at < b.len; at += used)
        assert_int_equal(guest_decoder_feed(d, b.data + at, b.len - at, &nobody, &used, NULL),
                         0);
    assert_int_equal(d->stage, GUEST_DONE);
    assert_int_equal(d->exit.code, 42);
    assert_int_equal(d->exit.not_started, 3);
    free(d);
    buf_finish(&b);
}

static void sinks_may_refuse(void **state)
{
    struct buf b = whole_run();
    struct seen seen = {.text = buf_init(100), .refuse = -ENOSPC};

    (void)state;
    assert_int_equal(feed(&b, 1000, &seen, NULL), -ENOSPC);
    assert_string_equal(buf_cstr(&seen.text), "[1][2]out<hello>");
    buf_finish(&b);
    buf_finish(&seen.text);
}

/* All up to where a session is due. */
static struct buf run_with_session(void)
{
    struct buf b = whole_run();

    b.len -= PROTO_HEADER_SIZE;
    return b;
}

static void a_session_comes_last(void **state)
{
    struct seen seen = {.text = buf_init(1000), .has_session = true};
    struct buf b = run_with_session();

    (void)state;
    put(&b, PROTO_SESSION, "tar", 3);
    put(&b, PROTO_SESSION, NULL, 0);
    put(&b, PROTO_DONE, NULL, 0);
    assert_int_equal(feed(&b, 7, &seen, NULL), 0);
    assert_non_null(strstr(buf_cstr(&seen.text), "files<3>[5]session<3>[6][7]"));
    buf_finish(&seen.text);
    buf_finish(&b);
}

static void expect_session_breach(struct buf *b, const char *part)
{
    struct seen seen = {.text = buf_init(1000), .has_session = true};
    struct err err = {0};

    assert_int_equal(feed(b, SIZE_MAX / 2, &seen, &err), -EPROTO);
    assert_non_null(strstr(err.message, part));
    buf_finish(&seen.text);
    buf_finish(b);
}

static void a_session_is_bounded_and_due(void **state)
{
    static const char bytes[60];
    struct buf b = run_with_session();

    (void)state;
    put(&b, PROTO_SESSION, bytes, sizeof(bytes));
    put(&b, PROTO_SESSION, bytes, sizeof(bytes));
    expect_session_breach(&b, "more bytes");
    b = whole_run();
    expect_session_breach(&b, "frame type 0x88");
    /* Nothing comes before READY, whatever its type. */
    b = buf_init(1000);
    put(&b, PROTO_SESSION - 1, NULL, 0);
    expect_breach(&b, "the guest broke the protocol");
    /* Of a run that has none. */
    b = run_with_session();
    put(&b, PROTO_SESSION, NULL, 0);
    expect_breach(&b, "frame type 0x90");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_run_in_any_pieces),
        cmocka_unit_test(order_is_enforced),
        cmocka_unit_test(connections_are_for_those_that_have_any),
        cmocka_unit_test(started_waits_for_the_host),
        cmocka_unit_test(sizes_are_enforced),
        cmocka_unit_test(totals_are_enforced),
        cmocka_unit_test(exits_are_checked),
        cmocka_unit_test(fail_is_made_printable),
        cmocka_unit_test(sinks_may_refuse),
        cmocka_unit_test(sinks_may_be_missing),
        cmocka_unit_test(a_session_comes_last),
        cmocka_unit_test(a_session_is_bounded_and_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
