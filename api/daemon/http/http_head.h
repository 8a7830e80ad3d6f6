/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request, taken apart byte by byte as it comes: the one place that says what is
 * HTTP. Strict where leniency lets two readers see two requests: line ends are CR LF, no folded
 * lines, no space before a colon, no control bytes, and one way to tell where the body ends.
 * No I/O and no clock.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_HEAD_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX    (16u * 1024u) /* bytes of request line and headers */
#define HTTP_TARGET_MAX  (8u * 1024u)
#define HTTP_HEADERS_MAX 100u

/* Zero-initialise. What is in it are offsets of strings in its text. */
struct http_head {
    char *text;
    size_t at; /* bytes looked at; of a whole head: all that are its */
    unsigned state;
    unsigned n_headers;
    uint16_t method, target, version;
    struct {
        uint16_t name, value;
    } headers[HTTP_HEADERS_MAX];
    /* Of a whole head. */
    bool is_1_0; /* HTTP/1.0 */
    bool is_chunked;
    bool is_last;    /* the connection ends after it */
    bool expects;    /* Expect: 100-continue */
    uint64_t length; /* of a body that is not chunked */
};

/*
 * Goes on with a head of which len bytes are at text by now; strings in it get their ends. 0:
 * it is whole; -EAGAIN: there has to come more; else the status to answer with: 400, 414, 431
 * or 505.
 */
int http_head_feed(struct http_head *h, char *text, size_t len);
/* The value of the first header of the name, or NULL, and how many there are of it. */
const char *http_head_find(const struct http_head *h, const char *name, unsigned *ret_count);
/* True for a name or an address with or without a port, and nothing else. */
bool http_head_is_host(const char *value);

#endif
