/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_framing.h"

#include <errno.h>

#define LINE_MAX      (4u * 1024u) /* of a size with extensions, or of all trailers */
#define SIZE_MAX_BITS 52           /* sizes beyond are nobody's */

enum state {
    BODY, /* by length, or a chunk's, of which what is left is the caller's */
    DATA_LF,
    FIRST_DIGIT,
    DIGITS,
    EXTENSION,
    SIZE_LF,
    TRAILER, /* the beginning of its line */
    TRAILER_TEXT,
    TRAILER_LF,
    LAST_LF,
};

struct http_framing http_framing_init(bool is_chunked, uint64_t length)
{
    return (struct http_framing){.left = is_chunked ? 0 : length,
                                 .done = !is_chunked && length == 0,
                                 .is_chunked = is_chunked,
                                 .state = is_chunked ? FIRST_DIGIT : BODY};
}

static int enter(struct http_framing *f, enum state state)
{
    f->state = state;
    return 0;
}

static int expect(struct http_framing *f, unsigned char c, unsigned char wanted,
                  enum state next)
{
    return c == wanted ? enter(f, next) : -EBADMSG;
}

static int take_digit(struct http_framing *f, unsigned char c)
{
    const unsigned char low = c | 0x20;
    unsigned digit;

    if (c >= '0' && c <= '9')
        digit = c - '0';
    else if (low >= 'a' && low <= 'f')
        digit = low - 'a' + 10u;
    else
        return -EBADMSG;
    if (f->size >> SIZE_MAX_BITS)
        return -EBADMSG;
    f->size = f->size * 16 + digit;
    return enter(f, DIGITS);
}

/* Text up to a CR. */
static int take_text(struct http_framing *f, unsigned char c, enum state here, enum state next)
{
    if (c == '\r')
        return enter(f, next);
    return (c >= 0x20 && c != 0x7f) || c == '\t' ? enter(f, here) : -EBADMSG;
}

static int take(struct http_framing *f, unsigned char c)
{
    switch ((enum state)f->state) {
    case BODY:
        return expect(f, c, '\r', DATA_LF);
    case DATA_LF:
        return expect(f, c, '\n', FIRST_DIGIT);
    case FIRST_DIGIT:
        return take_digit(f, c);
    case DIGITS:
        if (c == ';' || c == '\r')
            return enter(f, c == ';' ? EXTENSION : SIZE_LF);
        return take_digit(f, c);
    case EXTENSION:
        return take_text(f, c, EXTENSION, SIZE_LF);
    case SIZE_LF:
        f->left = f->size;
        f->size = 0;
        return expect(f, c, '\n', f->left > 0 ? BODY : TRAILER);
    case TRAILER:
        return take_text(f, c, TRAILER_TEXT, LAST_LF);
    case TRAILER_TEXT:
        return take_text(f, c, TRAILER_TEXT, TRAILER_LF);
    case TRAILER_LF:
        return expect(f, c, '\n', TRAILER);
    case LAST_LF:
        f->done = true;
        return expect(f, c, '\n', LAST_LF);
    }
    return -EBADMSG;
}

ssize_t http_framing_skip(struct http_framing *f, const char *data, size_t len)
{
    size_t n = 0;

    while (n < len && !f->done && f->left == 0) {
        if (f->state == FIRST_DIGIT)
            f->line = 0;
        if (f->line++ == LINE_MAX || take(f, (unsigned char)data[n]) < 0)
            return -EBADMSG;
        n++;
    }
    return (ssize_t)n;
}

void http_framing_take(struct http_framing *f, size_t len)
{
    f->left -= len;
    f->done = f->left == 0 && !f->is_chunked;
}
