/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON scanner, the writing of strings, and the repair of UTF-8. */
#include "tests/unit/cmocka_all.h"

#include "api/json/json_text.h"
#include "api/json/json_walk.h"
#include "api/json/json_write.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check(const char *text)
{
    return json_text_check(text, strlen(text), NULL, NULL);
}

static void accepts_json(void **state)
{
    static const char *const good[] = {
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "1.5e-3",
        "[]",
        "{}",
        "[1,2,[3,{}]]",
        "{\"a\":1,\"b\":[true,null]}",
        "\"\\u00e4\\n\\\\\"",
        "\"\xc3\xa4\"",
        "\t[\n]\r\n",
        "123456789012345678901234567890",
        "{\"a\":{\"a\":{}}}",
        "\"\\ud800\"",
        "1e400",
        "-0.5E+3",
        "{\"a\":{\"b\":[{},[],{\"c\":\"\\u00e9\\n\\\"\"}]}}",
        "\t[\r\n[\n]]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(check(good[i]), 0);
}

static void refuses_what_is_no_json(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulll",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "[1]]",
        "1 2",
        "NaN",
        "Infinity",
        "\xef\xbb\xbf{}",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "// x\n1",
        "[\"a\",\"b\"",
        "{\"a\":1 \"b\":2}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {0};

        assert_int_equal(json_text_check(bad[i], strlen(bad[i]), NULL, &err), -EINVAL);
        assert_true(err.message[0] != '\0');
    }
    assert_int_equal(json_text_check("1\0", 2, NULL, NULL), -EINVAL);
}

static void says_where_it_ends_being_json(void **state)
{
    static const char *const texts[][2] = {
        {"", "line 1, column 1: a value"},
        {"  ", "column 3: a value"},
        {"{\"a\": }", "line 1, column 7: a value"},
        {"{\n  \"a\": 1,\n  b: 2\n}", "line 3, column 3: a string"},
        {"{\"a\" 1}", "column 6: a colon"},
        {"{\"a\": 1 \"b\"}", "column 9: a comma or }"},
        {"{\"a\": 1,}", "column 9: a string"},
        {"[1, 2", "line 1, column 6: a comma or ]"},
        {"[1,]", "column 4: a value"},
        {"[1}", "column 3: a comma or ]"},
        {"{} {}", "line 1, column 4: nothing more"},
        {"'a'", "column 1: a value"},
        {"nul", "column 1: a value"},
        {"01", "column 2: nothing more"},
        {"1.", "column 3: a digit"},
        {"-", "column 2: a digit"},
        {"1e", "column 3: a digit"},
        {"\"a", "column 3: the closing"},
        {"\"a\nb\"", "column 3: an escape"},
        {"\"\\x\"", "column 3: an escape"},
        {"\"\\u12g4\"", "column 6: a hexadecimal"},
        {"\"\xff\"", "column 2: UTF-8"},
        {"NaN", "column 1: a value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = {0};

        assert_int_equal(json_text_check(texts[i][0], strlen(texts[i][0]), NULL, &err),
                         -EINVAL);
        if (!strstr(err.message, texts[i][1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", texts[i][0], err.message, texts[i][1]);
    }
    assert_int_equal(json_text_check("\"a\0b\"", 5, NULL, NULL), -EINVAL);
    assert_int_equal(json_text_check("1 ", 1, NULL, NULL), 0);
}

static void bounds_depth(void **state)
{
    char text[2 * JSON_TEXT_DEPTH_MAX + 4];

    (void)state;
    memset(text, '[', JSON_TEXT_DEPTH_MAX);
    memset(text + JSON_TEXT_DEPTH_MAX, ']', JSON_TEXT_DEPTH_MAX);
    assert_int_equal(json_text_check(text, 2 * JSON_TEXT_DEPTH_MAX, NULL, NULL), 0);
    memset(text, '[', JSON_TEXT_DEPTH_MAX + 1);
    memset(text + JSON_TEXT_DEPTH_MAX + 1, ']', JSON_TEXT_DEPTH_MAX + 1);
    assert_int_equal(json_text_check(text, 2 * JSON_TEXT_DEPTH_MAX + 2, NULL, NULL), -EINVAL);
}

static void lists_members(void **state)
{
    const char *text = " { \"a\" : [1, 2] ,\"b\":\"x\" } ";
    struct json_member m[2];
    struct json_slice value;
    struct err err = {0};
    size_t n = 0;

    (void)state;
    assert_int_equal(json_text_members(text, strlen(text), m, 2, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_true(json_slice_is(m[0].key, "a"));
    assert_true(json_slice_is(m[0].value, "[1, 2]"));
    assert_true(json_slice_is(m[1].value, "\"x\""));
    assert_int_equal(json_text_members(text, strlen(text), m, 1, &n, &err), -EINVAL);
    text = "{\"a\":1,\"a\":2}";
    assert_int_equal(json_text_members(text, strlen(text), m, 2, &n, NULL), -EINVAL);
    text = "[]";
    assert_int_equal(json_text_members(text, strlen(text), m, 2, &n, NULL), -EINVAL);
    text = "{} {}";
    assert_int_equal(json_text_members(text, strlen(text), m, 2, &n, NULL), -EINVAL);
    text = "  12 ";
    assert_int_equal(json_text_check(text, strlen(text), &value, NULL), 0);
    assert_true(json_slice_is(value, "12"));
}

static void finds_nul_escapes(void **state)
{
    (void)state;
    assert_true(json_text_has_nul("\"a\\u0000\"", 9));
    assert_false(json_text_has_nul("\"a\\\\u0000\"", 10));
    assert_true(json_text_has_nul("\"\\\\\\u0000\"", 10));
    assert_false(json_text_has_nul("\"\\u000\"", 7));
}

static void expect_json(const void *data, size_t len, const char *want)
{
    struct buf out = buf_init(1000);

    assert_int_equal(json_append_string(&out, data, len), 0);
    assert_string_equal(buf_cstr(&out), want);
    assert_int_equal(check(buf_cstr(&out)), 0);
    buf_finish(&out);
}

static void writes_strings(void **state)
{
    struct buf small = buf_init(4);

    (void)state;
    expect_json("", 0, "\"\"");
    expect_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    expect_json("\n\r\t\x01\x7f", 5, "\"\\n\\r\\t\\u0001\\u007f\"");
    expect_json("\0", 1, "\"\\u0000\"");
    expect_json("\xc3\xa4\xff", 3, "\"\xc3\xa4\xef\xbf\xbd\"");
    expect_json("\xe2\x82", 2, "\"\xef\xbf\xbd\"");
    assert_int_equal(json_append_string(&small, "abcdef", 6), -E2BIG);
    buf_finish(&small);
}

static void compacts(void **state)
{
    const char *text = "{ \"a b\" : [ 1 ,\n\t\"c \\\" d\" ] }";
    struct buf out = buf_init(1000);

    (void)state;
    assert_int_equal(
        json_append_compact(&out, (struct json_slice){.data = text, .len = strlen(text)}), 0);
    assert_string_equal(buf_cstr(&out), "{\"a b\":[1,\"c \\\" d\"]}");
    buf_finish(&out);
}

/* Half a surrogate pair is no character: strict readers would refuse the whole answer. */
static void repairs_half_surrogate_pairs(void **state)
{
    static const char *const cases[][2] = {
        {"\"\\udcff\"", "\"\\ufffd\""},
        {"\"a\\ud800b\"", "\"a\\ufffdb\""},
        {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
        {"\"\\uD83D\\uDE00\\uDE00\"", "\"\\uD83D\\uDE00\\ufffd\""},
        {"\"\\ud800\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\""},
        {"\"\\ud800\\n\"", "\"\\ufffd\\n\""},
        {"\"\\\\ud800\"", "\"\\\\ud800\""},
        {"[ \"\\ud800\" , 1 ]", "[\"\\ufffd\",1]"},
        {"\"\\u00e4\\\"\"", "\"\\u00e4\\\"\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_slice value = {cases[i][0], strlen(cases[i][0])};
        struct buf out = buf_init(1000);

        assert_int_equal(json_text_check(value.data, value.len, NULL, NULL), 0);
        assert_int_equal(json_append_compact(&out, value), 0);
        assert_string_equal(buf_cstr(&out), cases[i][1]);
        buf_finish(&out);
    }
}

static void expect_repair(struct utf8_tail *tail, const char *data, bool end, const char *want)
{
    struct buf out = buf_init(100);

    assert_int_equal(utf8_repair(tail, data, strlen(data), end, &out), 0);
    assert_string_equal(buf_cstr(&out), want);
    assert_true(utf8_valid(out.data, out.len));
    buf_finish(&out);
}

static void repairs_utf8_across_chunks(void **state)
{
    struct utf8_tail tail = {0};

    (void)state;
    expect_repair(&tail, "a\xe2\x82", false, "a");
    expect_repair(&tail,
                  "\xac"
                  "b",
                  false,
                  "\xe2\x82\xac"
                  "b");
    expect_repair(&tail, "\xf0\x9f", false, "");
    expect_repair(&tail, "x", false, "\xef\xbf\xbdx");
    expect_repair(&tail, "\xf0", false, "");
    expect_repair(&tail, "\x9f", false, "");
    expect_repair(&tail, "\x98", false, "");
    expect_repair(&tail, "\x80", false, "\xf0\x9f\x98\x80");
    expect_repair(&tail, "\xe2", false, "");
    expect_repair(&tail, "\xe2\x82", false, "\xef\xbf\xbd");
    expect_repair(&tail, "", true, "\xef\xbf\xbd");
    expect_repair(&tail, "\xc0\xaf\x80", true, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_repair(&tail, "", true, "");
}

/* However a stream is cut, what comes out is the same. */
static void repair_does_not_depend_on_chunks(void **state)
{
    char bytes[64];
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        static const uint8_t interesting[] = {'a',  0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed,
                                              0x9f, 0xf0, 0x90, 0xf4, 0x8f, 0xff, 0xe2};
        struct buf whole = buf_init(1000), parts = buf_init(1000);
        struct utf8_tail tail = {0};
        size_t at = 0;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (char)interesting[rand_r(&seed) % sizeof(interesting)];
        assert_int_equal(utf8_repair(&tail, bytes, sizeof(bytes), true, &whole), 0);
        while (at < sizeof(bytes)) {
            size_t n = (size_t)rand_r(&seed) % 5;

            n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
            assert_int_equal(utf8_repair(&tail, bytes + at, n, false, &parts), 0);
            at += n;
        }
        assert_int_equal(utf8_repair(&tail, "", 0, true, &parts), 0);
        assert_int_equal(whole.len, parts.len);
        assert_memory_equal(whole.data, parts.data, whole.len);
        assert_true(utf8_valid(whole.data, whole.len));
        buf_finish(&whole);
        buf_finish(&parts);
    }
}

static void decodes_strings(void **state)
{
    static const char *const cases[][2] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"a\\n\\t\\\"\\\\\\/\\b\\f\\r\"", "a\n\t\"\\/\b\f\r"},
        {"\"\\u0041\\u00e4\\u20ac\\uFFFD\"", "A\xc3\xa4\xe2\x82\xac\xef\xbf\xbd"},
        {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
        {"\"\\ud83d!\\ude00\"", "\xef\xbf\xbd!\xef\xbf\xbd"},
        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                               "A"},
    };
    struct buf out = buf_init(100);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_slice slice;

        assert_int_equal(json_text_check(cases[i][0], strlen(cases[i][0]), &slice, NULL), 0);
        buf_clear(&out);
        assert_int_equal(json_append_decoded(&out, slice), 0);
        assert_string_equal(buf_cstr(&out), cases[i][1]);
    }
    buf_clear(&out);
    assert_int_equal(json_append_decoded(&out, (struct json_slice){"\"x\\u0000y\"", 10}), 0);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "x\0y", 3);
    assert_int_equal(json_append_decoded(&out, (struct json_slice){"12", 2}), -EINVAL);
    buf_finish(&out);
}

static struct json_slice slice_of(const char *text)
{
    return (struct json_slice){text, strlen(text)};
}

static void takes_values(void **state)
{
    uint64_t number = 7;
    bool flag = true;

    (void)state;
    assert_int_equal(json_take_whole(slice_of("0"), 0, &number), 0);
    assert_int_equal(number, 0);
    assert_int_equal(json_take_whole(slice_of("18446744073709551615"), UINT64_MAX, &number), 0);
    assert_true(number == UINT64_MAX);
    assert_int_equal(json_take_whole(slice_of("18446744073709551616"), UINT64_MAX, &number),
                     -ERANGE);
    assert_int_equal(json_take_whole(slice_of("101"), 100, &number), -ERANGE);
    assert_int_equal(json_take_whole(slice_of("6"), 5, &number), -ERANGE);
    assert_int_equal(json_take_whole(slice_of("-1"), 100, &number), -EINVAL);
    assert_int_equal(json_take_whole(slice_of("1.0"), 100, &number), -EINVAL);
    assert_int_equal(json_take_whole(slice_of("1e1"), 100, &number), -EINVAL);
    assert_int_equal(json_take_whole(slice_of("\"1\""), 100, &number), -EINVAL);
    assert_true(number == UINT64_MAX);
    assert_int_equal(json_take_bool(slice_of("false"), &flag), 0);
    assert_false(flag);
    assert_int_equal(json_take_bool(slice_of("true"), &flag), 0);
    assert_true(flag);
    assert_int_equal(json_take_bool(slice_of("1"), &flag), -EINVAL);
    assert_true(flag);
}

static void writes_documents(void **state)
{
    struct json_writer w = json_writer_init(1000);
    struct buf out;

    (void)state;
    json_write_open(&w, NULL, '{');
    json_write_open(&w, "a", '[');
    json_write_string(&w, NULL, "x\ny");
    json_write_number(&w, NULL, UINT64_MAX);
    json_write_open(&w, NULL, '{');
    json_write_close(&w, '}');
    json_write_close(&w, ']');
    json_write_bool(&w, "b", true);
    json_write_string(&w, "c", NULL);
    json_write_ms(&w, "d", 1500);
    json_write_time(&w, "e", 1700000000123456789ull);
    json_write_time(&w, "f", 0);
    json_write_close(&w, '}');
    assert_int_equal(json_writer_end(&w, &out), 0);
    assert_string_equal(buf_cstr(&out),
                        "{\"a\":[\"x\\ny\",18446744073709551615,{}],\"b\":true,\"c\":null,"
                        "\"d\":0.002,\"e\":\"2023-11-14T22:13:20.123Z\",\"f\":null}\n");
    buf_finish(&out);
    /* What did not fit is an error at the end, and nothing else. */
    w = json_writer_init(4);
    json_write_open(&w, NULL, '[');
    json_write_string(&w, NULL, "long text");
    json_write_close(&w, ']');
    assert_int_equal(json_writer_end(&w, &out), -E2BIG);
    assert_int_equal(out.len, 0);
}

static bool fits(const char *text, size_t max)
{
    return json_fits((struct json_slice){text, strlen(text)}, max);
}

static void counts_values(void **state)
{
    (void)state;
    assert_true(fits("1", 1));
    assert_true(fits("\"[,{\\\",[\"", 1));
    assert_true(fits("[1,2]", 3));
    assert_false(fits("[1,2]", 2));
    assert_true(fits("{\"a,b\":[1],\"c\":{\"d\":2}}", 6));
    assert_false(fits("{\"a,b\":[1],\"c\":{\"d\":2}}", 4));
    assert_false(fits("[[[[[", 5));
    assert_true(fits("\"a\\", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_values),
        cmocka_unit_test(decodes_strings),
        cmocka_unit_test(takes_values),
        cmocka_unit_test(writes_documents),
        cmocka_unit_test(accepts_json),
        cmocka_unit_test(refuses_what_is_no_json),
        cmocka_unit_test(says_where_it_ends_being_json),
        cmocka_unit_test(bounds_depth),
        cmocka_unit_test(lists_members),
        cmocka_unit_test(finds_nul_escapes),
        cmocka_unit_test(writes_strings),
        cmocka_unit_test(compacts),
        cmocka_unit_test(repairs_half_surrogate_pairs),
        cmocka_unit_test(repairs_utf8_across_chunks),
        cmocka_unit_test(repair_does_not_depend_on_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
