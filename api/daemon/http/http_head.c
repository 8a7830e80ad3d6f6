/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define METHOD_MAX 16u
#define DIGITS_MAX 18u /* of a length: fits 64 bits */

enum state {
    BEGIN,
    EMPTY_LF, /* one empty line is forgiven: some clients end a body with it */
    METHOD,
    TARGET,
    VERSION,
    LINE_LF,
    HEADER,
    NAME,
    SPACE, /* before a value */
    VALUE,
    LAST_LF,
};

/* A character of RFC 9110's token. */
static bool is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static int enter(struct http_head *h, enum state state)
{
    h->state = state;
    return -EAGAIN;
}

/* Ends the string before this byte; where the next one begins. */
static uint16_t cut(struct http_head *h)
{
    h->text[h->at] = '\0';
    return (uint16_t)(h->at + 1);
}

static int take_method(struct http_head *h, unsigned char c)
{
    const size_t len = h->at - h->method;

    if (is_token(c) && len < METHOD_MAX)
        return enter(h, METHOD);
    if (c != ' ' || len == 0)
        return 400;
    h->target = cut(h);
    return enter(h, TARGET);
}

static int take_target(struct http_head *h, unsigned char c)
{
    const size_t len = h->at - h->target;

    if (c > ' ' && c != 0x7f)
        return len < HTTP_TARGET_MAX ? -EAGAIN : 414;
    if (c != ' ' || len == 0)
        return 400;
    h->version = cut(h);
    return enter(h, VERSION);
}

/* HTTP/1.x */
static int take_version(struct http_head *h, unsigned char c)
{
    static const char form[] = "HTTP/0.0\r";
    const size_t i = h->at - h->version;

    if (form[i] == '0' ? !is_digit(c) : c != (unsigned char)form[i])
        return 400;
    if (c != '\r')
        return -EAGAIN;
    (void)cut(h);
    return h->text[h->version + 5] == '1' ? enter(h, LINE_LF) : 505;
}

static int take_name(struct http_head *h, unsigned char c)
{
    if (is_token(c))
        return enter(h, NAME);
    if (c != ':' || h->state == HEADER)
        return 400;
    h->headers[h->n_headers].value = cut(h);
    return enter(h, SPACE);
}

static int take_value(struct http_head *h, unsigned char c)
{
    size_t end = h->at;

    if (is_text(c))
        return enter(h, VALUE);
    if (c != '\r')
        return 400;
    while (end > h->headers[h->n_headers].value &&
           (h->text[end - 1] == ' ' || h->text[end - 1] == '\t'))
        end--;
    h->text[end] = '\0';
    h->n_headers++;
    return enter(h, LINE_LF);
}

/* True when a list has this word. */
static bool has_word(const char *list, const char *word)
{
    while (list && *list) {
        size_t len;

        list += strspn(list, " \t,");
        len = strcspn(list, " \t,");
        if (len == strlen(word) && strncasecmp(list, word, len) == 0)
            return true;
        list += len;
    }
    return false;
}

/* Where does the body end, and the connection? 0 or a status. */
static int finish(struct http_head *h)
{
    unsigned hosts, lengths, encodings, n;
    const char *length, *encoding, *expect;

    h->is_1_0 = strcmp(h->text + h->version, "HTTP/1.0") == 0;
    (void)http_head_find(h, "Host", &hosts);
    length = http_head_find(h, "Content-Length", &lengths);
    encoding = http_head_find(h, "Transfer-Encoding", &encodings);
    expect = http_head_find(h, "Expect", &n);
    if (hosts > 1 || (hosts == 0 && !h->is_1_0))
        return 400;
    if (lengths + encodings > 1 || (h->is_1_0 && encodings > 0) ||
        (encodings > 0 && strcasecmp(encoding, "chunked") != 0))
        return 400;
    if (length && (!*length || strlen(length) > DIGITS_MAX ||
                   length[strspn(length, "0123456789")] != '\0'))
        return 400;
    h->is_chunked = encodings > 0;
    h->length = length ? strtoull(length, NULL, 10) : 0;
    h->is_last = h->is_1_0 || has_word(http_head_find(h, "Connection", &n), "close");
    h->expects = !h->is_1_0 && expect && strcasecmp(expect, "100-continue") == 0;
    return 0;
}

static int take(struct http_head *h, unsigned char c)
{
    switch ((enum state)h->state) {
    case BEGIN:
        return c == '\r' ? enter(h, EMPTY_LF) : take_method(h, c);
    case EMPTY_LF:
        h->method = (uint16_t)(h->at + 1);
        return c == '\n' ? enter(h, METHOD) : 400;
    case METHOD:
        return take_method(h, c);
    case TARGET:
        return take_target(h, c);
    case VERSION:
        return take_version(h, c);
    case LINE_LF:
        return c == '\n' ? enter(h, HEADER) : 400;
    case HEADER:
        if (c == '\r')
            return enter(h, LAST_LF);
        if (h->n_headers == HTTP_HEADERS_MAX)
            return 431;
        h->headers[h->n_headers].name = (uint16_t)h->at;
        return take_name(h, c);
    case NAME:
        return take_name(h, c);
    case SPACE:
        h->headers[h->n_headers].value = (uint16_t)h->at;
        return c == ' ' || c == '\t' ? -EAGAIN : take_value(h, c);
    case VALUE:
        return take_value(h, c);
    case LAST_LF:
        return c == '\n' ? finish(h) : 400;
    }
    return 400;
}

int http_head_feed(struct http_head *h, char *text, size_t len)
{
    int r = -EAGAIN;

    h->text = text;
    while (r == -EAGAIN && h->at < len && h->at < HTTP_HEAD_MAX) {
        r = take(h, (unsigned char)text[h->at]);
        h->at++;
    }
    return r == -EAGAIN && h->at == HTTP_HEAD_MAX ? 431 : r;
}

const char *http_head_find(const struct http_head *h, const char *name, unsigned *ret_count)
{
    const char *first = NULL;

    *ret_count = 0;
    for (unsigned i = 0; i < h->n_headers; i++) {
        if (strcasecmp(h->text + h->headers[i].name, name) != 0)
            continue;
        if (++*ret_count == 1)
            first = h->text + h->headers[i].value;
    }
    return first;
}

bool http_head_is_host(const char *value)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789.-_:[]";
    size_t len = strspn(value, allowed);

    return len > 0 && len < 256 && value[len] == '\0';
}
