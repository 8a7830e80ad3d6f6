/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include "api/json/json_text.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>

#define STREAM_BLOCK   (16u * 1024u)
#define CHUNK_LINE_MAX 8u /* the size of a block, and its CR LF */
#define HEAD_MAX       4096u
#define ERROR_BODY_MAX 8192u
/* Larger bodies wait for their reader on disk: a slow one costs no memory. */
#define MEMORY_BODY_MAX (256u * 1024u)

struct http_reply http_reply_init(void)
{
    return (struct http_reply){.body = buf_init(SIZE_MAX / 2), .file_fd = -1};
}

static void finish(struct http_reply *reply)
{
    buf_finish(&reply->body);
    if (reply->release)
        reply->release(reply->stream_ctx);
    fd_close(&reply->file_fd);
    *reply = http_reply_init();
}

void http_reply_empty(struct http_reply *reply, unsigned status)
{
    finish(reply);
    reply->status = status;
}

void http_reply_json(struct http_reply *reply, unsigned status, struct buf *body)
{
    finish(reply);
    reply->status = status;
    reply->content_type = "application/json";
    reply->body = *body;
    *body = buf_init(0);
}

bool http_reply_error(struct http_reply *reply, unsigned status, const char *code,
                      const char *format, ...)
{
    struct buf body = buf_init(ERROR_BODY_MAX);
    char message[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (buf_printf(&body, "{\"error\":\"%s\",\"message\":", code) < 0 ||
        json_append_cstr(&body, message) < 0 || buf_append(&body, "}\n", 2) < 0)
        buf_clear(&body);
    http_reply_json(reply, status, &body);
    return false;
}

/* Asks where a large answer may wait for its reader. */
static enum http_place hold(struct http_exchange *x, uint64_t bytes)
{
    const uint64_t more = bytes > x->held_answer ? bytes - x->held_answer : 0;
    enum http_place place = http_hold(x, HTTP_HELD_ANSWER, more, x->held_answer);

    if (place != HTTP_PLACE_NONE)
        x->held_answer += more;
    return place;
}

bool http_request_hold_answer(struct http_request *request, uint64_t bytes)
{
    struct http_exchange *x = http_exchange_of(request);

    /* In steps: one that grows asks for each. */
    bytes = (bytes + MEMORY_BODY_MAX - 1) / MEMORY_BODY_MAX * MEMORY_BODY_MAX;
    return bytes <= MEMORY_BODY_MAX || bytes <= x->held_answer ||
           hold(x, bytes) != HTTP_PLACE_NONE;
}

/* Where that fails the body stays where it is. */
static void set_aside(struct http_exchange *x)
{
    const struct http_config *config = x->config;
    struct http_reply *reply = &x->reply;
    int fd;

    if (reply->read || reply->file_fd >= 0 || reply->body.len <= MEMORY_BODY_MAX ||
        hold(x, reply->body.len) != HTTP_PLACE_DISK)
        return;
    fd = spool_open_nameless(config->tmp_fd);
    if (fd < 0 || fd_pwrite_full(fd, reply->body.data, reply->body.len, 0) < 0) {
        fd_close(&fd);
        return;
    }
    reply->file_fd = fd;
    reply->file_bytes = reply->body.len;
    buf_finish(&reply->body);
}

/* What statuses are called, and what is said of those with which what is no request is refused.
 */
static const struct status {
    unsigned status;
    const char *reason, *code, *message;
} statuses[] = {
    {200, "OK", NULL, NULL},
    {201, "Created", NULL, NULL},
    {202, "Accepted", NULL, NULL},
    {204, "No Content", NULL, NULL},
    {400, "Bad Request", "bad_request",
     "this is no HTTP/1.1 request, or it can be read in two ways, or it has no Host"},
    {401, "Unauthorized", NULL, NULL},
    {403, "Forbidden", NULL, NULL},
    {404, "Not Found", NULL, NULL},
    {405, "Method Not Allowed", NULL, NULL},
    {408, "Request Timeout", "timeout", "the request did not come in time"},
    {409, "Conflict", NULL, NULL},
    {413, "Content Too Large", "too_large", "the body is larger than anything that is taken"},
    {414, "URI Too Long", "uri_too_long", "the path and query are too long"},
    {415, "Unsupported Media Type", NULL, NULL},
    {422, "Unprocessable Content", NULL, NULL},
    {429, "Too Many Requests", NULL, NULL},
    {431, "Request Header Fields Too Large", "headers_too_large",
     "the headers are more than 16 KiB or more than 100"},
    {500, "Internal Server Error", NULL, NULL},
    {503, "Service Unavailable", "overloaded", "too many connections are at work; come again"},
    {505, "HTTP Version Not Supported", "version_not_supported",
     "only HTTP/1.x is spoken here"},
};

static const struct status *find_status(unsigned status)
{
    static const struct status unknown = {0, "Unknown", "internal_error", "an error"};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i].status == status)
            return &statuses[i];
    }
    return &unknown;
}

/* Status line and headers, but for those that say where the answer ends. */
static void write_head(struct buf *out, const struct http_reply *reply, const char *allow)
{
    const time_t now = time(NULL);
    const char *type = reply->content_type;
    char date[64] = "";
    struct tm utc;

    if (gmtime_r(&now, &utc))
        (void)strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    (void)buf_printf(out, "HTTP/1.1 %u %s\r\n%sX-Content-Type-Options: nosniff\r\n",
                     reply->status, find_status(reply->status)->reason, date);
    if (type)
        (void)buf_printf(out, "Content-Type: %s\r\n", type);
    if (reply->location[0])
        (void)buf_printf(out, "Location: %s\r\n", reply->location);
    if (reply->seen[0])
        (void)buf_printf(out, "Skillvm-Seen: %s\r\n", reply->seen);
    if (type && strcmp(type, "text/event-stream") == 0)
        (void)buf_printf(out, "Cache-Control: no-store\r\n");
    if (*allow && (reply->status == 405 || reply->status == 204))
        (void)buf_printf(out, "Allow: %s\r\n", allow);
    if (reply->status == 401)
        (void)buf_printf(out, "WWW-Authenticate: Bearer realm=\"skillvm\"\r\n");
    if (reply->retry_after_s > 0)
        (void)buf_printf(out, "Retry-After: %u\r\n", reply->retry_after_s);
    if (reply->file_name)
        (void)buf_printf(out,
                         *reply->file_name
                             ? "Content-Disposition: attachment; filename=\"%s\"\r\n"
                             : "Content-Disposition: attachment%s\r\n",
                         reply->file_name);
}

/* True when the socket takes more; false where it has not for too long. */
static bool may_go_on(const struct http_exchange *x)
{
    struct pollfd pfd = {.fd = x->conn->fd, .events = POLLOUT};

    return errno == EINTR ||
           (errno == EAGAIN && poll(&pfd, 1, (int)x->conn->conns->deadlines.send_ms) > 0);
}

static bool send_bytes(const struct http_exchange *x, const void *data, size_t len, int flags)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(x->conn->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL | flags);

        if (n < 0 && !may_go_on(x))
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool send_file(const struct http_exchange *x)
{
    off_t at = 0;

    while ((uint64_t)at < x->reply.file_bytes) {
        ssize_t n = sendfile(x->conn->fd, x->reply.file_fd, &at,
                             (size_t)(x->reply.file_bytes - (uint64_t)at));

        if (n == 0 || (n < 0 && !may_go_on(x)))
            return false;
    }
    return true;
}

/* Of known length, in chunks, or until the connection ends. */
static bool send_stream(const struct http_exchange *x, bool in_chunks)
{
    const struct http_reply *reply = &x->reply;
    char block[CHUNK_LINE_MAX + STREAM_BLOCK + 2], line[CHUNK_LINE_MAX + 1];
    char *data = block + CHUNK_LINE_MAX;
    uint64_t sent = 0;
    ssize_t n;

    while ((n = reply->read(reply->stream_ctx, data, STREAM_BLOCK)) >= 0) {
        int line_len = in_chunks ? snprintf(line, sizeof(line), "%zx\r\n", (size_t)n) : 0;

        memcpy(data - line_len, line, (size_t)line_len);
        memcpy(data + n, "\r\n", 2);
        if (n > 0 && !send_bytes(x, data - line_len,
                                 (size_t)line_len + (size_t)n + (in_chunks ? 2 : 0), 0))
            return false;
        sent += (uint64_t)n;
    }
    if (in_chunks)
        return send_bytes(x, "0\r\n\r\n", 5, 0);
    /* One that told its length and gave less has failed: nobody may take it for whole. */
    return sent == reply->stream_bytes;
}

static bool send_reply(struct http_exchange *x)
{
    const struct http_reply *reply = &x->reply;
    const bool no_body = reply->status == 204 || strcmp(x->head->method, "HEAD") == 0;
    const bool in_chunks = reply->read && reply->stream_bytes == 0 && !x->head->is_1_0;
    struct buf head = buf_init(HEAD_MAX);
    bool sent;

    write_head(&head, reply, x->allow);
    if (in_chunks)
        (void)buf_printf(&head, "Transfer-Encoding: chunked\r\n");
    else if (reply->status != 204 && (!reply->read || reply->stream_bytes > 0))
        (void)buf_printf(&head, "Content-Length: %llu\r\n",
                         (unsigned long long)(reply->read           ? reply->stream_bytes
                                              : reply->file_fd >= 0 ? reply->file_bytes
                                                                    : reply->body.len));
    sent = buf_printf(&head, x->must_close || x->head->is_last ? "Connection: close\r\n\r\n"
                                                               : "\r\n") == 0 &&
           send_bytes(x, head.data, head.len, no_body ? 0 : MSG_MORE);
    buf_finish(&head);
    if (!sent || no_body)
        return sent;
    if (reply->read)
        return send_stream(x, in_chunks);
    return reply->file_fd >= 0 ? send_file(x)
                               : send_bytes(x, reply->body.data, reply->body.len, 0);
}

bool http_reply_send(struct http_exchange *x)
{
    char location[sizeof(x->reply.location)], seen[sizeof(x->reply.seen)];
    bool sent;

    /* Where the answer finds no place, this still tells where it is. */
    memcpy(location, x->reply.location, sizeof(location));
    memcpy(seen, x->reply.seen, sizeof(seen));
    set_aside(x);
    memcpy(x->reply.location, location, sizeof(location));
    memcpy(x->reply.seen, seen, sizeof(seen));
    sent = send_reply(x);
    finish(&x->reply);
    http_release(x, HTTP_HELD_ANSWER, &x->held_answer);
    return sent;
}

void http_refusal_send(int fd, unsigned status)
{
    const struct status *why = find_status(status);
    struct http_reply reply = http_reply_init();
    struct buf out = buf_init(HEAD_MAX + ERROR_BODY_MAX);

    http_reply_error(&reply, status, why->code, "%s", why->message);
    reply.retry_after_s = status == 503;
    write_head(&out, &reply, "");
    (void)buf_printf(&out, "Content-Length: %zu\r\nConnection: close\r\n\r\n", reply.body.len);
    (void)buf_append(&out, reply.body.data, reply.body.len);
    (void)send(fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    buf_finish(&out);
    finish(&reply);
}
