/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include <microhttpd.h>
#include <string.h>

struct framing {
    unsigned lengths;
    unsigned encodings;
    unsigned hosts;
    const char *encoding;
    const char *host;
};

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct framing *f = ctx;

    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        f->lengths++;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        f->encodings++;
        f->encoding = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        f->hosts++;
        f->host = value;
    }
    return MHD_YES;
}

bool http_framing_is_host(const char *value)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789.-_:[]";
    size_t len = strspn(value, allowed);

    return len > 0 && value[len] == '\0' && len < sizeof(((struct http_request *)NULL)->host);
}

void http_framing_check(struct http_exchange *x, const char *version)
{
    const char *accept = http_header(x, MHD_HTTP_HEADER_ACCEPT);
    struct framing f = {0};

    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_header, &f);
    x->request.wants_events = accept && strstr(accept, "text/event-stream");
    if (f.host && http_framing_is_host(f.host))
        memcpy(x->request.host, f.host, strlen(f.host) + 1);
    if (f.hosts > 1 || (f.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) == 0)) {
        x->must_close = true;
        http_reply_error(&x->reply, 400, "bad_request", "a request has one Host header");
        return;
    }
    x->must_close =
        f.lengths > 1 || f.encodings > 1 || (f.encodings > 0 && f.lengths > 0) ||
        (f.encodings > 0 && (!f.encoding || strcasecmp(f.encoding, "chunked") != 0));
    if (x->must_close)
        http_reply_error(&x->reply, 400, "bad_request",
                         "where the body ends is told twice, or in a way not known here");
}
