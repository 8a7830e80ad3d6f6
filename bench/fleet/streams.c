/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does one thing to NATS servers, times it and prints one JSON object; what it means is for
 * others. Times of single steps are milliseconds.
 *
 *   streams publish URL STREAM REPLICAS BYTES N IN_FLIGHT
 *       messages with acknowledgement into a stream of its own; 1: one at a time
 *   streams keys URL TENANT FIRST N
 *       changes that make keys, as a node writes them
 *   streams records URL EXECUTION N
 *       records like that of an execution that is there, one each millisecond after it
 *   streams request URL OTHER N
 *       requests by way of one server to who is at another
 *   streams watch BYTES N WATCHERS URL…
 *       entries of one bucket, each to so many watchers
 *
 * A stream that it made is gone when it ends well.
 */
#include "base/clock.h"

#include <nats/nats.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX     (1u << 20)
#define WATCHERS_MAX  256u
#define WAIT_MS       60000
#define MAKE_MS       2500
#define MAKE_PAUSE_US 20000u
#define KEYS_FLIGHT   512
#define WATCH_FLIGHT  64

static char payload[BYTES_MAX];

static void need(natsStatus s, const char *what)
{
    if (s == NATS_OK)
        return;
    const char *why = nats_GetLastError(NULL);

    (void)fprintf(stderr, "streams: %s: %s\n", what, why ? why : natsStatus_GetText(s));
    exit(1);
}

static double seconds_since(uint64_t began_ns)
{
    return (double)(clock_monotonic_ns() - began_ns) / 1e9;
}

static natsConnection *connect_to(const char *url)
{
    natsConnection *connection = NULL;

    need(natsConnection_ConnectTo(&connection, url), url);
    return connection;
}

static jsCtx *stream_of(natsConnection *connection, int64_t in_flight)
{
    jsCtx *js = NULL;
    jsOptions options;

    need(jsOptions_Init(&options), "options");
    options.Wait = WAIT_MS;
    options.PublishAsync.MaxPending = in_flight;
    options.PublishAsync.StallWait = WAIT_MS;
    need(natsConnection_JetStream(&js, connection, &options), "JetStream");
    return js;
}

static void make_stream(jsCtx *js, const char *name, const char *subject, int64_t replicas,
                        int64_t per_subject)
{
    const char *subjects[] = {subject};
    uint64_t began_ns = clock_monotonic_ns();
    jsStreamConfig config;
    jsOptions options;
    jsErrCode code = 0;
    natsStatus s;

    need(jsOptions_Init(&options), "options");
    options.Wait = MAKE_MS;
    need(jsStreamConfig_Init(&config), "stream");
    config.Name = name;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Replicas = replicas;
    config.MaxMsgsPerSubject = per_subject;
    /* Servers that were just started have to elect a leader first. */
    do {
        s = js_AddStream(NULL, js, &config, &options, &code);
    } while (s != NATS_OK && seconds_since(began_ns) < WAIT_MS / 1e3 &&
             usleep(MAKE_PAUSE_US) == 0);
    need(s, "make the stream");
}

static void finish(natsConnection *connection, jsCtx *js)
{
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    nats_Close();
}

static void end_stream(jsCtx *js, const char *name)
{
    jsErrCode code = 0;

    need(js_DeleteStream(js, name, NULL, &code), "delete the stream");
}

/* Waits for all acknowledgements of what was sent; none may be an error. */
static void await_all(jsCtx *js)
{
    jsPubOptions options;
    natsMsgList failed = {0};

    need(jsPubOptions_Init(&options), "options");
    options.MaxWait = WAIT_MS;
    need(js_PublishAsyncComplete(js, &options), "acknowledgements");
    if (js_PublishAsyncGetPendingList(&failed, js) == NATS_OK && failed.Count > 0)
        need(NATS_TIMEOUT, "acknowledgements");
    natsMsgList_Destroy(&failed);
}

static void one_by_one(jsCtx *js, const char *subject, int bytes, size_t n)
{
    (void)printf("\"ms\":[");
    for (size_t i = 0; i < n; i++) {
        uint64_t began_ns = clock_monotonic_ns();
        jsErrCode code = 0;

        need(js_Publish(NULL, js, subject, payload, bytes, NULL, &code), "publish");
        (void)printf("%s%.4f", i > 0 ? "," : "", seconds_since(began_ns) * 1e3);
    }
    (void)printf("],");
}

static void publish(char **args)
{
    int64_t in_flight = strtol(args[5], NULL, 10);
    int bytes = (int)strtoul(args[3], NULL, 10);
    size_t n = strtoul(args[4], NULL, 10);
    natsConnection *connection = connect_to(args[0]);
    jsCtx *js = stream_of(connection, in_flight);
    uint64_t began_ns;

    make_stream(js, args[1], args[1], strtol(args[2], NULL, 10), -1);
    began_ns = clock_monotonic_ns();
    (void)printf("{");
    if (in_flight == 1) {
        one_by_one(js, args[1], bytes, n);
    } else {
        for (size_t i = 0; i < n; i++)
            need(js_PublishAsync(js, args[1], payload, bytes, NULL), "publish");
        await_all(js);
    }
    (void)printf("\"n\":%zu,\"seconds\":%.4f}\n", n, seconds_since(began_ns));
    end_stream(js, args[1]);
    finish(connection, js);
}

static void keys(char **args)
{
    size_t first = strtoul(args[2], NULL, 10), n = strtoul(args[3], NULL, 10), bytes = 0;
    natsConnection *connection = connect_to(args[0]);
    jsCtx *js = stream_of(connection, KEYS_FLIGHT);
    uint64_t began_ns = clock_monotonic_ns();

    for (size_t i = first; i < first + n; i++) {
        char subject[128], text[512];
        int len =
            snprintf(text, sizeof(text),
                     "{\"schema\":1,\"tenant\":\"%s\",\"digest\":\"%064zx\",\"name\":\"\","
                     "\"operator\":false,\"created_ns\":1700000000000000000,"
                     "\"revoked_ns\":0}",
                     args[1], i);

        /* As random as real ones: in no order. */
        (void)snprintf(subject, sizeof(subject), "$KV.skillvm_registry.key.key_%032llx",
                       (unsigned long long)i * 0x9e3779b97f4a7c15ull);
        need(js_PublishAsync(js, subject, text, len, NULL), "publish");
        bytes += (size_t)len;
    }
    await_all(js);
    (void)printf("{\"n\":%zu,\"seconds\":%.4f,\"bytes\":%zu}\n", n, seconds_since(began_ns),
                 bytes);
    finish(connection, js);
}

/* What is said of one for another: each place where its id is. */
static void rename_in(char *text, const char *from, const char *to)
{
    for (char *at = text; (at = strstr(at, from)); at += strlen(to))
        memcpy(at, to, strlen(to));
}

/* A number in it is a millisecond later, in place. */
static void put_later(char *text, const char *name)
{
    char *at = strstr(text, name), digits[32];
    unsigned long long ns;

    if (!at)
        return;
    at += strlen(name);
    ns = strtoull(at, NULL, 10) + 1000000;
    memcpy(at, digits, (size_t)snprintf(digits, sizeof(digits), "%llu", ns));
}

static void records(char **args)
{
    size_t n = strtoul(args[2], NULL, 10), len = strlen(args[1]);
    char *const text = payload, subject[128], id[64], before[64];
    natsConnection *connection = connect_to(args[0]);
    jsCtx *js = stream_of(connection, KEYS_FLIGHT);
    natsMsg *message = NULL;
    uint64_t began_ns;
    jsErrCode code = 0;

    (void)snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", args[1]);
    need(js_GetLastMsg(&message, js, "KV_skillvm_executions", subject, NULL, &code), subject);
    (void)snprintf(text, sizeof(payload), "%.*s", natsMsg_GetDataLength(message),
                   natsMsg_GetData(message));
    natsMsg_Destroy(message);
    (void)snprintf(before, sizeof(before), "%s", args[1]);
    began_ns = clock_monotonic_ns();
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "exec_%032llx",
                       (unsigned long long)(i + 1) * 0x9e3779b97f4a7c15ull);
        if (strlen(id) != len)
            need(NATS_INVALID_ARG, args[1]);
        rename_in(text, before, id);
        put_later(text, "\"accepted_ns\":");
        put_later(text, "\"finished_ns\":");
        memcpy(before, id, sizeof(before));
        (void)snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
        need(js_PublishAsync(js, subject, text, (int)strlen(text), NULL), "publish");
    }
    await_all(js);
    (void)printf("{\"n\":%zu,\"seconds\":%.4f,\"bytes\":%zu}\n", n, seconds_since(began_ns),
                 n * strlen(text));
    finish(connection, js);
}

static void reply(natsConnection *connection, natsSubscription *sub, natsMsg *message,
                  void *closure)
{
    (void)sub;
    (void)closure;
    (void)natsConnection_Publish(connection, natsMsg_GetReply(message), payload, 1024);
    natsMsg_Destroy(message);
}

static void request(char **args)
{
    size_t n = strtoul(args[2], NULL, 10);
    natsConnection *other = connect_to(args[1]), *connection = connect_to(args[0]);
    natsSubscription *sub = NULL;
    natsMsg *answer = NULL;
    uint64_t began_ns;

    need(natsConnection_QueueSubscribe(&sub, other, "bench.room", "room", reply, NULL),
         "subscribe");
    need(natsConnection_Flush(other), "subscribe");
    /* Until the other server has told this one of it. */
    while (natsConnection_Request(&answer, connection, "bench.room", payload, 1024, 1000) !=
           NATS_OK)
        (void)usleep(1000);
    natsMsg_Destroy(answer);
    began_ns = clock_monotonic_ns();
    (void)printf("{\"ms\":[");
    for (size_t i = 0; i < n; i++) {
        uint64_t step_ns = clock_monotonic_ns();

        need(natsConnection_Request(&answer, connection, "bench.room", payload, 1024, WAIT_MS),
             "request");
        natsMsg_Destroy(answer);
        (void)printf("%s%.4f", i > 0 ? "," : "", seconds_since(step_ns) * 1e3);
    }
    (void)printf("],\"n\":%zu,\"seconds\":%.4f}\n", n, seconds_since(began_ns));
    natsSubscription_Destroy(sub);
    natsConnection_Destroy(other);
    finish(connection, NULL);
}

static atomic_size_t arrived;

static void count(natsConnection *connection, natsSubscription *sub, natsMsg *message,
                  void *closure)
{
    (void)connection;
    (void)sub;
    (void)closure;
    atomic_fetch_add(&arrived, 1);
    natsMsg_Destroy(message);
}

struct watcher {
    natsConnection *connection;
    jsCtx *js;
    natsSubscription *sub;
};

static void watch_one(struct watcher *w, const char *url)
{
    jsSubOptions options;
    jsErrCode code = 0;

    w->connection = connect_to(url);
    w->js = stream_of(w->connection, 0);
    need(jsSubOptions_Init(&options), "options");
    options.Ordered = true;
    options.Config.DeliverPolicy = js_DeliverNew;
    need(js_Subscribe(&w->sub, w->js, "bench.entries.>", count, NULL, NULL, &options, &code),
         "watch");
}

static void watch(char **args, int n_urls)
{
    static struct watcher watchers[WATCHERS_MAX];
    int bytes = (int)strtoul(args[0], NULL, 10);
    size_t n = strtoul(args[1], NULL, 10), n_watchers = strtoul(args[2], NULL, 10);
    natsConnection *connection = connect_to(args[3]);
    jsCtx *js = stream_of(connection, WATCH_FLIGHT);
    uint64_t began_ns;

    make_stream(js, "bench_entries", "bench.entries.>", n_urls == 3 ? 3 : 1, 1);
    for (size_t i = 0; i < n_watchers && i < WATCHERS_MAX; i++)
        watch_one(&watchers[i], args[3 + i % (size_t)n_urls]);
    began_ns = clock_monotonic_ns();
    for (size_t i = 0; i < n; i++) {
        char subject[64];

        (void)snprintf(subject, sizeof(subject), "bench.entries.node%zu", i % 1000);
        need(js_PublishAsync(js, subject, payload, bytes, NULL), "publish");
    }
    await_all(js);
    while (atomic_load(&arrived) < n * n_watchers && seconds_since(began_ns) < WAIT_MS / 1e3)
        (void)usleep(1000);
    (void)printf("{\"n\":%zu,\"arrived\":%zu,\"seconds\":%.4f}\n", n, atomic_load(&arrived),
                 seconds_since(began_ns));
    for (size_t i = 0; i < n_watchers && i < WATCHERS_MAX; i++) {
        natsConnection_Close(watchers[i].connection);
        natsSubscription_Destroy(watchers[i].sub);
        jsCtx_Destroy(watchers[i].js);
        natsConnection_Destroy(watchers[i].connection);
    }
    end_stream(js, "bench_entries");
    finish(connection, js);
}

int main(int argc, char **argv)
{
    memset(payload, 'x', sizeof(payload));
    if (argc == 8 && strcmp(argv[1], "publish") == 0 && strtoul(argv[5], NULL, 10) <= BYTES_MAX)
        publish(argv + 2);
    else if (argc == 6 && strcmp(argv[1], "keys") == 0)
        keys(argv + 2);
    else if (argc == 5 && strcmp(argv[1], "records") == 0)
        records(argv + 2);
    else if (argc == 5 && strcmp(argv[1], "request") == 0)
        request(argv + 2);
    else if (argc >= 6 && strcmp(argv[1], "watch") == 0 &&
             strtoul(argv[2], NULL, 10) <= BYTES_MAX)
        watch(argv + 2, argc - 5);
    else
        return 2;
    return 0;
}
