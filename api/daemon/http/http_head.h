/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request as bytes: is it whole, and is it HTTP at all? Looked at before a thread
 * is spent on a connection. Strict where leniency lets two readers see two requests: line ends
 * are CR LF, no folded lines, no space before a colon, no control bytes.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_HEAD_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_HEAD_H

#include <stddef.h>

#define HTTP_HEAD_MAX    (16u * 1024u) /* bytes of request line and headers */
#define HTTP_TARGET_MAX  (8u * 1024u)
#define HTTP_HEADERS_MAX 100u

/*
 * 0: a whole head; -EAGAIN: the beginning of one; else the status to answer with: 400, 414, 431
 * or 505.
 */
int http_head_check(const char *data, size_t len);

#endif
