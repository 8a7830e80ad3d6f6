/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_reader.h"

#include "api/daemon/http/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define METHOD_MAX       16u
#define LENGTH_MAX       18u          /* digits that fit 64 bits */
#define CHUNK_LENGTH_MAX 15u          /* the same of hexadecimal ones */
#define CHUNK_LINES_MAX  (4u * 1024u) /* a size with extensions, or all trailers */

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/*
 * Looks for the end of a line, of which *seen bytes were good before. Its length without that,
 * and *seen is 0; -EAGAIN; -EBADMSG for a byte that no line has.
 */
static ssize_t find_end(const char *text, size_t len, size_t *seen)
{
    for (; *seen < len; ++*seen) {
        const unsigned char c = (unsigned char)text[*seen];
        const size_t n = *seen;

        if (c == '\r' && n + 1 == len)
            return -EAGAIN;
        if (c == '\r' && text[n + 1] == '\n') {
            *seen = 0;
            return (ssize_t)n;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return -EBADMSG;
    }
    return -EAGAIN;
}

/* RFC 9110's token. */
static bool is_token(const char *text)
{
    return *text && text[strspn(text, DIGITS LETTERS "!#$%&'*+-.^_`|~")] == '\0';
}

static int take_request_line(struct http_head *h, char *line)
{
    const char *method = strsep(&line, " ");
    char *target = strsep(&line, " ");

    if (!line || strlen(line) != 8 || strncmp(line, "HTTP/", 5) != 0 ||
        strspn(line + 5, DIGITS) != 1 || line[6] != '.' || strspn(line + 7, DIGITS) != 1)
        return 400;
    if (!is_token(method) || strlen(method) > METHOD_MAX || !*target || strchr(target, '\t'))
        return 400;
    if (line[5] != '1')
        return 505;
    h->method = method;
    h->target = target;
    h->is_1_0 = line[7] == '0';
    return strlen(target) > HTTP_TARGET_MAX ? 414 : -EAGAIN;
}

static int take_header(struct http_head *h, char *line, size_t len)
{
    char *value = line;
    const char *name = strsep(&value, ":");

    if (!value || !is_token(name))
        return 400;
    if (h->n_headers == HTTP_HEADERS_MAX)
        return 431;
    value += strspn(value, " \t");
    for (char *end = line + len; end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    h->headers[h->n_headers].name = name;
    h->headers[h->n_headers++].value = value;
    return -EAGAIN;
}

/* True when a list has this word. */
static bool has_word(const char *list, const char *word)
{
    while (*list) {
        size_t len;

        list += strspn(list, " \t,");
        len = strcspn(list, " \t,");
        if (len == strlen(word) && strncasecmp(list, word, len) == 0)
            return true;
        list += len;
    }
    return false;
}

/* Connection may come in several lines (RFC 9110, 5.3), and any of them end it. */
static bool closes(const struct http_head *h)
{
    bool found = false;

    for (unsigned i = 0; i < h->n_headers; i++)
        found |= strcasecmp(h->headers[i].name, "Connection") == 0 &&
                 has_word(h->headers[i].value, "close");
    return found;
}

/* Where does the body end, and the connection? 0 or a status. */
static int finish(struct http_head *h)
{
    unsigned hosts, lengths, encodings;
    const char *host = http_head_find(h, "Host", &hosts);
    const char *length = http_head_find(h, "Content-Length", &lengths);
    const char *encoding = http_head_find(h, "Transfer-Encoding", &encodings);
    const char *expect = http_head_find(h, "Expect", NULL);

    if (hosts > 1 || (hosts == 0 && !h->is_1_0))
        return 400;
    h->host = host && strlen(host) <= HTTP_HOST_MAX &&
                      host[strspn(host, DIGITS LETTERS ".-_:[]")] == '\0'
                  ? host
                  : "";
    if (lengths + encodings > 1 || (h->is_1_0 && encodings > 0) ||
        (encoding && strcasecmp(encoding, "chunked") != 0))
        return 400;
    if (length && (!*length || length[strspn(length, DIGITS)]))
        return 400;
    if (length && strlen(length) > LENGTH_MAX)
        return 413;
    h->is_chunked = encodings > 0;
    h->length = length ? strtoull(length, NULL, 10) : 0;
    h->is_last = h->is_1_0 || closes(h);
    h->expects = !h->is_1_0 && expect && strcasecmp(expect, "100-continue") == 0;
    return 0;
}

static int take_line(struct http_head *h, char *line, size_t len)
{
    line[len] = '\0';
    /* One empty line is forgiven: some clients end a body with it. */
    if (!h->method && len == 0)
        return h->at == 2 ? -EAGAIN : 400;
    if (!h->method)
        return take_request_line(h, line);
    return len > 0 ? take_header(h, line, len) : finish(h);
}

int http_head_feed(struct http_head *h, char *text, size_t len)
{
    const size_t end = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
    int r = -EAGAIN;

    while (r == -EAGAIN) {
        char *line = text + h->at;
        ssize_t n = find_end(line, end - h->at, &h->seen);

        if (n == -EAGAIN && end == HTTP_HEAD_MAX)
            return h->method ? 431 : 414;
        if (n < 0)
            return n == -EAGAIN ? -EAGAIN : 400;
        h->at += (size_t)n + 2;
        r = take_line(h, line, (size_t)n);
    }
    return r;
}

const char *http_head_find(const struct http_head *h, const char *name, unsigned *ret_count)
{
    const char *first = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < h->n_headers; i++) {
        if (strcasecmp(h->headers[i].name, name) == 0 && n++ == 0)
            first = h->headers[i].value;
    }
    if (ret_count)
        *ret_count = n;
    return first;
}

/* Lines around a body's bytes. */
enum { SIZE, CHUNK_END, TRAILER };

struct http_framing http_framing_init(const struct http_head *head)
{
    return (struct http_framing){.left = head->length,
                                 .done = !head->is_chunked && head->length == 0,
                                 .is_chunked = head->is_chunked};
}

static int take_chunk_line(struct http_framing *f, const char *line, size_t len)
{
    const size_t digits = strspn(line, DIGITS "abcdefABCDEF");

    if (f->line == TRAILER) {
        f->done = len == 0;
        return 0;
    }
    if (f->line == CHUNK_END) {
        f->line = SIZE;
        return len == 0 ? 0 : -EBADMSG;
    }
    if (digits == 0 || digits > CHUNK_LENGTH_MAX || (digits < len && line[digits] != ';'))
        return -EBADMSG;
    f->left = strtoull(line, NULL, 16);
    f->line = f->left > 0 ? CHUNK_END : TRAILER;
    return 0;
}

ssize_t http_framing_skip(struct http_framing *f, const char *data, size_t len)
{
    size_t at = 0;

    while (!f->done && f->left == 0) {
        const char *line = data + at;
        ssize_t n = find_end(line, len - at, &f->seen);

        if (n == -EAGAIN && f->size + f->seen <= CHUNK_LINES_MAX)
            break;
        if (n < 0 || f->size + (size_t)n + 2 > CHUNK_LINES_MAX)
            return -EBADMSG;
        at += (size_t)n + 2;
        f->size += (size_t)n + 2;
        if (take_chunk_line(f, line, (size_t)n) < 0)
            return -EBADMSG;
    }
    return (ssize_t)at;
}

void http_framing_take(struct http_framing *f, size_t len)
{
    f->left -= len;
    f->size = 0;
    f->done |= f->left == 0 && !f->is_chunked;
}
