/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mcp_script.h"

#include "tests/unit/cmocka_all.h"

#include "base/buf.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGES_MAX 16
#define LINES_MAX 512

static struct {
    struct mcp_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        char path[256], type[64];
        int status;
        unsigned n_given;
        struct buf body;
    } pages[PAGES_MAX];
    struct {
        char name[64];
        int status;
        const char *events;
        bool hold;
    } tools[PAGES_MAX];
    char *lines[LINES_MAX];
    size_t n_lines, taken;
    char deleted[64][128];
    size_t n_deleted;
    char call[4096];
    bool released;
} script = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_line(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    pthread_mutex_lock(&script.lock);
    if (script.n_lines < LINES_MAX)
        script.lines[script.n_lines++] = strndup(line, len);
    pthread_cond_broadcast(&script.changed);
    pthread_mutex_unlock(&script.lock);
}

static int refuse(struct skillvm_error *error, int status, const char *code,
                  const char *message)
{
    error->code = EREMOTEIO;
    error->http_status = status;
    snprintf(error->name, sizeof(error->name), "%s", code);
    snprintf(error->message, sizeof(error->message), "%s", message);
    return -EREMOTEIO;
}

static int give_page(const struct skillvm_request *request, struct skillvm_error *error)
{
    struct buf body = buf_init(64u << 20);
    char type[64] = "";
    int status = 404, r = 0;

    pthread_mutex_lock(&script.lock);
    for (size_t i = 0; i < PAGES_MAX; i++) {
        if (strcmp(script.pages[i].path, request->path) != 0)
            continue;
        script.pages[i].n_given++;
        status = script.pages[i].status;
        snprintf(type, sizeof(type), "%s", script.pages[i].type);
        (void)buf_append(&body, script.pages[i].body.data, script.pages[i].body.len);
    }
    pthread_mutex_unlock(&script.lock);
    if (status != 200)
        r = refuse(error, status, status == 404 ? "not_found" : "other", "no such thing");
    else if (body.len > 0)
        r = request->on_body(request->ctx, type, body.data, body.len);
    buf_finish(&body);
    return r;
}

static int give_events(const struct skillvm_request *request, const char *events)
{
    int r = 0;

    while (r == 0 && *events) {
        const char *space = strchr(events, ' '), *end = strchr(events, '\n');
        char name[32];

        snprintf(name, sizeof(name), "%.*s", (int)(space - events), events);
        r = request->on_event(request->ctx, name, space + 1, (size_t)(end - space - 1));
        events = end + 1;
    }
    return r;
}

static int call_tool(const struct skillvm_request *request, struct skillvm_error *error)
{
    const char *events = NULL;
    int status = 404, r;
    bool hold = false;

    pthread_mutex_lock(&script.lock);
    snprintf(script.call, sizeof(script.call), "%s", request->json);
    for (size_t i = 0; i < PAGES_MAX; i++) {
        char part[80];
        snprintf(part, sizeof(part), "{\"name\":\"%s\"", script.tools[i].name);
        if (!script.tools[i].name[0] || strncmp(request->json, part, strlen(part)) != 0)
            continue;
        status = script.tools[i].status;
        events = script.tools[i].events;
        hold = script.tools[i].hold;
    }
    pthread_mutex_unlock(&script.lock);
    if (status == 0) {
        snprintf(error->message, sizeof(error->message), "no daemon listens");
        return -ECONNREFUSED;
    }
    if (status == 429)
        error->retry_after_s = 3;
    if (status != 200)
        return refuse(error, status, "code", events ? events : "there is no such tool");

    const char *rest = hold ? strstr(events, "result ") : events;
    if (hold) {
        char *first = strndup(events, rest ? (size_t)(rest - events) : strlen(events));
        r = give_events(request, first);
        free(first);
        for (bool go = false; r == 0 && !go; usleep(1000)) {
            pthread_mutex_lock(&script.lock);
            go = script.released;
            pthread_mutex_unlock(&script.lock);
            if (request->should_stop(request->ctx))
                return -EINTR;
        }
        if (r < 0 || !rest)
            return r;
    }
    return give_events(request, rest);
}

static int perform(void *ctx, const struct skillvm_request *request,
                   struct skillvm_error *error)
{
    (void)ctx;
    if (request->method && strcmp(request->method, "DELETE") == 0) {
        pthread_mutex_lock(&script.lock);
        snprintf(script.deleted[script.n_deleted++ % 64], 128, "%s", request->path);
        pthread_cond_broadcast(&script.changed);
        pthread_mutex_unlock(&script.lock);
        return 0;
    }
    if (request->json)
        return call_tool(request, error);
    return give_page(request, error);
}

void script_begin(unsigned watch_ms)
{
    const struct mcp_config config = {.watch_ms = watch_ms};

    script_begin_with(&config);
}

void script_begin_with(const struct mcp_config *wanted)
{
    struct mcp_config config = *wanted;

    config.perform = perform;
    config.send = on_line;
    config.progress_ms = 60000;
    config.cancel_end_ms = 5000;
    script.released = false;
    script.n_lines = script.taken = script.n_deleted = 0;
    script.call[0] = '\0';
    for (size_t i = 0; i < PAGES_MAX; i++) {
        script.pages[i].path[0] = script.tools[i].name[0] = '\0';
        script.pages[i].n_given = 0;
    }
    assert_int_equal(mcp_server_create(&config, &script.server), 0);
}

bool script_end(void)
{
    bool stopped = mcp_server_stop(script.server);

    if (stopped)
        mcp_server_free(script.server);
    for (size_t i = 0; i < script.n_lines; i++)
        free(script.lines[i]);
    for (size_t i = 0; i < PAGES_MAX; i++)
        buf_finish(&script.pages[i].body);
    return stopped;
}

void script_page(const char *path, int status, const char *type, const void *body, size_t len)
{
    size_t i = 0;

    pthread_mutex_lock(&script.lock);
    while (script.pages[i].path[0] && strcmp(script.pages[i].path, path) != 0)
        i++;
    assert_true(i < PAGES_MAX);
    snprintf(script.pages[i].path, sizeof(script.pages[i].path), "%s", path);
    snprintf(script.pages[i].type, sizeof(script.pages[i].type), "%s", type);
    script.pages[i].status = status;
    buf_finish(&script.pages[i].body);
    script.pages[i].body = buf_init(64u << 20);
    assert_int_equal(buf_append(&script.pages[i].body, body, len), 0);
    pthread_mutex_unlock(&script.lock);
}

void script_wait_given(const char *path)
{
    unsigned n = 0;

    for (int i = 0; i < 60000 && n == 0; i++) {
        usleep(1000);
        pthread_mutex_lock(&script.lock);
        for (size_t k = 0; k < PAGES_MAX; k++)
            n += strcmp(script.pages[k].path, path) == 0 ? script.pages[k].n_given : 0;
        pthread_mutex_unlock(&script.lock);
    }
    if (n == 0)
        fail_msg("nobody asks for %s", path);
}

void script_tool(const char *name, int status, const char *events, bool hold)
{
    size_t i = 0;

    pthread_mutex_lock(&script.lock);
    while (script.tools[i].name[0] && strcmp(script.tools[i].name, name) != 0)
        i++;
    assert_true(i < PAGES_MAX);
    snprintf(script.tools[i].name, sizeof(script.tools[i].name), "%s", name);
    script.tools[i].status = status;
    script.tools[i].events = events;
    script.tools[i].hold = hold;
    pthread_mutex_unlock(&script.lock);
}

void script_release(void)
{
    pthread_mutex_lock(&script.lock);
    script.released = true;
    pthread_mutex_unlock(&script.lock);
}

void script_send(const char *line)
{
    mcp_server_take(script.server, line, line ? strlen(line) : 0);
}

void script_initialize(const char *version)
{
    char line[256];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":"
             "{\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{}}}",
             version);
    script_send(line);
    script_expect("\"protocolVersion\":");
    script_send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

/* Under the lock. False when it did not come in time. */
static bool wait_for_line(unsigned ms)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    while (script.taken == script.n_lines) {
        if (pthread_cond_timedwait(&script.changed, &script.lock, &end) != 0)
            return false;
    }
    return true;
}

const char *script_next(void)
{
    pthread_mutex_lock(&script.lock);
    /* Ends what hangs: 8 MiB as text take seconds with sanitizers on a busy machine. */
    bool there = wait_for_line(60000);
    const char *line = there ? script.lines[script.taken++] : NULL;
    pthread_mutex_unlock(&script.lock);
    size_t len = line ? strlen(line) : 0;
    if (len == 0 || memchr(line, '\n', len) != line + len - 1) {
        fail_msg("no line came, or it does not end once");
        return "";
    }
    return line;
}

const char *script_expect(const char *part)
{
    const char *line = script_next();

    if (!strstr(line, part))
        fail_msg("\"%s\" is not in %s", part, line);
    return line;
}

void script_expect_nothing(void)
{
    pthread_mutex_lock(&script.lock);
    bool there = wait_for_line(100);
    const char *line = there ? script.lines[script.taken] : NULL;
    pthread_mutex_unlock(&script.lock);
    if (line)
        fail_msg("nothing was expected, but there is %s", line);
}

unsigned script_deletes(const char *path)
{
    unsigned n = 0;

    for (int i = 0; i < 60000 && n == 0; i++) {
        pthread_mutex_lock(&script.lock);
        for (size_t k = 0; k < script.n_deleted && k < 64; k++)
            n += strcmp(script.deleted[k], path) == 0;
        pthread_mutex_unlock(&script.lock);
        usleep(1000);
    }
    return n;
}

const char *script_last_call(void)
{
    return script.call;
}
