/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http.h"

#include "api/daemon/http_internal.h"
#include "api/daemon/http_match.h"
#include "api/daemon/listener.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_SECONDS      60u
#define CONNECTIONS_MAX   1100u
#define CONNECTION_MEMORY (32u * 1024u)
#define THREAD_STACK      (512u * 1024u)
#define FAREWELL_SECONDS  2

struct http_server {
    struct http_config config;
    struct MHD_Daemon *daemon;
    struct listener listener;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned exchanges; /* under the lock: requests that are not answered to their end */
};

/* Finds the route, or replies 400, 404 or 405. */
static void find_route(struct http_exchange *x, const char *method)
{
    size_t used = 0;
    int r = -ENOENT;

    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (const struct http_route *route = x->config->routes; route->method; route++) {
        r = http_match_path(route->path, x->target, x->request.params);
        if (r == -ENOMEM)
            break;
        if (r < 0)
            continue;
        if (strcmp(route->method, method) == 0) {
            x->route = route;
            break;
        }
        http_match_free(x->request.params, HTTP_PARAMS_MAX);
        if (used + strlen(route->method) + 3 < sizeof(x->allow))
            used += (size_t)snprintf(x->allow + used, sizeof(x->allow) - used, "%s%s",
                                     used ? ", " : "", route->method);
    }
    if (x->route)
        r = http_match_query(x->target, x->route->query, x->request.query);
    if (r == -ENOMEM)
        http_reply_error(&x->reply, 500, "internal_error", "out of memory");
    else if (r == -EINVAL)
        http_reply_error(&x->reply, 400, "bad_request", "the query cannot be decoded");
    else if (!x->route && used > 0)
        http_reply_error(&x->reply, 405, "method_not_allowed", "%.16s is not allowed here: %s",
                         method, x->allow);
    else if (!x->route)
        http_reply_error(&x->reply, 404, "not_found", "there is nothing at %.200s", x->target);
}

/* Calls the handler; it may take as long as an execution takes. */
static void handle(struct http_exchange *x)
{
    /* The idle clock stands still meanwhile, and starts anew when it is set again. */
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    http_body_end(x);
    if (x->reply.status == 0)
        x->route->handle(x->config->ctx, &x->request, &x->reply);
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
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
    x->connection = connection;
    x->reply = http_reply_init();
    return x;
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
    (void)version;
    if (!x)
        return MHD_NO;
    if (!x->begun) {
        const char *accept = http_header(x, MHD_HTTP_HEADER_ACCEPT);

        x->begun = true;
        x->request.wants_events = accept && strstr(accept, "text/event-stream");
        find_route(x, method);
        if (x->route && x->reply.status == 0)
            http_auth_check(x);
        if (x->route)
            http_body_begin(x);
        keep = http_body_refused(x) ? http_reply_send(x) : true;
    } else if (*size > 0) {
        keep = http_body_take(x, data, *size);
        *size = 0;
    } else {
        handle(x);
        keep = http_reply_send(x);
    }
    return keep ? MHD_YES : MHD_NO;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct http_exchange *x = *slot;

    (void)ctx;
    (void)connection;
    (void)code;
    if (!x)
        return;
    http_body_finish(x);
    http_match_free(x->request.params, HTTP_PARAMS_MAX);
    http_match_free(x->request.query, HTTP_QUERY_MAX);
    http_reply_finish(&x->reply);
    count_exchange(x->server, -1);
    free(x->target);
    free(x);
    *slot = NULL;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    pthread_condattr_t attr;
    int r;

    if (!server)
        return err_set(err, ENOMEM, "out of memory");
    server->config = *config;
    server->listener = listener_init();
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&server->idle, &attr);
    (void)pthread_condattr_destroy(&attr);
    r = listener_open(&server->listener, config->socket_path, config->socket_mode, err);
    if (r == 0) {
        server->daemon = MHD_start_daemon(
            MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
                MHD_USE_ITC,
            0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, server->listener.fd,
            MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, NULL, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK,
            MHD_OPTION_END);
        if (!server->daemon)
            r = err_set(err, EIO, "cannot start the HTTP server");
    }
    if (r < 0) {
        listener_close(&server->listener);
        free(server);
        return r;
    }
    *ret = server;
    return 0;
}

void http_quiesce(struct http_server *server)
{
    listener_unlink(&server->listener);
    server->listener.fd = MHD_quiesce_daemon(server->daemon);
}

void http_stop(struct http_server *server)
{
    struct timespec until;

    if (!server)
        return;
    /* Answers that are on their way arrive; who does not read them is not waited for. */
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FAREWELL_SECONDS;
    (void)pthread_mutex_lock(&server->lock);
    while (server->exchanges > 0 &&
           pthread_cond_timedwait(&server->idle, &server->lock, &until) != ETIMEDOUT)
        ;
    (void)pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->daemon);
    listener_close(&server->listener);
    (void)pthread_cond_destroy(&server->idle);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}
