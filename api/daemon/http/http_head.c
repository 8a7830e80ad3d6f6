/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_head.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define METHOD_MAX 16u

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

/* METHOD SP TARGET SP HTTP/1.x, as far as it is there. */
static int check_first_line(const char *line, size_t len, bool whole)
{
    static const char version[] = "HTTP/1.";
    size_t i = 0, at;

    while (i < len && i < METHOD_MAX && is_token((unsigned char)line[i]))
        i++;
    if (i == len && !whole)
        return -EAGAIN;
    if (i == 0 || i == len || line[i] != ' ')
        return 400;
    at = ++i;
    while (i < len && (unsigned char)line[i] > ' ' && line[i] != 0x7f)
        i++;
    if (i - at > HTTP_TARGET_MAX)
        return 414;
    if (i == len && !whole)
        return -EAGAIN;
    if (i == at || i == len || line[i] != ' ')
        return 400;
    at = ++i;
    if (!whole)
        return len - at > sizeof(version) + 1 ? 400 : -EAGAIN;
    if (len - at != 8 || memcmp(line + at, version, 5) != 0 || line[at + 5] < '0' ||
        line[at + 5] > '9' || line[at + 6] != '.' || line[at + 7] < '0' || line[at + 7] > '9')
        return 400;
    return line[at + 5] == '1' ? 0 : 505;
}

/* NAME: VALUE, as far as it is there. */
static int check_header(const char *line, size_t len, bool whole)
{
    size_t i = 0;

    while (i < len && is_token((unsigned char)line[i]))
        i++;
    if (i == len)
        return whole ? 400 : -EAGAIN;
    if (i == 0 || line[i] != ':')
        return 400;
    while (i < len && is_text((unsigned char)line[i]))
        i++;
    if (i < len)
        return 400;
    return whole ? 0 : -EAGAIN;
}

int http_head_check(const char *data, size_t len)
{
    const char *at = data, *end = data + len;
    unsigned lines = 0;

    /* One empty line before a request is forgiven: some clients end a body with it. */
    if (len >= 2 && at[0] == '\r' && at[1] == '\n')
        at += 2;
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((feed ? feed : end) - at);
        int r;

        /* Of a line that is not whole, a CR at its end may be its end. */
        if (feed && (n == 0 || at[n - 1] != '\r'))
            return 400;
        if (n > 0 && at[n - 1] == '\r')
            n--;
        if (feed && n == 0 && lines > 0)
            return feed - data < (ptrdiff_t)HTTP_HEAD_MAX ? 0 : 431;
        r = lines == 0 ? check_first_line(at, n, feed) : check_header(at, n, feed);
        if (r > 0)
            return r;
        if (!feed)
            break;
        if (lines++ > HTTP_HEADERS_MAX)
            return 431;
        at = feed + 1;
    }
    return len < HTTP_HEAD_MAX ? -EAGAIN : 431;
}
