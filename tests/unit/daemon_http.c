/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server's parts on their own: request targets, heads, and where bodies end. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/http/http_internal.h"
#include "api/daemon/http/http_match.h"
#include "api/daemon/http/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int match(const char *pattern, const char *target, const char *first, const char *second)
{
    const char *params[HTTP_PARAMS_MAX] = {0};
    char text[128];
    int r;

    (void)snprintf(text, sizeof(text), "%s", target);
    assert_true(http_match_path(pattern, text, NULL) == -ENOENT || strcmp(text, target) == 0);
    r = http_match_path(pattern, text, params);
    if (r == 0) {
        assert_string_equal(params[0] ? params[0] : "", first);
        assert_string_equal(params[1] ? params[1] : "", second);
    }
    return r;
}

static void paths_match_their_route(void **state)
{
    (void)state;
    assert_int_equal(match("/health", "/health", "", ""), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a/1.0", "a", "1.0"), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a%20b/%31", "a b", "1"), 0);
    assert_int_equal(match("/e/:/files/*", "/e/1/files/a/b%20c", "1", "a/b c"), 0);
    assert_int_equal(match("/e/:/files/*", "/e/1/files/a%2Fb", "1", "a/b"), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a..b/...", "a..b", "..."), 0);
}

static void other_paths_match_nothing(void **state)
{
    static const char *const targets[] = {
        "",
        "*",
        "/",
        "http://x/v1/skills/a/1",
        "/v1/skills",
        "/v1/skills/a",
        "/v1/skills/a/",
        "/v1/skills//1",
        "/v1/skills/a/1/",
        "/v1/skills/a/1/2",
        "/v1/skills/%/1",
        "/v1/skills/%2/1",
        "/v1/skills/a/%2",
        "/v1/skills/a/%",
        "/v1/skills/%zz/1",
        "/v1/skills/a%00/1",
        "/v1/skills/%0aa/1",
        "/v1/skills/a/%7f",
        "/v1/skills/a%2f1/2",
        "/v1/skills/./1",
        "/v1/skills/../1",
        "/v1/skills/%2e%2e/1",
        "/v1/skills/%2e./1",
        "/v1/skills/a\x01/1",
        "/v1/%73kills/a/1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        if (match("/v1/skills/:/:", targets[i], "", "") == 0)
            fail_msg("%s matches", targets[i]);
    }
    assert_int_equal(match("/f/*", "/f/", "", ""), -ENOENT);
    assert_int_equal(match("/f/*", "/f/a//b", "", ""), -EINVAL);
    assert_int_equal(match("/f/*", "/f/a/../b", "", ""), -EINVAL);
    assert_int_equal(match("/f/*", "/f/a%2f..%2fb", "", ""), -EINVAL);
    assert_int_equal(match("/f/*", "/f/%2fetc", "", ""), -EINVAL);
}

static void targets_may_name_a_host(void **state)
{
    static const struct {
        const char *target, *path;
    } cases[] = {{"/a", "/a"},          {"http://x:1/a/b", "/a/b"}, {"HTTPS://[::1]/a", "/a"},
                 {"http://x", ""},      {"ftp://x/a", "ftp://x/a"}, {"*", "*"},
                 {"http:/x", "http:/x"}};
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s", cases[i].target);
        assert_string_equal(http_match_target(text), cases[i].path);
    }
}

/* The values of "limit" and "skill". False where one cannot be decoded. */
static bool query(const char *text, const char *limit, const char *skill)
{
    static const char *const names[HTTP_QUERY_MAX] = {"limit", "skill"};
    const char *values[HTTP_QUERY_MAX] = {0};
    char copy[128];

    (void)snprintf(copy, sizeof(copy), "%s", text);
    if (!http_match_query(copy, names, values))
        return false;
    assert_string_equal(values[0] ? values[0] : "-", limit);
    assert_string_equal(values[1] ? values[1] : "-", skill);
    assert_null(values[2]);
    return true;
}

static void queries_give_their_parameters(void **state)
{
    const char *values[HTTP_QUERY_MAX] = {0};

    (void)state;
    assert_true(query("a&skill=a+b%26&limit=5&limit=6&skilled=1", "5", "a b&"));
    assert_true(query("limit&&=&skill=", "", ""));
    assert_true(query("", "-", "-"));
    assert_true(query("other=%00&limit=a=b", "a=b", "-"));
    assert_false(query("limit=1&skill=%0", "", ""));
    assert_false(query("limit=%00", "", ""));
    assert_true(http_match_query(NULL, (const char *const[HTTP_QUERY_MAX]){"limit"}, values));
}

static void bearers_are_taken_as_they_are_written(void **state)
{
    static const struct {
        const char *value;
        const char *key;
    } cases[] = {
        {"Bearer sk-1", "sk-1"},
        {"bearer sk-1", "sk-1"},
        {"BEARER  \tsk-1 ", "sk-1"},
        {"Bearer", ""},
        {"Bearer ", ""},
        {"Bearersk-1", ""},
        {"Basic c2stMTo=", ""},
        {"sk-1", ""},
        {"Bearer sk-1 sk-2", ""},
        {"Bearer sk-1, sk-2", ""},
        {"", ""},
        {"Bearer sk-\xc3\xa4", ""},
        {"Bearer \"sk-1\"", ""},
        {"Bearer a=._~+/-", "a=._~+/-"},
    };
    char key[HTTP_BEARER_MAX + 1];
    char value[1024] = "Bearer ";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        http_auth_bearer(cases[i].value, key);
        assert_string_equal(key, cases[i].key);
    }
    memset(value + 7, 'x', HTTP_BEARER_MAX);
    http_auth_bearer(value, key);
    assert_int_equal(strlen(key), HTTP_BEARER_MAX);
    value[7 + HTTP_BEARER_MAX] = 'x';
    http_auth_bearer(value, key);
    assert_string_equal(key, "");
}

#define HOST "Host: x\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST

/* What a head is, where its bytes come in two pieces. */
static int feed(const char *text, size_t len, size_t first, struct http_head *ret)
{
    static char input[2 * HTTP_HEAD_MAX];
    struct http_head h = {.at = 0};
    int r;

    memcpy(input, text, len);
    r = http_head_feed(&h, input, first);
    if (r == -EAGAIN)
        r = http_head_feed(&h, input, len);
    if (ret)
        *ret = h;
    return r;
}

static int head(const char *text)
{
    return feed(text, strlen(text), 0, NULL);
}

/* The host of a request that says this one. */
static const char *host_of(const char *host)
{
    static struct http_head h;
    char text[1024];

    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    assert_int_equal(feed(text, strlen(text), 0, &h), 0);
    return h.host;
}

static void hosts_are_names_or_addresses(void **state)
{
    static const char *const good[] = {"localhost", "a.example:8080", "[::1]:80", ""};
    static const char *const bad[] = {"a/b", "a@b", "a b", "a\"b", "%2Frun"};
    char name[HTTP_HOST_MAX + 2] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_string_equal(host_of(good[i]), good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(host_of(bad[i]), "");
    memset(name, 'a', HTTP_HOST_MAX);
    assert_string_equal(host_of(name), name);
    name[HTTP_HOST_MAX] = 'a';
    assert_string_equal(host_of(name), "");
}

/* Each with what it is as a whole; every beginning of a good head is a beginning. */
static void heads_are_whole_or_refused(void **state)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {GET "\r\n", 0},
        {"\r\n" GET "\r\n", 0},
        {"GET / HTTP/1.0\r\nA: b\r\n\r\nmore", 0},
        {"M-SEARCH * HTTP/1.1\r\n" HOST "A:\r\nB:\tc \r\n\r\n", 0},
        {GET "A: \xc3\xa4\r\n\r\n", 0},
        {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 0},
        {GET "Content-Length: 000000000000000005\r\n\r\n", 0},
        {GET "transfer-encoding: Chunked\r\n\r\n", 0},
        {"", -EAGAIN},
        {GET, -EAGAIN},
        {GET "A: b\r\n", -EAGAIN},
        {"\r\n\r\n" GET "\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\n\r\n", 400},
        {"GET /  HTTP/1.1\r\n\r\n", 400},
        {"GET / a HTTP/1.1\r\n\r\n", 400},
        {" GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\n\r\n", 400},
        {"GET / HTTP/11\r\n\r\n", 400},
        {"GET / http/1.1\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTP/0.9\r\n\r\n", 505},
        {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
        {"GET /\x7f HTTP/1.1\r\n\r\n", 400},
        {"G\xc3\xa4T / HTTP/1.1\r\n\r\n", 400},
        {"ABCDEFGHIJKLMNOPQ / HTTP/1.1\r\n\r\n", 400},
        {"\x16\x03\x01", 400},
        {"GET / HTTP/1.1\n" HOST "\r\n", 400},
        {GET "\n", 400},
        {GET "A: b\nC: d\r\n\r\n", 400},
        {GET "A: b\rC: d\r\n\r\n", 400},
        {GET "A : b\r\n\r\n", 400},
        {GET " A: b\r\n\r\n", 400},
        {GET "A: b\r\n c\r\n\r\n", 400},
        {GET "A\r\n\r\n", 400},
        {GET ": b\r\n\r\n", 400},
        {GET "A: \x01\r\n\r\n", 400},
        {GET "\rx", 400},
        {GET HOST "\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {GET "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
        {GET "Content-Length:\r\n\r\n", 400},
        {GET "Content-Length: 5 5\r\n\r\n", 400},
        {GET "Content-Length: +5\r\n\r\n", 400},
        {GET "Content-Length: 9999999999999999999\r\n\r\n", 413},
        {GET "Content-Length: 18446744073709551621\r\n\r\n", 413},
        {GET "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {GET "Content-Length: 5, 5\r\n\r\n", 400},
        {GET "Content-Length: -0\r\n\r\n", 400},
        {GET "Content-Length: 0x5\r\n\r\n", 400},
        {GET "Content-Length : 5\r\n\r\n", 400},
        {GET "Content-Length\r\n: 5\r\n\r\n", 400},
        {GET "Transfer-Encoding:\tchunked \r\n\r\n", 0},
        {GET "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
        {GET "Transfer-Encoding: xchunked\r\n\r\n", 400},
        {GET "Transfer-Encoding: identity\r\n\r\n", 400},
        {GET "Transfer-Encoding:\r\n\r\n", 400},
        {GET "Transfer-Encoding: \x0b"
             "chunked\r\n\r\n",
         400},
        {GET "Transfer-Encoding\x0b: chunked\r\n\r\n", 400},
        {GET "Transfer-Encoding:\r\n chunked\r\n\r\n", 400},
        {GET "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
        {GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;
        const char *end = strstr(text, "\r\n\r\n");

        for (size_t n = 0; n <= strlen(text); n++) {
            if (feed(text, strlen(text), n, NULL) != cases[i].result)
                fail_msg("%s in %zu: %d", text, n, feed(text, strlen(text), n, NULL));
        }
        for (size_t n = 0; cases[i].result == 0 && text + n < end + 4; n++)
            assert_int_equal(feed(text, n, n, NULL), -EAGAIN);
    }
    assert_int_equal(feed("GET /\0 HTTP/1.1\r\n\r\n", 19, 0, NULL), 400);
    assert_int_equal(feed(GET "A: \0\r\n\r\n", sizeof(GET) + 7, 0, NULL), 400);
}

#define TWO_LINES GET "Connection: keep-alive\r\nConnection: close\r\n\r\n"

static void heads_are_taken_apart(void **state)
{
    static const char text[] = "\r\nPOST /a?b HTTP/1.1\r\nHost: x\r\nA:  b c\t \r\nB:\r\n"
                               "a: d\r\nContent-Length: 7\r\nExpect: 100-Continue\r\n"
                               "Connection: keep-alive, Close\r\n\r\nbody";
    struct http_head h;
    unsigned n;

    (void)state;
    for (size_t first = 0; first < sizeof(text); first++) {
        assert_int_equal(feed(text, sizeof(text) - 1, first, &h), 0);
        assert_int_equal(h.at, sizeof(text) - 1 - 4);
        assert_string_equal(h.method, "POST");
        assert_string_equal(h.target, "/a?b");
        assert_string_equal(http_head_find(&h, "A", &n), "b c");
        assert_int_equal(n, 2);
        assert_string_equal(http_head_find(&h, "b", &n), "");
        assert_null(http_head_find(&h, "C", &n));
        assert_int_equal(n, 0);
        assert_true(h.length == 7 && !h.is_chunked && h.expects && h.is_last && !h.is_1_0);
    }
    assert_int_equal(feed("GET / HTTP/1.0\r\n\r\n", 18, 0, &h), 0);
    assert_true(h.is_last && h.is_1_0 && h.length == 0);
    assert_int_equal(feed(GET "Connection: closed\r\n\r\n", sizeof(GET) + 21, 0, &h), 0);
    assert_false(h.is_last);
    assert_int_equal(feed(TWO_LINES, sizeof(TWO_LINES) - 1, 0, &h), 0);
    assert_true(h.is_last);
}

static void heads_have_a_limit(void **state)
{
    char *text = malloc(2 * HTTP_HEAD_MAX);
    size_t len;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', 2 * HTTP_HEAD_MAX);
    memcpy(text, "GET /", 5);
    assert_int_equal(feed(text, HTTP_HEAD_MAX - 1, 0, NULL), -EAGAIN);
    assert_int_equal(feed(text, HTTP_HEAD_MAX, 0, NULL), 414);
    memcpy(text + 4 + HTTP_TARGET_MAX, " HTTP/1.1\r\n", 11);
    assert_int_equal(feed(text, 4 + HTTP_TARGET_MAX + 11, 0, NULL), -EAGAIN);
    memcpy(text + 4 + HTTP_TARGET_MAX, "a HTTP/1.1\r\n", 12);
    assert_int_equal(feed(text, 4 + HTTP_TARGET_MAX + 12, 0, NULL), 414);
    memset(text, 'a', 2 * HTTP_HEAD_MAX);
    memcpy(text, GET "A: ", sizeof(GET) + 2);
    assert_int_equal(feed(text, HTTP_HEAD_MAX - 1, 0, NULL), -EAGAIN);
    assert_int_equal(feed(text, HTTP_HEAD_MAX, 0, NULL), 431);
    memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
    assert_int_equal(feed(text, HTTP_HEAD_MAX, 0, NULL), 0);
    memcpy(text + HTTP_HEAD_MAX - 4, "a\r\n\r\n", 5);
    assert_int_equal(feed(text, HTTP_HEAD_MAX + 1, 0, NULL), 431);
    len = (size_t)snprintf(text, 100, GET);
    for (unsigned i = 1; i < HTTP_HEADERS_MAX; i++)
        len += (size_t)snprintf(text + len, 10, "A: b\r\n");
    memcpy(text + len, "\r\n", 3);
    assert_int_equal(head(text), 0);
    memcpy(text + len, "A: b\r\n\r\n", 9);
    assert_int_equal(head(text), 431);
    free(text);
}

/* The body of these bytes, which come one by one; NULL where they are none. */
static const char *unframe(const char *text, size_t len, bool is_chunked, uint64_t length)
{
    static char body[64];
    const struct http_head h = {.is_chunked = is_chunked, .length = length};
    struct http_framing f = http_framing_init(&h);
    size_t n = 0, at = 0;

    for (size_t came = 1; came <= len && !f.done; came++) {
        ssize_t skipped = http_framing_skip(&f, text + at, came - at);

        if (skipped < 0)
            return NULL;
        at += (size_t)skipped;
        if (f.left == 0 || at == came)
            continue;
        assert_true(at + 1 == came && n + 1 < sizeof(body));
        body[n++] = text[at++];
        http_framing_take(&f, 1);
    }
    body[n] = '\0';
    return f.done ? body : "(goes on)";
}

static void bodies_end_where_it_is_told(void **state)
{
    static const struct {
        const char *text;
        const char *body;
    } cases[] = {
        {"0\r\n\r\nx", ""},
        {"3\r\nabc\r\n0\r\n\r\n", "abc"},
        {"2\r\nab\r\nA\r\n0123456789\r\n00\r\n\r\n", "ab0123456789"},
        {"3;a=\"b\"\r\n\r\nc\r\n0\r\nA: b\r\nC: d\r\n\r\n", "\r\nc"},
        {"3\r\nabc\r\n0\r\n", "(goes on)"},
        {"", "(goes on)"},
        {"\r\n", NULL},
        {" 3\r\nabc\r\n0\r\n\r\n", NULL},
        {"3 \r\nabc\r\n0\r\n\r\n", NULL},
        {"0x3\r\nabc\r\n0\r\n\r\n", NULL},
        {"-3\r\nabc\r\n0\r\n\r\n", NULL},
        {"3\nabc\r\n0\r\n\r\n", NULL},
        {"3\r\nabc\n0\r\n\r\n", NULL},
        {"3\r\nabc0\r\n\r\n", NULL},
        {"3\r\nabcd\r\n0\r\n\r\n", NULL},
        {"3;a\nb\r\nabc\r\n0\r\n\r\n", NULL},
        {"3;a\rb\r\nabc\r\n0\r\n\r\n", NULL},
        {"3\r\nabc\r\n0\r\n\n", NULL},
        {"3\r\nabc\r\n0\r\nA: b\n\r\n", NULL},
        {"3\r\nabc\r\n0\r\nA: \x01\r\n\r\n", NULL},
        {"3\r\nabc\r\n0\r\n\rx", NULL},
        {"3;\x7f\r\nabc\r\n0\r\n\r\n", NULL},
        {"+3\r\nabc\r\n0\r\n\r\n", NULL},
        {"3,\r\nabc\r\n0\r\n\r\n", NULL},
        {"\r\n3\r\nabc\r\n0\r\n\r\n", NULL},
        {"000000000000003\r\nabc\r\n0\r\n\r\n", "abc"},
        {"0000000000000003\r\nabc\r\n0\r\n\r\n", NULL},
        {"ffffffffffffffff\r\nabc", NULL},
        {"10000000000000000\r\nabc", NULL},
    };
    char lines[8192] = "1;";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *body = unframe(cases[i].text, strlen(cases[i].text), true, 0);

        if (!body != !cases[i].body || (body && strcmp(body, cases[i].body) != 0))
            fail_msg("%s: %s", cases[i].text, body ? body : "none");
    }
    assert_string_equal(unframe("abcd", 4, false, 3), "abc");
    assert_string_equal(unframe("abcd", 4, false, 0), "");
    assert_string_equal(unframe("abcd", 4, false, 5), "(goes on)");
    memset(lines + 2, 'a', sizeof(lines) - 2);
    assert_null(unframe(lines, sizeof(lines), true, 0));
    memcpy(lines, "0\r\n", 3);
    for (size_t i = 3; i + 6 <= sizeof(lines); i += 6)
        memcpy(lines + i, "A: b\r\n", 6);
    assert_null(unframe(lines, sizeof(lines), true, 0));
}

static void addresses_are_numbers(void **state)
{
    static const char *const bad[] = {
        "",           ":80",        "127.0.0.1",  "127.0.0.1:", "1.2.3:80",     "localhost:80",
        "::1:80",     "[::1]",      "[::1:80",    "[]:80",      "[1.2.3.4]:80", "1.2.3.4:65536",
        "1.2.3.4:-1", "1.2.3.4:8a", "1.2.3.4: 80"};
    struct listener l = listener_init();

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {0};

        if (listener_open_tcp(&l, bad[i], &err) != -EINVAL)
            fail_msg("%s is an address", bad[i]);
        assert_non_null(strstr(err.message, "no address"));
    }
    assert_int_equal(listener_open_tcp(&l, "127.0.0.1:0", NULL), 0);
    assert_false(l.is_unix);
    listener_close(&l);
    /* Where this machine has IPv6 at all. */
    if (listener_open_tcp(&l, "[::]:0", NULL) == 0)
        assert_false(l.is_unix);
    listener_close(&l);
}

static void only_listening_sockets_are_adopted(void **state)
{
    struct listener bound = listener_init(), adopted = listener_init();
    int pair[2];

    (void)state;
    assert_int_equal(pipe(pair), 0);
    assert_int_equal(listener_adopt(&adopted, pair[0], NULL), -EINVAL);
    listener_close(&adopted);
    assert_int_equal(close(pair[0]), -1);
    close(pair[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(listener_adopt(&adopted, pair[0], NULL), -EINVAL);
    listener_close(&adopted);
    close(pair[1]);
    assert_int_equal(listener_adopt(&adopted, -1, NULL), -EINVAL);
    assert_int_equal(listener_open_tcp(&bound, "127.0.0.1:0", NULL), 0);
    assert_int_equal(listener_adopt(&adopted, dup(bound.fd), NULL), 0);
    assert_false(adopted.is_unix);
    assert_string_equal(adopted.path, "");
    listener_close(&adopted);
    listener_close(&bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_match_their_route),
        cmocka_unit_test(other_paths_match_nothing),
        cmocka_unit_test(targets_may_name_a_host),
        cmocka_unit_test(queries_give_their_parameters),
        cmocka_unit_test(hosts_are_names_or_addresses),
        cmocka_unit_test(heads_are_whole_or_refused),
        cmocka_unit_test(heads_are_taken_apart),
        cmocka_unit_test(heads_have_a_limit),
        cmocka_unit_test(bodies_end_where_it_is_told),
        cmocka_unit_test(addresses_are_numbers),
        cmocka_unit_test(only_listening_sockets_are_adopted),
        cmocka_unit_test(bearers_are_taken_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
