/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart/form-data (RFC 7578), as it comes: parts with their names and content. Lines end in
 * CR LF, nothing comes before the first part, and nothing after the last counts.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_FORM_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_FORM_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_FORM_BUFFER (16u * 1024u) /* what is around its parts is no more, as a rule */

struct http_form;

/* What is told of a form; false ends it. Texts are borrowed, NULL where they were not said. */
struct http_form_events {
    bool (*begin)(void *ctx, const char *name, const char *file_name, const char *type);
    bool (*content)(void *ctx, const char *data, size_t len);
    void *ctx;
};

/* By the Content-Type of a request. NULL: it has no usable boundary, or there is no memory. */
struct http_form *http_form_create(const char *type, const struct http_form_events *events);
/* 0; -EBADMSG for what is no form; -ECANCELED where an event ended it; -ENOMEM. */
int http_form_feed(struct http_form *f, const char *data, size_t len);
/* True when its end was seen. */
bool http_form_is_whole(const struct http_form *f);
/* NULL is fine. */
void http_form_destroy(struct http_form *f);

#endif
