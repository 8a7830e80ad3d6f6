/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, in pieces of any size, and the strings in them. */
#include "api/client/sse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int collect(void *ctx, const char *name, const char *data, size_t len)
{
    if (strcmp(name, "stop") == 0)
        return -ECANCELED;
    buf_printf(ctx, "%s=", name);
    buf_append(ctx, data, len);
    return buf_append(ctx, "|", 1);
}

static void expect(const char *stream, const char *text)
{
    size_t len = strlen(stream);

    for (size_t piece = 1; piece <= len; piece++) {
        struct buf seen = buf_init(65536);
        struct sse sse;
        sse_init(&sse, 1000, collect, &seen);
        for (size_t at = 0; at < len; at += piece)
            assert_int_equal(sse_push(&sse, stream + at, len - at < piece ? len - at : piece),
                             0);
        assert_string_equal(buf_cstr(&seen), text);
        sse_finish(&sse);
        buf_finish(&seen);
    }
}

static void events(void **state)
{
    (void)state;

    expect("", "");
    expect("data: a\n\n", "message=a|");
    expect("event: stdout\ndata: {\"data\":\"x\"}\n\nevent:result\ndata:{}\n\n",
           "stdout={\"data\":\"x\"}|result={}|");
    expect("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "message=a|message=b|message=c|");
    expect("data: a\ndata:\ndata:  b\n\n", "message=a\n\n b|");
    expect(": comment\nid: 3\nretry: 10\nunknown\nevent: x\n\ndata: y\n\n", "message=y|");
    expect("\xef\xbb\xbf"
           "data: a\n\n",
           "message=a|");
    expect("data: not ended\n", "");
    expect("data\n\n", "message=|");
    expect("event: 0123456789012345678901234567890123456789012345678901234567890123456789\n"
           "data: x\n\n",
           "012345678901234567890123456789012345678901234567890123456789012=x|");
}

static void bounds(void **state)
{
    struct buf seen = buf_init(65536);
    struct sse sse;
    char big[200];
    (void)state;

    memset(big, 'a', sizeof(big));
    sse_init(&sse, 100, collect, &seen);
    assert_int_equal(sse_push(&sse, big, sizeof(big)), -E2BIG);
    sse_finish(&sse);

    /* Many short lines of one event are bounded as well. */
    sse_init(&sse, 100, collect, &seen);
    int result = 0;
    for (unsigned i = 0; i < 30 && !result; i++)
        result = sse_push(&sse, "data: 1234\n", 11);
    assert_int_equal(result, -E2BIG);
    sse_finish(&sse);

    sse_init(&sse, 100, collect, &seen);
    assert_int_equal(sse_push(&sse, "event: stop\ndata: x\n\n", 21), -ECANCELED);
    sse_finish(&sse);
    buf_finish(&seen);
}

static void strings(void **state)
{
    static const struct {
        const char *json;
        const char *text;
        size_t len;
    } good[] = {
        {"{\"data\":\"\"}", "", 0},
        {"{\"data\":\"plain\"}", "plain", 5},
        {" { \"data\" : \"a\\n\\t\\\"\\\\\\/\\b\\f\\r\" } ", "a\n\t\"\\/\b\f\r", 9},
        {"{\"data\":\"a\\u0000b\"}", "a\0b", 3},
        {"{\"data\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
         9},
        {"{\"data\":\"\\ud83dx\"}", "\xef\xbf\xbdx", 4},
        {"{\"data\":\"\\ude00\"}", "\xef\xbf\xbd", 3},
        {"{\"data\":\"\\ud83d\\u0041\"}",
         "\xef\xbf\xbd"
         "A",
         4},
    };
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"data\":1}",
                                      "{\"data\":\"x}",
                                      "{\"data\":\"x\"",
                                      "{\"other\":\"x\"}",
                                      "{\"data\":\"\\x\"}",
                                      "{\"data\":\"\\u12\"}",
                                      "{\"data\":\"\\",
                                      "{\"data\":\"\\u00zz\"}"};
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct buf out = buf_init(100);
        assert_int_equal(sse_decode_data(good[i].json, strlen(good[i].json), &out), 0);
        assert_int_equal(out.len, good[i].len);
        if (out.len)
            assert_memory_equal(out.data, good[i].text, out.len);
        buf_finish(&out);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf out = buf_init(100);
        assert_int_equal(sse_decode_data(bad[i], strlen(bad[i]), &out), -EINVAL);
        buf_finish(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(bounds),
        cmocka_unit_test(strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
