/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_refusal.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct refusal {
    unsigned status;
    const char *reason;
    const char *code;
    const char *message;
};

static const struct refusal refusals[] = {
    {400, "Bad Request", "bad_request", "this is no HTTP/1.1 request"},
    {408, "Request Timeout", "timeout", "the request did not come in time"},
    {413, "Content Too Large", "too_large", "the body is too large"},
    {414, "URI Too Long", "uri_too_long", "the path and query are too long"},
    {431, "Request Header Fields Too Large", "headers_too_large",
     "the headers are more than 16 KiB or more than 100"},
    {503, "Service Unavailable", "overloaded", "too many connections are at work; come again"},
    {505, "HTTP Version Not Supported", "version_not_supported",
     "only HTTP/1.x is spoken here"},
};

void http_refusal_send(int fd, unsigned status)
{
    const struct refusal *r = &refusals[0];
    char body[256], date[64] = "", text[768];
    const time_t now = time(NULL);
    struct tm utc;
    int len;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (refusals[i].status == status)
            r = &refusals[i];
    }
    if (gmtime_r(&now, &utc))
        (void)strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    (void)snprintf(body, sizeof(body), "{\"error\":\"%s\",\"message\":\"%s\"}\n", r->code,
                   r->message);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 %u %s\r\n%sContent-Type: application/json\r\n"
                   "X-Content-Type-Options: nosniff\r\nContent-Length: %zu\r\n"
                   "Connection: close\r\n%s\r\n%s",
                   r->status, r->reason, date, strlen(body),
                   r->status == 503 ? "Retry-After: 1\r\n" : "", body);
    (void)send(fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
}
