/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http.h"

#include "api/daemon/http/http_internal.h"
#include "api/daemon/http/http_loop.h"
#include "api/daemon/http/http_match.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FAREWELL_NS 2000000000ull

struct http_server {
    struct http_config config;
    struct http_conns conns;
    struct http_loop loop;
};

static void allow(struct http_exchange *x, const char *method)
{
    size_t used = strlen(x->allow);

    (void)snprintf(x->allow + used, sizeof(x->allow) - used, "%s%s", used ? ", " : "", method);
}

/* A path without a route for the method: whether it is there at all. */
static void reply_without_route(struct http_exchange *x, const char *path)
{
    const char *method = x->head->method;

    if (x->allow[0])
        allow(x, "OPTIONS");
    if (x->allow[0] && strcmp(method, "OPTIONS") == 0)
        http_reply_empty(&x->reply, 204);
    else if (x->allow[0])
        http_reply_error(&x->reply, 405, "method_not_allowed", "%.16s is not allowed here: %s",
                         method, x->allow);
    else
        http_reply_error(&x->reply, 404, "not_found", "there is nothing at %.200s", path);
}

/* The route of a path for the method, or NULL, with the methods that there are. */
static const struct http_route *match(struct http_exchange *x, char *path)
{
    const char *method = strcmp(x->head->method, "HEAD") == 0 ? "GET" : x->head->method;

    for (const struct http_route *route = x->config->routes; route->method; route++) {
        const bool fits = strcmp(route->method, method) == 0;
        int r = http_match_path(route->path, path, fits ? x->request.params : NULL);

        if (r == 0 && fits)
            return route;
        if (r == -EINVAL) {
            x->allow[0] = '\0';
            return NULL;
        }
        if (r == 0)
            allow(x, route->method);
        if (r == 0 && strcmp(route->method, "GET") == 0)
            allow(x, "HEAD");
    }
    return NULL;
}

static bool find_route(struct http_exchange *x)
{
    char *query = x->head->target;
    char *path = http_match_target(strsep(&query, "?"));

    x->route = match(x, path);
    if (!x->route)
        reply_without_route(x, path);
    else if (!http_match_query(query, x->route->query, x->request.query))
        http_reply_error(&x->reply, 400, "bad_request", "the query cannot be decoded");
    return x->reply.status == 0;
}

/* What its caller has seen at others is here, once he is known. */
static bool await_others(struct http_exchange *x)
{
    const struct http_others *others = &x->config->others;
    const char *seen = others->await ? http_head_find(x->head, "Skillvm-Seen", NULL) : NULL;

    return !seen || !x->is_known || others->await(others->ctx, seen, &x->reply);
}

/* From a whole head to the end of its answer. False: nothing more can be said. */
static bool answer(struct http_exchange *x)
{
    const char *accept = http_head_find(x->head, "Accept", NULL);

    x->request.is_tcp = x->conn->is_tcp;
    x->request.host = x->head->host;
    x->request.wants_events = accept && strstr(accept, "text/event-stream");
    if (find_route(x) && http_auth_check(x) && await_others(x) && http_body_begin(x))
        x->route->handle(x->config->ctx, &x->request, &x->reply);
    if (x->is_known && x->config->others.stamp)
        x->config->others.stamp(x->config->others.ctx, x->reply.seen);
    /* Before the answer: who has read it finds nothing held any more. */
    http_body_finish(x);
    http_body_drain(x);
    /* Who takes it slowly and is nobody we know keeps nobody else out by that. */
    if (!x->is_known)
        http_conn_enter(x->conn, HTTP_PHASE_PUBLIC);
    return http_reply_send(x);
}

/* Serves one request. True when the next one's head is there as a whole. */
static bool serve_one(struct http_conn *c)
{
    struct http_input *in = c->in;
    struct http_exchange x = {.config = c->conns->config,
                              .conn = c,
                              .head = &in->head,
                              .reply = http_reply_init(),
                              .at = in->head.at,
                              .framing = http_framing_init(&in->head),
                              .pace = {.since_ns = clock_monotonic_ns()}};
    const bool sent = answer(&x);

    if (!sent) {
        http_conn_close(c);
        return false;
    }
    if (x.must_close || in->head.is_last) {
        (void)shutdown(c->fd, SHUT_WR);
        http_conn_enter(c, HTTP_PHASE_LINGERING);
        return false;
    }
    in->len -= x.at;
    memmove(in->text, in->text + x.at, in->len);
    in->head = (struct http_head){0};
    return http_loop_look(c);
}

void *http_serve(void *conn)
{
    while (serve_one(conn))
        http_conn_enter(conn, HTTP_PHASE_WORK);
    return NULL;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return err_no_memory(err);
    server->config = *config;
    http_conns_init(&server->conns, &server->config);
    r = http_loop_start(&server->loop, &server->conns, err);
    if (r < 0)
        http_stop(server);
    else
        *ret = server;
    return r;
}

void http_quiesce(struct http_server *server)
{
    http_loop_quiesce(&server->loop);
}

void http_stop(struct http_server *server)
{
    if (!server)
        return;
    http_loop_stop(&server->loop);
    /* Answers that are on their way arrive; who does not read them is not waited for. */
    http_conns_finish(&server->conns, clock_monotonic_ns() + FAREWELL_NS);
    free(server);
}

static bool keep_body(struct http_exchange *x, const void *body, size_t len)
{
    if (len > SPOOL_MEMORY_MAX) {
        if (http_hold(x, HTTP_HELD_BODY, len, 0) == HTTP_PLACE_NONE)
            return false;
        x->held = len;
    }
    x->request.body = spool_init(x->config->tmp_fd, len);
    return spool_append(&x->request.body, body, len) == 0;
}

bool http_call(struct http_server *server, const char *tenant, const void *body, size_t len,
               http_handle_fn *handle, void *ctx)
{
    static const struct http_route route = {.body = HTTP_BODY_JSON};
    struct http_exchange *x = calloc(1, sizeof(*x));
    bool is_kept;

    if (!x)
        return false;
    x->config = &server->config;
    x->route = &route;
    x->reply = http_reply_init();
    x->request.host = "";
    (void)snprintf(x->request.caller.tenant, sizeof(x->request.caller.tenant), "%s", tenant);
    is_kept = keep_body(x, body, len);
    if (is_kept)
        handle(ctx, &x->request, &x->reply);
    http_body_finish(x);
    http_reply_empty(&x->reply, 0);
    http_release(x, HTTP_HELD_ANSWER, &x->held_answer);
    free(x);
    return is_kept;
}
