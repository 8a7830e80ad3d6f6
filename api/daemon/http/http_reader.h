/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place that says what is HTTP/1.1: the head of a request, and where its body ends.
 * Strict where leniency lets two readers see two requests: lines are text and end in CR LF, no
 * line is folded, no space is before a colon, and there is one way to tell a body's length.
 * Each byte is looked at once, however they come. No I/O and no clock.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_READER_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_HEAD_MAX    (16u * 1024u) /* bytes of request line and headers */
#define HTTP_TARGET_MAX  (8u * 1024u)
#define HTTP_HEADERS_MAX 100u

/* Zero-initialise. Strings in it are borrowed from its text. */
struct http_head {
    size_t at;   /* bytes of the lines that were taken: of a whole head, all that are its */
    size_t seen; /* of the line that comes */
    const char *method;
    char *target;
    unsigned n_headers;
    struct {
        const char *name, *value;
    } headers[HTTP_HEADERS_MAX];
    bool is_1_0; /* HTTP/1.0 */
    /* Of a whole head. */
    bool is_chunked;
    bool is_last;     /* the connection ends after it */
    bool expects;     /* Expect: 100-continue */
    uint64_t length;  /* of a body that is not chunked */
    const char *host; /* a name or an address with or without a port; else "" */
};

/*
 * Goes on with a head of which len bytes are at text by now; strings in it get their ends. 0:
 * it is whole; -EAGAIN: there has to come more; else the status to answer with: 400, 413, 414,
 * 431 or 505.
 */
int http_head_feed(struct http_head *h, char *text, size_t len);
/* The value of the first header of the name, or NULL, and how many there are of it (or NULL).
 */
const char *http_head_find(const struct http_head *h, const char *name, unsigned *ret_count);

struct http_framing {
    uint64_t left; /* bytes of the body that come next */
    bool done;     /* the body is whole */
    bool is_chunked;
    unsigned line; /* what the next one is */
    size_t seen;   /* of it */
    size_t size;   /* of the lines since the last byte of the body */
};

struct http_framing http_framing_init(const struct http_head *head);
/*
 * Takes the lines around a body's bytes, as far as they are whole, out of data. How many bytes
 * that was: then either left says what comes or more has to. -EBADMSG.
 */
ssize_t http_framing_skip(struct http_framing *f, const char *data, size_t len);
/* So many of the bytes that come next were taken. */
void http_framing_take(struct http_framing *f, size_t len);

#endif
