/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http.h"

#include "api/daemon/http/http_internal.h"
#include "api/daemon/http/http_loop.h"
#include "api/daemon/http/http_match.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAREWELL_SECONDS 2

struct http_server {
    struct http_config config;
    struct listener listeners[HTTP_LISTENERS_MAX];
    struct http_conns conns;
    struct http_loop *loop;
};

static const char *target_of(const struct http_exchange *x)
{
    return x->conn->head.text + x->conn->head.target;
}

static void allow(struct http_exchange *x, const char *method)
{
    size_t used = strlen(x->allow);

    (void)snprintf(x->allow + used, sizeof(x->allow) - used, "%s%s", used ? ", " : "", method);
}

/* A path without a route for the method: whether it is there at all. */
static void reply_without_route(struct http_exchange *x, const char *method)
{
    if (x->allow[0])
        allow(x, "OPTIONS");
    if (x->allow[0] && strcmp(method, "OPTIONS") == 0)
        http_reply_empty(&x->reply, 204);
    else if (x->allow[0])
        http_reply_error(&x->reply, 405, "method_not_allowed", "%.16s is not allowed here: %s",
                         method, x->allow);
    else
        http_reply_error(&x->reply, 404, "not_found", "there is nothing at %.200s",
                         target_of(x));
}

/* Finds the route, or replies. */
static void find_route(struct http_exchange *x)
{
    const char *method = x->conn->head.text + x->conn->head.method;
    const char *target = http_match_target(target_of(x));
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    int r = 0;

    for (const struct http_route *route = x->config->routes; route->method; route++) {
        r = http_match_path(route->path, target, x->request.params);
        if (r == -ENOMEM)
            break;
        if (r < 0)
            continue;
        if (strcmp(route->method, wanted) == 0) {
            x->route = route;
            r = http_match_query(target, route->query, x->request.query);
            break;
        }
        http_match_free(x->request.params, HTTP_PARAMS_MAX);
        allow(x, route->method);
        if (strcmp(route->method, "GET") == 0)
            allow(x, "HEAD");
    }
    if (r == -ENOMEM)
        http_reply_error(&x->reply, 500, "internal_error", "out of memory");
    else if (r == -EINVAL)
        http_reply_error(&x->reply, 400, "bad_request", "the query cannot be decoded");
    else if (!x->route)
        reply_without_route(x, method);
}

/* Notes what handlers want to know of the headers. */
static void note_headers(struct http_exchange *x)
{
    const char *accept = http_header(x, "Accept"), *host = http_header(x, "Host");

    x->request.is_tcp = x->conn->is_tcp;
    x->request.wants_events = accept && strstr(accept, "text/event-stream");
    if (host && http_head_is_host(host))
        (void)snprintf(x->request.host, sizeof(x->request.host), "%s", host);
}

/* Calls the handler; it may take as long as an execution takes. */
static void handle(struct http_exchange *x)
{
    if (x->route->body == HTTP_BODY_NONE)
        http_body_drain(x);
    if (x->reply.status == 0)
        x->route->handle(x->config->ctx, &x->request, &x->reply);
}

/* From a whole head to the end of its answer. False: nothing more can be said. */
static bool answer(struct http_exchange *x)
{
    note_headers(x);
    find_route(x);
    if (x->route && x->reply.status == 0)
        http_auth_check(x);
    if (x->route)
        http_body_begin(x);
    if (x->route && x->reply.status == 0)
        handle(x);
    /* Before the answer: who has read it finds nothing held any more. */
    http_body_finish(x);
    http_body_drain(x);
    /* Who takes it slowly and is nobody we know keeps nobody else out by that. */
    if (!x->is_known)
        http_conns_enter(x->conns, x->conn, HTTP_PHASE_PUBLIC);
    return http_reply_send(x);
}

static void finish(struct http_exchange *x)
{
    http_body_finish(x);
    http_match_free(x->request.params, HTTP_PARAMS_MAX);
    http_match_free(x->request.query, HTTP_QUERY_MAX);
    http_reply_finish(&x->reply);
    http_reply_release(x);
}

/* Serves one request. True when the next one's head is there as a whole. */
static bool serve_one(struct http_server *server, struct http_conn *c)
{
    struct http_exchange x = {.config = &server->config,
                              .conns = &server->conns,
                              .conn = c,
                              .reply = http_reply_init(),
                              .at = c->head.at,
                              .framing = http_framing_init(c->head.is_chunked, c->head.length),
                              .pace = {.since_ns = clock_monotonic_ns()}};
    const bool sent = answer(&x);

    finish(&x);
    if (!sent) {
        http_conns_close(&server->conns, c);
        return false;
    }
    if (x.must_close || c->head.is_last) {
        (void)shutdown(c->fd, SHUT_WR);
        http_conns_give(&server->conns, c, HTTP_PHASE_LINGERING);
        return false;
    }
    c->in_len -= x.at;
    memmove(c->in, c->in + x.at, c->in_len);
    c->head = (struct http_head){0};
    return http_loop_look(&server->conns, c) == 0;
}

static void *serve(void *ctx)
{
    struct http_conn *c = ctx;
    struct http_server *server = c->server;

    while (serve_one(server, c))
        http_conns_take(&server->conns, c);
    return NULL;
}

static int open_listener(const struct http_listen *place, struct listener *ret, struct err *err)
{
    if (place->socket_path)
        return listener_open(ret, place->socket_path, place->socket_mode, err);
    if (place->address)
        return listener_open_tcp(ret, place->address, err);
    return listener_adopt(ret, place->fd, err);
}

static int open_listeners(struct http_server *server, struct err *err)
{
    const struct http_config *config = &server->config;
    int r = 0;

    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
        server->listeners[i] = listener_init();
    for (size_t i = 0; i < config->n_listeners; i++) {
        const struct http_listen *place = &config->listeners[i];

        if (r == 0)
            r = open_listener(place, &server->listeners[i], err);
        else if (!place->socket_path && !place->address)
            (void)close(place->fd);
    }
    return r;
}

/* Whatever of it was started. */
static void destroy(struct http_server *server)
{
    http_loop_stop(server->loop);
    http_conns_end(&server->conns);
    (void)http_conns_wait(&server->conns, UINT64_MAX);
    http_conns_finish(&server->conns);
    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
        listener_close(&server->listeners[i]);
    free(server);
}

/* Connections leave half of the descriptors to what is done for them. */
static unsigned bound_connections(unsigned wanted)
{
    struct rlimit limit;

    wanted = wanted > 0 ? wanted : HTTP_CONNECTIONS_DEFAULT;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < wanted)
        return limit.rlim_cur > 2 ? (unsigned)(limit.rlim_cur / 2) : 1;
    return wanted;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r, made;

    if (!server)
        return err_set(err, ENOMEM, "out of memory");
    server->config = *config;
    r = open_listeners(server, err);
    made = http_conns_init(&server->conns, server, bound_connections(config->max_connections),
                           &config->deadlines);
    if (r == 0 && made < 0)
        r = err_set_errno(err, -made, "cannot start the HTTP server");
    if (r == 0)
        r = http_loop_start(&server->conns, server->listeners, config->n_listeners, serve,
                            &server->loop, err);
    if (r < 0) {
        destroy(server);
        return r;
    }
    *ret = server;
    return 0;
}

void http_quiesce(struct http_server *server)
{
    http_loop_quiesce(server->loop);
}

void http_stop(struct http_server *server)
{
    if (!server)
        return;
    /* Answers that are on their way arrive; who does not read them is not waited for. */
    (void)http_conns_wait(&server->conns,
                          clock_monotonic_ns() + FAREWELL_SECONDS * 1000000000ull);
    destroy(server);
}
