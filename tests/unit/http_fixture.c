/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/http_fixture.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MIB (1024ull * 1024ull)

static void reply_text(struct http_reply *reply, const char *a, const char *b)
{
    struct buf body = buf_init(1u << 16);

    (void)buf_printf(&body, "{\"a\":\"%s\",\"b\":\"%s\"}\n", a ? a : "", b ? b : "");
    http_reply_json(reply, 200, &body);
}

static void hello(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct buf body = buf_init(64);

    (void)ctx;
    (void)request;
    (void)buf_printf(&body, "{\"hello\":true}\n");
    http_reply_json(reply, 200, &body);
}

static void show_params(void *ctx, struct http_request *request, struct http_reply *reply)
{
    (void)ctx;
    reply_text(reply, request->params[0], request->params[1]);
}

static void show_sizes(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct spool *a;
    char first[32], second[32];
    const char *text;

    (void)ctx;
    if (!http_request_receive(request))
        return;
    a = request->is_multipart ? &request->parts[0].content : &request->body;
    if (spool_view(a, &text) < 0) {
        http_reply_error(reply, 500, "internal_error", "no view");
        return;
    }
    (void)snprintf(first, sizeof(first), "%llu", (unsigned long long)a->size);
    (void)snprintf(second, sizeof(second), "%llu",
                   (unsigned long long)request->parts[1].content.size);
    reply_text(reply, first, second);
}

struct stream {
    struct http_fixture *f;
    unsigned left; /* events; 0: no end */
};

static ssize_t read_stream(void *ctx, char *data, size_t size)
{
    static const char event[] = "event: tick\ndata: {}\n\n";
    struct stream *s = ctx;
    size_t n = 0;

    if (s->left == 1)
        return -1;
    if (s->left > 1)
        s->left--;
    while (n + sizeof(event) - 1 <= size) {
        memcpy(data + n, event, sizeof(event) - 1);
        n += sizeof(event) - 1;
        if (s->left > 0)
            break;
    }
    if (n == 0)
        n = (size_t)snprintf(data, size, "%s", ":");
    (void)atomic_fetch_add(&s->f->given, n);
    return (ssize_t)n;
}

static void release_stream(void *ctx)
{
    struct stream *s = ctx;

    (void)atomic_fetch_sub(&s->f->streams, 1);
    free(s);
}

static void stream(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct stream *s = calloc(1, sizeof(*s));

    if (!s) {
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    s->f = ctx;
    s->left = request->query[0] ? 11 : 0;
    (void)atomic_fetch_add(&s->f->streams, 1);
    reply->status = 200;
    reply->content_type = "text/event-stream";
    reply->read = read_stream;
    reply->release = release_stream;
    reply->stream_ctx = s;
}

static void large(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct buf body = buf_init(HTTP_FIXTURE_LARGE);

    (void)ctx;
    (void)request;
    if (buf_reserve(&body, HTTP_FIXTURE_LARGE) < 0) {
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    memset(body.data, ' ', HTTP_FIXTURE_LARGE);
    body.len = HTTP_FIXTURE_LARGE;
    http_reply_json(reply, 200, &body);
}

static void block(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct http_fixture *f = ctx;

    (void)request;
    (void)atomic_fetch_add(&f->blocked, 1);
    while (!atomic_load(&f->released))
        (void)usleep(2000);
    (void)atomic_fetch_sub(&f->blocked, 1);
    reply_text(reply, "released", NULL);
}

static const struct http_route routes[] = {
    {.method = "GET", .path = "/hello", .handle = hello, .access = HTTP_ACCESS_OPEN},
    {.method = "GET",
     .path = "/files/:/*",
     .handle = show_params,
     .access = HTTP_ACCESS_TENANT,
     .query = {"q"}},
    {.method = "POST",
     .path = "/json",
     .handle = show_sizes,
     .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_JSON,
     .max_bytes = MIB,
     .parts = {{"a", MIB}, {"b", MIB}}},
    {.method = "POST",
     .path = "/file",
     .handle = show_sizes,
     .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_FILE,
     .max_bytes = 64 * MIB,
     .parts = {{"file", 64 * MIB}}},
    {.method = "GET",
     .path = "/stream",
     .handle = stream,
     .access = HTTP_ACCESS_TENANT,
     .query = {"short"}},
    {.method = "GET", .path = "/large", .handle = large, .access = HTTP_ACCESS_TENANT},
    {.method = "GET", .path = "/public", .handle = large, .access = HTTP_ACCESS_OPEN},
    {.method = "GET", .path = "/block", .handle = block, .access = HTTP_ACCESS_TENANT},
    {.method = NULL},
};

static int authorize(void *ctx, const struct http_origin *origin, const char *bearer,
                     struct caller *ret)
{
    (void)ctx;
    (void)origin;
    if (bearer && !*bearer)
        return -EACCES;
    *ret = (struct caller){.is_operator = !bearer};
    (void)snprintf(ret->tenant, sizeof(ret->tenant), "%.30s", bearer ? bearer : TENANT_DEFAULT);
    return 0;
}

static int listen_tcp(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        abort();
    *ret_port = ntohs(address.sin_port);
    return fd;
}

void http_fixture_start(struct http_fixture *f, const struct http_deadlines *deadlines,
                        unsigned max_connections)
{
    struct http_config config = {
        .n_listeners = 2,
        .max_connections = max_connections,
        .deadlines = *deadlines,
        .routes = routes,
        .authorize = authorize,
        .ctx = f,
    };
    struct err err = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    *f = (struct http_fixture){.tmp_fd = -1, .listen_fd = -1};
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-http.XXXXXX");
    if (!mkdtemp(f->dir))
        abort();
    (void)snprintf(f->socket, sizeof(f->socket), "%s/sock", f->dir);
    f->tmp_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    config.tmp_fd = f->tmp_fd;
    config.listeners[0] =
        (struct http_listen){.socket_path = f->socket, .socket_mode = 0600, .fd = -1};
    f->listen_fd = listen_tcp(&f->port);
    config.listeners[1].fd = dup(f->listen_fd);
    if (http_start(&config, &f->server, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

void http_fixture_stop(struct http_fixture *f)
{
    atomic_store(&f->released, true);
    http_quiesce(f->server);
    http_stop(f->server);
    fd_close(&f->listen_fd);
    fd_close(&f->tmp_fd);
    (void)rmdir(f->dir);
}

int http_fixture_connect(const struct http_fixture *f, bool tcp)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(f->port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r;

    if (fd < 0)
        return -1;
    (void)snprintf(name.sun_path, sizeof(name.sun_path), "%s", f->socket);
    r = tcp ? connect(fd, (struct sockaddr *)&address, sizeof(address))
            : connect(fd, (struct sockaddr *)&name, sizeof(name));
    if (r < 0)
        fd_close(&fd);
    return fd;
}
