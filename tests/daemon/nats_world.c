/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_world.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <nats/nats.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_US 20000u
#define LOOK_MS  1000  /* for an answer that is asked for again */
#define ASK_MS   30000 /* for one that is asked for once */

static uint64_t deadline(void)
{
    return clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
}

static const char *address_of(const struct nats_world *w, size_t i)
{
    return w->net ? w->net->hosts[i].address : "127.0.0.1";
}

static void server_url(const struct nats_world *w, size_t i, char *out, size_t size)
{
    snprintf(out, size, "nats://%s%s:%u", w->user ? w->user : "", address_of(w, i),
             w->servers[i].port);
}

const char *nats_urls(const struct nats_world *w, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < w->n; i++) {
        char url[128];

        server_url(w, i, url, sizeof(url));
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? " " : "", url);
    }
    return out;
}

/*
 * A connection to one server, and JetStream over it, which waits so long for an answer. NULL
 * where it does not answer now.
 */
static natsConnection *try_connect(const struct nats_world *w, size_t i, int wait_ms,
                                   jsCtx **ret_js)
{
    natsConnection *connection = NULL;
    natsOptions *options = NULL;
    char url[128];
    jsOptions js;

    server_url(w, i, url, sizeof(url));
    assert_int_equal(natsOptions_Create(&options), NATS_OK);
    natsOptions_SetURL(options, url);
    natsOptions_SetTimeout(options, 1000);
    natsOptions_SetAllowReconnect(options, false);
    natsOptions_SetIgnoreDiscoveredServers(options, true);
    if (natsConnection_Connect(&connection, options) == NATS_OK) {
        jsOptions_Init(&js);
        js.Wait = wait_ms;
        assert_int_equal(natsConnection_JetStream(ret_js, connection, &js), NATS_OK);
    }
    natsOptions_Destroy(options);
    return connection;
}

/* Whether somebody accepts at its port. */
static bool listens(const struct nats_world *w, size_t i)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(w->servers[i].port),
                                  .sin_addr.s_addr = inet_addr(address_of(w, i))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool does = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

    close(fd);
    return does;
}

static bool answers(const struct nats_world *w, size_t i)
{
    if (w->takes_nobody)
        return listens(w, i);

    jsCtx *js = NULL;
    jsAccountInfo *info = NULL;
    jsErrCode code = 0;
    natsConnection *connection = try_connect(w, i, LOOK_MS, &js);
    bool good = connection && ((w->jetstream && !*w->jetstream) ||
                               js_GetAccountInfo(&info, js, NULL, &code) == NATS_OK);

    jsAccountInfo_Destroy(info);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return good;
}

static void write_settings(const struct nats_world *w, size_t i)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%zu.conf", w->dir, i);
    f = fopen(path, "we");
    assert_non_null(f);
    /* By itself it leaves who takes nothing for ten seconds, as one may on a busy machine. */
    fprintf(f, "server_name: s%zu\nlisten: \"%s:%u\"\nwrite_deadline: \"60s\"\n%s\n", i,
            address_of(w, i), w->servers[i].port, w->more ? w->more : "");
    if (w->jetstream)
        fprintf(f, "%s\n", w->jetstream);
    else
        fprintf(f,
                "jetstream { store_dir: \"%s/%zu\", max_memory_store: 64MB, "
                "max_file_store: %s }\n",
                w->dir, i, w->file_store ? w->file_store : "16GB");
    if (w->n > 1) {
        fprintf(f, "cluster { name: test, listen: \"%s:%u\", routes: [", address_of(w, i),
                w->servers[i].route_port);
        for (size_t k = 0; k < w->n; k++)
            fprintf(f, "%s\"nats-route://%s:%u\"", k > 0 ? ", " : "", address_of(w, k),
                    w->servers[k].route_port);
        fprintf(f, " ] }\n");
    }
    assert_int_equal(fclose(f), 0);
}

static void start(struct nats_world *w, size_t i)
{
    char settings[128], log[128];

    snprintf(settings, sizeof(settings), "%s/%zu.conf", w->dir, i);
    snprintf(log, sizeof(log), "%s/%zu.log", w->dir, i);
    w->servers[i].pid = fork();
    assert_true(w->servers[i].pid >= 0);
    if (w->servers[i].pid == 0) {
        if (w->net)
            net_enter(w->net, i);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* No service manager is told of it. */
        unsetenv("NOTIFY_SOCKET");
        execlp("nats-server", "nats-server", "-c", settings, "-l", log, NULL);
        _exit(127);
    }
}

static bool has_ended(struct nats_server *s)
{
    int status;

    if (s->pid < 0 || waitpid(s->pid, &status, WNOHANG) != s->pid)
        return false;
    s->pid = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fail_msg("there is no nats-server: install the package of that name");
    return true;
}

static void end_server(struct nats_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    s->pid = -1;
}

/* False where one of them ended: somebody else has its port by now. */
static bool all_answer(struct nats_world *w)
{
    uint64_t until = deadline();

    for (size_t i = 0; i < w->n; i++) {
        while (!answers(w, i)) {
            for (size_t k = 0; k < w->n; k++) {
                if (has_ended(&w->servers[k]))
                    return false;
            }
            if (clock_monotonic_ns() > until)
                fail_msg("nats-server %zu does not answer; its log is in %s", i, w->dir);
            usleep(PAUSE_US);
        }
    }
    /* Who answered may have been somebody else, at the port of one that ended. */
    for (size_t k = 0; k < w->n; k++) {
        if (has_ended(&w->servers[k]))
            return false;
    }
    return true;
}

void nats_begin(struct nats_world *w, size_t n)
{
    w->n = n;
    for (unsigned tries = 0;; tries++) {
        snprintf(w->dir, sizeof(w->dir), "/tmp/skillvm-nats-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        for (size_t i = 0; i < n; i++) {
            w->servers[i].port = harness_find_port();
            w->servers[i].route_port = harness_find_port();
        }
        for (size_t i = 0; i < n; i++) {
            write_settings(w, i);
            start(w, i);
        }
        if (all_answer(w))
            return;
        nats_end(w);
        if (tries == 5)
            fail_msg("no nats-server finds a port");
    }
}

void nats_end(struct nats_world *w)
{
    char command[128];

    for (size_t i = 0; i < w->n; i++)
        end_server(&w->servers[i]);
    snprintf(command, sizeof(command), "rm -rf --one-file-system '%s'", w->dir);
    assert_int_equal(system(command), 0);
}

void nats_kill(struct nats_world *w, size_t server)
{
    end_server(&w->servers[server]);
}

void nats_restart(struct nats_world *w, size_t server)
{
    uint64_t until = deadline();

    start(w, server);
    while (!listens(w, server)) {
        /* Its port may be a connection's of somebody else, for a while. */
        if (has_ended(&w->servers[server]))
            start(w, server);
        if (clock_monotonic_ns() > until)
            fail_msg("nats-server %zu does not start again; its log is in %s", server, w->dir);
        usleep(PAUSE_US);
    }
}

/* A connection to whichever server answers first. */
static natsConnection *connect_some(const struct nats_world *w, int wait_ms, jsCtx **ret_js)
{
    uint64_t until = deadline();

    for (size_t i = 0; clock_monotonic_ns() < until; i = (i + 1) % w->n) {
        natsConnection *connection =
            w->servers[i].pid > 0 ? try_connect(w, i, wait_ms, ret_js) : NULL;

        if (connection)
            return connection;
        usleep(PAUSE_US);
    }
    fail_msg("no nats-server answers");
    return NULL;
}

void *nats_connect(const struct nats_world *w)
{
    jsCtx *js = NULL;
    natsConnection *connection = connect_some(w, ASK_MS, &js);

    jsCtx_Destroy(js);
    return connection;
}

size_t nats_leader(const struct nats_world *w, const char *stream)
{
    uint64_t until = deadline();
    size_t found = w->n;

    while (found == w->n) {
        jsCtx *js = NULL;
        jsStreamInfo *info = NULL;
        jsErrCode code;
        natsConnection *connection = connect_some(w, LOOK_MS, &js);

        if (js_GetStreamInfo(&info, js, stream, NULL, &code) == NATS_OK && info->Cluster &&
            info->Cluster->Leader && info->Cluster->Leader[0] == 's')
            found = strtoul(info->Cluster->Leader + 1, NULL, 10);
        jsStreamInfo_Destroy(info);
        jsCtx_Destroy(js);
        natsConnection_Destroy(connection);
        if (clock_monotonic_ns() > until)
            fail_msg("the stream %s has no leader", stream);
    }
    return found;
}

static bool replicas_are_current(jsCtx *js, const char *stream)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    int n = 0;

    if (js_GetStreamInfo(&info, js, stream, NULL, &code) == NATS_OK && info->Cluster) {
        for (int i = 0; i < info->Cluster->ReplicasLen; i++) {
            const jsPeerInfo *peer = info->Cluster->Replicas[i];

            n += peer->Current && !peer->Offline && peer->Lag == 0;
        }
    }
    n = info && n == (int)info->Config->Replicas - 1;
    jsStreamInfo_Destroy(info);
    return n;
}

void nats_wait_replicas(const struct nats_world *w, const char *stream)
{
    uint64_t until = deadline();
    bool good = false;

    while (!good) {
        jsCtx *js = NULL;
        natsConnection *connection = connect_some(w, LOOK_MS, &js);

        good = replicas_are_current(js, stream);
        jsCtx_Destroy(js);
        natsConnection_Destroy(connection);
        if (!good && clock_monotonic_ns() > until)
            fail_msg("the replicas of %s are never the same", stream);
        usleep(PAUSE_US);
    }
}

void nats_publish(const struct nats_world *w, const char *subject, const void *data, size_t len)
{
    jsCtx *js = NULL;
    jsErrCode code = 0;
    uint64_t until = deadline();
    natsConnection *connection = connect_some(w, ASK_MS, &js);
    natsStatus s;

    while ((s = js_Publish(NULL, js, subject, data, (int)len, NULL, &code)) != NATS_OK) {
        if (clock_monotonic_ns() > until)
            fail_msg("cannot publish to %s: %s, %d", subject, natsStatus_GetText(s), (int)code);
        usleep(PAUSE_US);
    }
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

void nats_tell(const struct nats_world *w, const char *subject, const void *data, size_t len)
{
    natsConnection *connection = nats_connect(w);

    assert_int_equal(natsConnection_Publish(connection, subject, data, (int)len), NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    natsConnection_Destroy(connection);
}

bool nats_call(const struct nats_world *w, const char *subject, const char *text,
               char ret_answer[256])
{
    natsMsg *answer = NULL;
    natsConnection *connection = nats_connect(w);
    bool is_answered =
        natsConnection_RequestString(&answer, connection, subject, text, ASK_MS) == NATS_OK;

    if (is_answered)
        snprintf(ret_answer, 256, "%s", natsMsg_GetData(answer));
    natsMsg_Destroy(answer);
    natsConnection_Destroy(connection);
    return is_answered;
}

static void answer_one(natsConnection *connection, natsSubscription *unused, natsMsg *asked,
                       void *answer)
{
    (void)unused;
    (void)natsConnection_PublishString(connection, natsMsg_GetReply(asked), answer);
    natsMsg_Destroy(asked);
}

struct nats_answering nats_answer(const struct nats_world *w, const char *subject, char *answer)
{
    natsSubscription *heard = NULL;
    natsConnection *connection = nats_connect(w);

    assert_int_equal(natsConnection_Subscribe(&heard, connection, subject, answer_one, answer),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    return (struct nats_answering){connection, heard};
}

void nats_answer_end(struct nats_answering *answering)
{
    natsSubscription_Destroy(answering->subscription);
    natsConnection_Destroy(answering->connection);
}

void nats_delete_bucket(const struct nats_world *w, const char *stream)
{
    jsCtx *js = NULL;
    jsErrCode code;
    natsConnection *connection = connect_some(w, ASK_MS, &js);

    assert_int_equal(js_DeleteStream(js, stream, NULL, &code), NATS_OK);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

char *nats_last(const struct nats_world *w, const char *stream, const char *subject,
                char ret_subject[256])
{
    jsCtx *js = NULL;
    jsErrCode code = 0;
    natsMsg *message = NULL;
    natsConnection *connection = connect_some(w, ASK_MS, &js);
    char *text = NULL;

    if (js_GetLastMsg(&message, js, stream, subject, NULL, &code) == NATS_OK) {
        text = strndup(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
        assert_non_null(text);
        snprintf(ret_subject, 256, "%s", natsMsg_GetSubject(message));
    }
    natsMsg_Destroy(message);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return text;
}

void nats_purge(const struct nats_world *w, const char *stream, const char *subject)
{
    jsCtx *js = NULL;
    jsErrCode code = 0;
    jsOptions options;
    natsConnection *connection = connect_some(w, ASK_MS, &js);

    jsOptions_Init(&options);
    options.Stream.Purge.Subject = subject;
    assert_int_equal(js_PurgeStream(js, stream, &options, &code), NATS_OK);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

void nats_limit(const struct nats_world *w, const char *stream, int64_t max_bytes)
{
    jsCtx *js = NULL;
    jsErrCode code = 0;
    jsStreamInfo *info = NULL;
    natsConnection *connection = connect_some(w, ASK_MS, &js);

    assert_int_equal(js_GetStreamInfo(&info, js, stream, NULL, &code), NATS_OK);
    info->Config->MaxBytes = max_bytes;
    assert_int_equal(js_UpdateStream(NULL, js, info->Config, NULL, &code), NATS_OK);
    jsStreamInfo_Destroy(info);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

static jsStreamInfo *look(const struct nats_world *w, const char *stream)
{
    jsCtx *js = NULL;
    jsErrCode code = 0;
    jsStreamInfo *info = NULL;
    natsConnection *connection = connect_some(w, ASK_MS, &js);

    assert_int_equal(js_GetStreamInfo(&info, js, stream, NULL, &code), NATS_OK);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return info;
}

uint64_t nats_count(const struct nats_world *w, const char *stream)
{
    jsStreamInfo *info = look(w, stream);
    uint64_t n = info->State.Msgs;

    jsStreamInfo_Destroy(info);
    return n;
}

int64_t nats_messages_max(const struct nats_world *w, const char *stream)
{
    jsStreamInfo *info = look(w, stream);
    int64_t n = info->Config->MaxMsgs;

    jsStreamInfo_Destroy(info);
    return n;
}

void nats_start_node(struct harness *h, const struct nats_world *w, const char *name,
                     const char *more)
{
    char config[128], urls[512], text[2048], node[80] = "";
    const char *args[] = {"--config", config, NULL};

    if (!h->dir[0])
        harness_init(h, "boot", "restore");
    snprintf(config, sizeof(config), "%.60s/skillvmd.yaml", h->dir);
    if (name)
        snprintf(node, sizeof(node), "  node: %s\n", name);
    snprintf(text, sizeof(text), "cluster:\n  servers: %s\n%s%s",
             nats_urls(w, urls, sizeof(urls)), node, more);
    harness_write(h, "skillvmd.yaml", text);
    harness_start(h, args);
}

/* Until one of two (or the one) has it, or has it no more. */
static void wait_either(const struct harness *h, const struct harness *other, const char *part,
                        bool there)
{
    uint64_t until = deadline();

    for (unsigned looks = 0;; harness_pause(looks++)) {
        struct answer a = harness_get(h, "/v1/admin/cluster");
        bool good = a.status == 200 && answer_has(&a, part) == there;

        if (!good && clock_monotonic_ns() > until)
            fail_msg("never %s%s, but %s", there ? "" : "without ", part, a.body);
        answer_finish(&a);
        if (good)
            return;
        if (other) {
            const struct harness *next = other;

            other = h;
            h = next;
        }
    }
}

void nats_wait_node(const struct harness *h, const char *part)
{
    wait_either(h, NULL, part, true);
}

void nats_wait_refused_by(const struct harness *h, const struct harness *other, const char *why,
                          const char *key)
{
    char part[320];

    snprintf(part, sizeof(part), "\"last\":\"%s at \\\"%s\\\"\"", why, key);
    wait_either(h, other, part, true);
}

void nats_wait_refused(const struct harness *h, const char *why, const char *key)
{
    nats_wait_refused_by(h, NULL, why, key);
}

void nats_wait_gone(const struct harness *h, const char *name)
{
    char part[128];

    /* Of the daemon itself it says no age. */
    for (const char *alive = "true"; alive; alive = *alive == 't' ? "false" : NULL) {
        snprintf(part, sizeof(part), "\"node\":\"%s\",\"alive\":%s", name, alive);
        wait_either(h, NULL, part, false);
    }
}

struct answer nats_ask(const struct harness *h, const char *method, const char *rest)
{
    uint64_t until = deadline();
    char path[128];

    snprintf(path, sizeof(path), "/v1/admin/cluster%s", rest);
    for (;;) {
        struct answer a = harness_request(h, method, path, "", "", 0);

        if (a.status != 503 || clock_monotonic_ns() > until)
            return a;
        answer_finish(&a);
        usleep(PAUSE_US);
    }
}

void nats_make(const struct harness *h)
{
    struct answer first = harness_request(h, "POST", "/v1/admin/cluster", "", "", 0);

    if (first.status != 503) {
        harness_expect(first, 200, "\"bucket\":\"skillvm_nodes\",\"made\":true");
        return;
    }
    /* The servers may have made it without saying so in time. */
    answer_finish(&first);
    harness_expect(nats_ask(h, "POST", ""), 200, "\"bucket\":\"skillvm_nodes\"");
}
