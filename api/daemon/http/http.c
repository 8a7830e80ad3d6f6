/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http.h"

#include "api/daemon/http/http_internal.h"
#include "api/daemon/http/http_lobby.h"
#include "api/daemon/http/http_match.h"
#include "api/daemon/http/http_refusal.h"
#include "api/daemon/http/listener.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_MEMORY (48u * 1024u) /* a head of HTTP_HEAD_MAX, taken apart, fits */
#define CONNECTIONS_SPARE 64u           /* that end while others begin */
#define THREAD_STACK      (512u * 1024u)
#define FAREWELL_SECONDS  2
#define LINGER_MS         2000u

struct http_server {
    struct http_config config;
    struct MHD_Daemon *daemon;
    struct listener listeners[HTTP_LISTENERS_MAX];
    struct http_conns conns;
    struct http_lobby *lobby;
    unsigned send_s;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned exchanges; /* under the lock: requests that are not answered to their end */
};

/* The connection whose thread this is, once it had a request. */
static _Thread_local struct http_conn *current;

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
        http_reply_error(&x->reply, 404, "not_found", "there is nothing at %.200s", x->target);
}

/* Finds the route, or replies. */
static void find_route(struct http_exchange *x, const char *method)
{
    const char *target = http_match_target(x->target);
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

/* Calls the handler; it may take as long as an execution takes. */
static void handle(struct http_exchange *x)
{
    http_conns_enter(x->conns, x->conn, HTTP_PHASE_ANSWER);
    /* The idle clock stands still meanwhile, and starts anew when it is set again. */
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    http_body_end(x);
    if (x->reply.status == 0)
        x->route->handle(x->config->ctx, &x->request, &x->reply);
    /* Before the answer: who has read it finds nothing held any more. */
    http_body_finish(x);
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    x->server->send_s);
}

static void count_exchange(struct http_server *server, int change)
{
    (void)pthread_mutex_lock(&server->lock);
    server->exchanges += (unsigned)change;
    if (server->exchanges == 0)
        (void)pthread_cond_broadcast(&server->idle);
    (void)pthread_mutex_unlock(&server->lock);
}

/* The first line is there: what this returns is what on_request finds in its slot. */
static void *on_target(void *ctx, const char *target, struct MHD_Connection *connection)
{
    struct http_server *server = ctx;
    struct http_exchange *x = calloc(1, sizeof(*x));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    current = info ? info->socket_context : NULL;
    http_conns_enter(&server->conns, current, HTTP_PHASE_HEAD);
    if (!x)
        return NULL;
    x->target = strdup(target);
    if (!x->target) {
        free(x);
        return NULL;
    }
    count_exchange(server, 1);
    x->config = &server->config;
    x->server = server;
    x->conns = &server->conns;
    x->conn = current;
    x->request.is_tcp = !current || current->is_tcp;
    x->connection = connection;
    x->reply = http_reply_init();
    return x;
}

/* Swallows what a peer still sends for a moment, so that it gets to read its answer. */
static void linger(struct http_exchange *x)
{
    const uint64_t until_ns = clock_monotonic_ns() + LINGER_MS * 1000000ull;
    struct pollfd pfd = {.events = POLLIN};
    char block[4096];
    ssize_t n = 1;

    if (!x->conn)
        return;
    http_conns_enter(x->conns, x->conn, HTTP_PHASE_UNWANTED);
    pfd.fd = x->conn->fd;
    (void)shutdown(pfd.fd, SHUT_WR);
    while (n > 0 && clock_monotonic_ns() < until_ns &&
           poll(&pfd, 1, clock_timeout_ms(until_ns)) > 0)
        n = recv(pfd.fd, block, sizeof(block), MSG_DONTWAIT);
}

/* Sends the reply. Who takes it slowly and is nobody we know keeps nobody else out by that. */
static bool answer(struct http_exchange *x)
{
    http_conns_enter(x->conns, x->conn, x->is_known ? HTTP_PHASE_ANSWER : HTTP_PHASE_PUBLIC);
    return http_reply_send(x);
}

/* The headers are there. False: the connection has to be closed. */
static bool begin(struct http_exchange *x, const char *method, const char *version)
{
    bool refused;

    x->begun = true;
    http_framing_check(x, version);
    if (x->reply.status == 0)
        find_route(x, method);
    if (x->route && x->reply.status == 0)
        http_auth_check(x);
    if (x->route)
        http_body_begin(x);
    refused = http_body_refused(x) || x->must_close;
    x->early = refused;
    x->draining = x->reply.status != 0 || x->route->body == HTTP_BODY_NONE;
    if (refused)
        return answer(x);
    http_conns_enter(x->conns, x->conn, x->draining ? HTTP_PHASE_UNWANTED : HTTP_PHASE_BODY);
    return true;
}

/* More of the body. False: the connection has to be closed. */
static bool take(struct http_exchange *x, const char *data, size_t size)
{
    bool keep = http_body_take(x, data, size);

    http_conns_progress(x->conns, x->conn, size);
    if (x->reply.status != 0 && !x->draining) {
        x->draining = true;
        http_conns_enter(x->conns, x->conn, HTTP_PHASE_UNWANTED);
    }
    if (!keep && x->conn) {
        http_refusal_send(x->conn->fd, 413);
        linger(x);
    }
    return keep;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *size, void **slot)
{
    struct http_exchange *x = *slot;
    bool keep;

    (void)ctx;
    (void)connection;
    (void)path;
    if (!x)
        return MHD_NO;
    if (!x->begun) {
        keep = begin(x, method, version);
    } else if (*size > 0) {
        keep = take(x, data, *size);
        *size = 0;
    } else {
        handle(x);
        keep = answer(x);
    }
    return keep ? MHD_YES : MHD_NO;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct http_exchange *x = *slot;

    (void)ctx;
    (void)connection;
    if (!x)
        return;
    if (x->early && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        linger(x);
    http_body_finish(x);
    http_match_free(x->request.params, HTTP_PARAMS_MAX);
    http_match_free(x->request.query, HTTP_QUERY_MAX);
    http_reply_finish(&x->reply);
    http_reply_release(x);
    http_conns_enter(x->conns, x->conn, HTTP_PHASE_IDLE);
    count_exchange(x->server, -1);
    free(x->target);
    free(x);
    *slot = NULL;
}

/* A connection has its thread, or is about to be closed. */
static void on_connection(void *ctx, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = info ? http_conns_passed(&server->conns, info->connect_fd) : NULL;
        http_conns_enter(&server->conns, *slot, HTTP_PHASE_IDLE);
    } else if (*slot) {
        http_conns_remove(&server->conns, *slot);
        *slot = NULL;
        http_lobby_wake(server->lobby);
    }
}

static bool pass(void *ctx, int fd, const struct sockaddr *peer, socklen_t len)
{
    struct http_server *server = ctx;

    return MHD_add_connection(server->daemon, fd, peer, len) == MHD_YES;
}

/*
 * The library says what it is about to answer by itself, in the connection's thread, before it
 * does: where that is a page for people, JSON goes out instead, and nothing after it.
 */
__attribute__((format(printf, 2, 0))) static void on_log(void *ctx, const char *format,
                                                         va_list args)
{
    static const char refused[] = "Error processing request (HTTP response code is %u";
    char text[512];
    int len;

    (void)ctx;
    if (current && strncmp(format, refused, sizeof(refused) - 1) == 0) {
        va_list copy;

        va_copy(copy, args);
        http_refusal_send(current->fd, va_arg(copy, unsigned));
        va_end(copy);
        (void)shutdown(current->fd, SHUT_WR);
    }
    len = vsnprintf(text, sizeof(text), format, args);
    if (len > 0 && text[strlen(text) - 1] == '\n')
        text[strlen(text) - 1] = '\0';
    log_debug("http", "message=\"%s\"", text);
}

/*
 * The library found itself in a state that cannot be. It must not go on; where that is one
 * connection's thread, that thread is all that stops.
 */
static void on_panic(void *ctx, const char *file, unsigned line, const char *reason)
{
    (void)ctx;
    log_error("http", "panic=\"%s\" at=%s:%u", reason ? reason : "", file, line);
    while (current)
        (void)pause();
    abort();
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

static int start_library(struct http_server *server, struct err *err)
{
    MHD_set_panic_func(on_panic, NULL);
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_CONNECTION_TIMEOUT, server->send_s, MHD_OPTION_CONNECTION_LIMIT,
        server->conns.max + CONNECTIONS_SPARE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    return server->daemon ? 0 : err_set(err, EIO, "cannot start the HTTP server");
}

static int start_lobby(struct http_server *server, struct err *err)
{
    const struct http_lobby_config lobby = {.listeners = server->listeners,
                                            .n_listeners = server->config.n_listeners,
                                            .conns = &server->conns,
                                            .pass = pass,
                                            .ctx = server};

    return http_lobby_start(&lobby, &server->lobby, err);
}

/* Whatever of it was started. */
static void destroy(struct http_server *server)
{
    http_lobby_stop(server->lobby);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    http_lobby_destroy(server->lobby);
    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
        listener_close(&server->listeners[i]);
    http_conns_finish(&server->conns);
    (void)pthread_cond_destroy(&server->idle);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}

/* Connections leave half of the descriptors to what is done for them. */
static unsigned bound_connections(unsigned wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < wanted)
        return limit.rlim_cur > 2 ? (unsigned)(limit.rlim_cur / 2) : 1;
    return wanted;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return err_set(err, ENOMEM, "out of memory");
    server->config = *config;
    (void)pthread_mutex_init(&server->lock, NULL);
    cond_init(&server->idle);
    http_conns_init(&server->conns,
                    bound_connections(config->max_connections ? config->max_connections
                                                              : HTTP_CONNECTIONS_DEFAULT),
                    &config->deadlines);
    server->send_s = (server->conns.deadlines.send_ms + 999) / 1000;
    r = open_listeners(server, err);
    if (r == 0)
        r = start_library(server, err);
    if (r == 0)
        r = start_lobby(server, err);
    if (r < 0) {
        destroy(server);
        return r;
    }
    *ret = server;
    return 0;
}

void http_quiesce(struct http_server *server)
{
    http_lobby_quiesce(server->lobby);
}

void http_stop(struct http_server *server)
{
    uint64_t deadline_ns = clock_monotonic_ns() + FAREWELL_SECONDS * 1000000000ull;

    if (!server)
        return;
    /* Answers that are on their way arrive; who does not read them is not waited for. */
    (void)pthread_mutex_lock(&server->lock);
    while (server->exchanges > 0 && cond_wait_until(&server->idle, &server->lock, deadline_ns))
        ;
    (void)pthread_mutex_unlock(&server->lock);
    destroy(server);
}
