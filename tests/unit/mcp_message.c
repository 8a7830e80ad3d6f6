/* SPDX-License-Identifier: Apache-2.0 */
/* What the MCP server is made of: lines, messages, walks over JSON, addresses of resources. */
#include "tests/unit/cmocka_all.h"

#include "api/json/json_walk.h"
#include "api/mcp/lines.h"
#include "api/mcp/message.h"
#include "api/mcp/uri.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_slice slice(const char *text)
{
    return (struct json_slice){text, strlen(text)};
}

static void assert_slice(struct json_slice s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.data, text, s.len);
}

static void note_line(void *ctx, const char *line, size_t len)
{
    struct buf *seen = ctx;

    if (line)
        assert_int_equal(buf_append(seen, line, len), 0);
    assert_int_equal(buf_append(seen, line ? "|" : "!", 1), 0);
}

static void assert_lines(const char *data, size_t piece, const char *expected)
{
    struct buf seen = buf_init(4096);
    struct lines l;

    lines_init(&l, 8, note_line, &seen);
    for (size_t at = 0, len = strlen(data); at < len; at += piece)
        assert_int_equal(lines_push(&l, data + at, len - at < piece ? len - at : piece), 0);
    assert_string_equal(buf_cstr(&seen), expected);
    lines_finish(&l);
    buf_finish(&seen);
}

static void lines_are_split_and_bounded(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        assert_lines("a\nbc\r\n\n\r\nd", piece, "a|bc|");
        assert_lines("12345678\n", piece, "12345678|");
        assert_lines("123456789\nnext\n", piece, "!next|");
        assert_lines("1234567890123456789\n\n1234567890123\nx\n", piece, "!!x|");
    }
}

static void members_and_items_are_found(void **state)
{
    struct json_slice v,
        object = slice("{ \"a\" : [1, {\"x\":\"}]\\\"\"} ,\n[ ]] , \"b\":-1.5e3,"
                       "\"c\":\"\\\\\",\"d\":{},\"a\":2}");
    struct json_items items = {.array = object};
    (void)state;

    assert_int_equal(json_text_check(object.data, object.len, NULL, NULL), 0);
    assert_true(json_find(object, "b", &v));
    assert_slice(v, "-1.5e3");
    assert_true(json_find(object, "c", &v));
    assert_slice(v, "\"\\\\\"");
    assert_true(json_find(object, "d", &v));
    assert_slice(v, "{}");
    assert_false(json_find(object, "x", &v));
    assert_false(json_find(slice("[1]"), "a", &v));
    assert_false(json_find(slice(""), "a", &v));
    assert_false(json_items_next(&items, &v));

    assert_true(json_find(object, "a", &items.array));
    assert_true(json_items_next(&items, &v));
    assert_slice(v, "1");
    assert_true(json_items_next(&items, &v));
    assert_slice(v, "{\"x\":\"}]\\\"\"}");
    assert_true(json_items_next(&items, &v));
    assert_slice(v, "[ ]");
    assert_false(json_items_next(&items, &v));
    items = (struct json_items){.array = slice("[ ]")};
    assert_false(json_items_next(&items, &v));
}

static void strings_are_bounded(void **state)
{
    char *text = json_strdup(slice("\"\\u00e9\""), 2);
    (void)state;

    assert_string_equal(text, "é");
    free(text);
    assert_null(json_strdup(slice("\"\\u00e9\""), 1));
    assert_null(json_strdup(slice("\"a\\u0000b\""), 100));
    assert_null(json_strdup(slice("12"), 100));
    text = json_strdup(slice("\"\""), 0);
    assert_string_equal(text, "");
    free(text);
}

static void requests_are_taken_apart(void **state)
{
    struct message m;
    (void)state;

    assert_int_equal(message_parse(slice("{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,"
                                         "\"method\":\"ping\",\"params\":{ }}"),
                                   &m, NULL),
                     0);
    assert_int_equal(m.kind, MESSAGE_REQUEST);
    assert_slice(m.id, "12345678901234567890");
    assert_slice(m.params, "{ }");
    assert_string_equal(m.method, "ping");

    assert_int_equal(
        message_parse(slice("{\"jsonrpc\":\"2.0\",\"method\":\"p\\u0069ng\"}"), &m, NULL), 0);
    assert_int_equal(m.kind, MESSAGE_NOTIFICATION);
    assert_string_equal(m.method, "ping");
    assert_int_equal(m.params.len, 0);

    assert_int_equal(
        message_parse(slice("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), &m, NULL), 0);
    assert_int_equal(m.kind, MESSAGE_RESPONSE);
}

static void bad_messages_are_refused(void **state)
{
    static const char *const bad[] = {
        "1",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":3}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {0};
        struct message m;

        assert_int_equal(message_parse(slice(bad[i]), &m, &err), -EINVAL);
        assert_true(err.message[0]);
        if (strstr(bad[i], "\"id\":7"))
            assert_slice(m.id, "7");
        else
            assert_int_equal(m.id.len, 0);
    }
}

static void ids_are_compared_by_what_they_are(void **state)
{
    (void)state;
    assert_true(message_same_id(slice("1"), slice("1")));
    assert_false(message_same_id(slice("1"), slice("\"1\"")));
    assert_false(message_same_id(slice("1"), slice("2")));
    assert_true(message_same_id(slice("\"\\u0061\""), slice("\"a\"")));
    assert_false(message_same_id(slice("\"a\""), slice("\"b\"")));
    assert_false(message_same_id(slice(""), slice("\"b\"")));
}

static void answers_are_written(void **state)
{
    struct buf out = buf_init(1024), result = buf_init(64);
    (void)state;

    assert_int_equal(buf_append(&result, "{}", 2), 0);
    assert_int_equal(message_append_result(&out, slice("\"x\""), &result), 0);
    assert_string_equal(buf_cstr(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}");
    buf_clear(&out);
    assert_int_equal(message_append_error(&out, slice(""), -32700, "a \"b\"\n", NULL), 0);
    assert_string_equal(buf_cstr(&out), "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                                        "-32700,\"message\":\"a \\\"b\\\"\\n\"}}");
    buf_clear(&out);
    assert_int_equal(message_append_notification(&out, "notifications/x", NULL), 0);
    assert_string_equal(buf_cstr(&out), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    buf_finish(&out);
    buf_finish(&result);
}

static void assert_uri(const char *uri, const char *path)
{
    char found[URI_MAX];
    enum uri_kind kind;
    int r = uri_to_path(uri, &kind, found);

    if (!path) {
        assert_int_equal(r, -EINVAL);
        return;
    }
    assert_int_equal(r, 0);
    assert_string_equal(found, path);
    assert_int_equal(kind, strncmp(uri, "skill", 5) == 0 ? URI_SKILL : URI_FILE);
}

static void addresses_name_paths(void **state)
{
    char *uri = uri_for_skill("wörter", "1.0.0+a b");
    (void)state;

    assert_string_equal(uri, "skill://w%C3%B6rter/1.0.0%2Ba%20b/SKILL.md");
    assert_uri(uri, "/v1/skills/w%C3%B6rter/1.0.0%2Ba%20b");
    free(uri);
    uri = uri_for_file("exec_1", "a b/ü?#.txt");
    assert_string_equal(uri, "execution://exec_1/files/a%20b/%C3%BC%3F%23.txt");
    assert_uri(uri, "/v1/executions/exec_1/files/a%20b/%C3%BC%3F%23.txt");
    free(uri);
    assert_uri("execution://e/files/a\"b", "/v1/executions/e/files/a%22b");
}

static void strange_addresses_name_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "file:///etc/passwd",
        "skill://",
        "skill://a/SKILL.md",
        "skill://a/1/other.md",
        "skill://a/1/b/SKILL.md",
        "skill:///1/SKILL.md",
        "skill://a//SKILL.md",
        "skill://../x/SKILL.md",
        "skill://a/%2e%2e/SKILL.md",
        "skill://a/1%00/SKILL.md",
        "skill://a/%zz/SKILL.md",
        "skill://a/%2/SKILL.md",
        "execution://e",
        "execution://e/files/",
        "execution://e/logs",
        "execution://e/files/../../../v1/skills",
        "execution://e/files/a/%2E%2e/b",
        "execution://e/files/a/./b",
        "execution://e/files/a//b",
        "execution://../files/a",
    };
    char *longest = malloc(2 * URI_MAX);
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_uri(bad[i], NULL);
    assert_uri("skill://a%2Fb/1/SKILL.md", "/v1/skills/a%2Fb/1");
    assert_non_null(longest);
    memset(longest, 'a', 2 * URI_MAX);
    memcpy(longest, "execution://e/files/", 20);
    longest[2 * URI_MAX - 1] = '\0';
    assert_uri(longest, NULL);
    free(longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_split_and_bounded),
        cmocka_unit_test(members_and_items_are_found),
        cmocka_unit_test(strings_are_bounded),
        cmocka_unit_test(requests_are_taken_apart),
        cmocka_unit_test(bad_messages_are_refused),
        cmocka_unit_test(ids_are_compared_by_what_they_are),
        cmocka_unit_test(answers_are_written),
        cmocka_unit_test(addresses_name_paths),
        cmocka_unit_test(strange_addresses_name_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
