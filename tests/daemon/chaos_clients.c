/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/chaos_clients.h"

#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_S     120
#define PAUSE_MAX_US 400000u
#define SAME_KEY     8u /* requests in a row: those of them with a key share it */

enum kind {
    QUICK,
    FAILING,
    FILES,
    TIMEOUT,
    SLEEPING,
    LATER,
    CANCELLED,
    KEYED,
    RETRIED,
    N_KINDS
};

/* How a stand-in guest behaves, with what is more in the request. */
static const struct {
    const char *fake, *more;
    unsigned weight;
} kinds[N_KINDS] = {
    [QUICK] = {"exit", "", 8},
    [FAILING] = {"exit", "", 3},
    [FILES] = {"files", "", 4},
    [TIMEOUT] = {"hang", ",\"timeout\":1", 1},
    [SLEEPING] = {"sleep", "", 4},
    [LATER] = {"sleep", ",\"async\":true", 4},
    [CANCELLED] = {"ticks", ",\"async\":true,\"timeout\":600", 3},
    [KEYED] = {"sleep", "", 5},
    [RETRIED] = {"sleep", ",\"async\":true,\"retries\":5", 4},
};

static unsigned draw(struct chaos_client *p, unsigned n)
{
    return (unsigned)nrand48(p->seed) % n;
}

static enum kind draw_kind(struct chaos_client *p)
{
    unsigned sum = 0, at;

    for (size_t i = 0; i < N_KINDS; i++)
        sum += kinds[i].weight;
    at = draw(p, sum);
    for (size_t i = 0;; i++) {
        if (at < kinds[i].weight)
            return (enum kind)i;
        at -= kinds[i].weight;
    }
}

struct answer chaos_ask(const struct harness *h, const char *method, const char *path,
                        const char *json)
{
    const struct timeval limit = {.tv_sec = ANSWER_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     method, path, strlen(json), json);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", h->socket);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return (struct answer){0};
    return harness_read_answer(fd);
}

static void write_request(struct chaos_client *p, enum kind kind, unsigned at, char *out,
                          size_t size)
{
    char key[64] = "";
    unsigned data = kind == FAILING ? 3 : kind == QUICK ? 0 : draw(p, 600);
    unsigned group = at / SAME_KEY;

    /* Those of a group are one request, which several clients send at once. */
    if (kind == KEYED) {
        data = group * 37 % 600;
        snprintf(key, sizeof(key), ",\"idempotency_key\":\"k%u\"%s", group,
                 group % 2 ? ",\"async\":true" : "");
    }
    snprintf(out, size,
             "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"%s\",\"FAKE_DATA\":\"%u\"}%s%s}",
             kinds[kind].fake, data, kinds[kind].more, key);
}

/* One that is known by its id, and does not run; under a key another node may run it. */
static void note_unconfirmed(struct chaos_sent *sent, const char *body)
{
    const char *at = strstr(body, "exec_");

    if (!at || !strstr(body, "was not confirmed") || sent->is_keyed)
        return;
    snprintf(sent->id, sizeof(sent->id), "%.37s", at);
    sent->must_not_run = true;
}

/* What an answer says of an execution. */
static void note_answer(struct chaos *c, struct chaos_sent *sent, struct answer *a)
{
    cJSON *json = a->body ? cJSON_Parse(a->body) : NULL;
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(json, "execution_id"));
    const char *status = cJSON_GetStringValue(cJSON_GetObjectItem(json, "status"));

    (void)__atomic_fetch_add(&c->codes[a->status < 600 ? a->status : 599], 1, __ATOMIC_RELAXED);
    if (a->status / 100 == 2 && id) {
        sent->other_id |= sent->id[0] && strcmp(sent->id, id) != 0;
        snprintf(sent->id, sizeof(sent->id), "%s", id);
        if (a->status == 200 && status)
            snprintf(sent->status, sizeof(sent->status), "%s", status);
    }
    if (a->status == 503 && a->body)
        note_unconfirmed(sent, a->body);
    cJSON_Delete(json);
    answer_finish(a);
}

static void send_to(struct chaos_client *p, unsigned node, const char *json,
                    struct chaos_sent *sent)
{
    struct answer a = chaos_ask(&p->chaos->nodes[node], "POST", "/v1/executions", json);

    note_answer(p->chaos, sent, &a);
}

/* At any node, until one hears it; what is not ended here is when all is healed. */
static void cancel(struct chaos_client *p, const char *id)
{
    char path[80];

    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    for (unsigned tries = 0; tries < 20; tries++) {
        struct answer a = chaos_ask(&p->chaos->nodes[draw(p, CHAOS_NODES)], "DELETE", path, "");
        int status = a.status;

        answer_finish(&a);
        if (status == 202 || status == 409)
            return;
        usleep(100000);
    }
}

static void send_one(struct chaos_client *p, unsigned at)
{
    struct chaos_sent *sent = &p->chaos->sent[at];
    enum kind kind = draw_kind(p);
    unsigned node = draw(p, CHAOS_NODES), more = 1 + draw(p, 2);
    char json[512];

    sent->is_keyed = kind == KEYED;
    sent->is_retried = kind == RETRIED;
    write_request(p, kind, at, json, sizeof(json));
    send_to(p, node, json, sent);
    for (unsigned i = 0; kind == KEYED && i < more; i++)
        send_to(p, (node + 1 + draw(p, CHAOS_NODES - 1)) % CHAOS_NODES, json, sent);
    sent->is_endless = kind == CANCELLED;
    if (kind == CANCELLED && sent->id[0]) {
        usleep(draw(p, 300) * 1000);
        cancel(p, sent->id);
    }
}

static void *run(void *ctx)
{
    struct chaos_client *p = ctx;
    struct chaos *c = p->chaos;

    for (;;) {
        unsigned at = __atomic_fetch_add(&c->n, 1, __ATOMIC_RELAXED);

        if (at >= CHAOS_SENT_MAX ||
            (at >= c->wanted && __atomic_load_n(&c->may_end, __ATOMIC_RELAXED)))
            return NULL;
        send_one(p, at);
        /* Where nothing is accepted for a while not all is asked for in that. */
        if (draw(p, 2) || !c->sent[at].id[0])
            usleep(draw(p, PAUSE_MAX_US));
    }
}

void chaos_begin(struct chaos *c, unsigned seed)
{
    c->sent = calloc(CHAOS_SENT_MAX, sizeof(*c->sent));
    assert_non_null(c->sent);
    for (unsigned i = 0; i < CHAOS_CLIENTS; i++) {
        c->clients[i] = (struct chaos_client){
            .chaos = c, .seed = {(unsigned short)seed, (unsigned short)(seed >> 16), i + 1}};
        assert_int_equal(pthread_create(&c->clients[i].thread, NULL, run, &c->clients[i]), 0);
    }
}

void chaos_join(struct chaos *c)
{
    __atomic_store_n(&c->may_end, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < CHAOS_CLIENTS; i++)
        assert_int_equal(pthread_join(c->clients[i].thread, NULL), 0);
    c->n = c->n < CHAOS_SENT_MAX ? c->n : CHAOS_SENT_MAX;
}

const struct chaos_sent *chaos_find(const struct chaos *c, const char *id)
{
    for (unsigned i = 0; i < c->n; i++) {
        if (strcmp(c->sent[i].id, id) == 0)
            return &c->sent[i];
    }
    return NULL;
}

void chaos_finish(struct chaos *c)
{
    free(c->sent);
}
