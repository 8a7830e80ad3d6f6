/* SPDX-License-Identifier: Apache-2.0 */
/* What runs at one node is read at another as it is there, and by nobody else. */
#include <nats/nats.h>

#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/buf.h"
#include "base/fd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define expect harness_expect

#define LINES       "limits:\n  max_running: 4\n"
#define ONE_SLOT    "limits:\n  max_running: 1\n"
#define WAITS       "\"wait_ms\":1000,"
#define STREAMS     80u
#define OF_TENANT   64u /* that are asked for at once */
#define FAKE(how)   "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define LONG        "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}"
#define RUNNING     "\"status\":\"running\""
#define LIVE_OF_A   "skillvm.live.a"
#define ANSWER_MS   10000
#define IMAGE       "\"image\":"
#define IMAGE_WHY   "\"image_reason\":"
#define OTHER_ID    "ten_0123456789abcdef0123456789abcdef"
#define NO_SUCH_ONE 404, "no execution"

struct world {
    struct nats_world nats;
    struct harness a, b;
    natsConnection *connection;
    char id[38]; /* of one that runs at a */
};

static void begin(struct world *w)
{
    nodes_begin_two(&w->nats, &w->a, LINES, &w->b, LINES);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    w->connection = nats_connect(&w->nats);
    nodes_submit(&w->a, LONG, w->id);
    nodes_wait(&w->b, nodes_path_of(w->id), 200, RUNNING);
}

static void end(struct world *w)
{
    nodes_cancel(&w->a, w->id);
    natsConnection_Destroy(w->connection);
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static const char *path_of(const char *id, const char *what)
{
    static char path[96];

    snprintf(path, sizeof(path), "/v1/executions/%s%s", id, what);
    return path;
}

/* What one node says of a member another says too, once the first has answered it in time. */
static void expect_same(const struct world *w, const char *name)
{
    struct answer here = harness_get(&w->a, nodes_path_of(w->id));
    char *part = strstr(here.body, name);

    assert_non_null(part);
    part[strcspn(part, ",}")] = '\0';
    nodes_wait(&w->b, nodes_path_of(w->id), 200, part);
    answer_finish(&here);
}

/* All that one node gave of a log, another gives after it: the same. */
static void expect_same_log(const struct world *w, const char *id, size_t least)
{
    struct answer here = harness_get(&w->a, path_of(id, "/logs"));
    size_t got = 0;

    assert_true(here.len >= least);
    for (unsigned i = 0; got < here.len; i++) {
        struct answer there = harness_get(&w->b, path_of(id, "/logs"));

        /* A part, or nothing, where its node did not answer in time. */
        got = there.len;
        assert_memory_equal(here.body, there.body, got < here.len ? got : here.len);
        assert_true(got >= here.len || i < NATS_WAIT_S * 20);
        answer_finish(&there);
        usleep(50000);
    }
    answer_finish(&here);
}

static void what_runs_elsewhere_is_read_as_it_is(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    expect_same(&w, IMAGE);
    expect_same(&w, IMAGE_WHY);
    nodes_wait(&w.b, path_of(w.id, "/logs"), 200, "tick 3");
    expect_same_log(&w, w.id, 1);
    end(&w);
}

/* A log that takes many answers. */
static void a_long_log_is_read_whole(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin(&w);
    nodes_submit(&w.a, "{" FAKE("chatty") ",\"timeout\":600,\"async\":true}", id);
    nodes_wait(&w.a, path_of(id, "/logs"), 200, "that is all");
    nodes_wait(&w.b, path_of(id, "/logs"), 200, "that is all");
    expect_same_log(&w, id, 300001);
    nodes_wait(&w.b, nodes_path_of(id), 200, RUNNING);
    nodes_cancel(&w.b, id);
    end(&w);
}

/* What asks a for the execution as of a tenant, and what it says. */
static natsMsg *ask_a(const struct world *w, const char *tenant)
{
    natsMsg *answer = NULL;
    char text[256];

    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"%s\",\"id\":\"%s\",\"log_at\":0,\"wait_ms\":0,"
             "\"begun\":false}",
             tenant, w->id);
    assert_int_equal(
        natsConnection_RequestString(&answer, w->connection, LIVE_OF_A, text, ANSWER_MS),
        NATS_OK);
    return answer;
}

static void expect_answer(const struct world *w, const char *tenant, const char *part,
                          bool has_log)
{
    natsMsg *answer = ask_a(w, tenant);
    const char *data = natsMsg_GetData(answer);
    size_t len = (size_t)natsMsg_GetDataLength(answer);

    if (!memmem(data, len, part, strlen(part)))
        fail_msg("%s is not in %.*s", part, (int)len, data);
    assert_true((memmem(data, len, "tick", 4) != NULL) == has_log);
    natsMsg_Destroy(answer);
}

static void another_tenant_reads_nothing_and_nobody_is_asked(void **state)
{
    static const char *const what[] = {"", "/logs", "/events"};
    struct world w = {0};
    char key[80], key_id[64], headers[200];
    natsSubscription *asked = NULL;
    natsMsg *first = NULL;

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "other");
    nodes_key(&w.a, "other", key, key_id);
    nodes_wait_key(&w.b, key, 200);
    nodes_wait(&w.b, path_of(w.id, "/logs"), 200, "tick");
    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", key);
    assert_int_equal(natsConnection_SubscribeSync(&asked, w.connection, "skillvm.live.>"),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(w.connection), NATS_OK);
    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++)
        expect(harness_request(&w.b, "GET", path_of(w.id, what[i]), headers, "", 0),
               NO_SUCH_ONE);
    /* The first question is that of who may ask, which comes after these. */
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    assert_int_equal(natsSubscription_NextMsg(&first, asked, ANSWER_MS), NATS_OK);
    assert_non_null(strstr(natsMsg_GetData(first), "\"tenant\":\"default\""));
    natsMsg_Destroy(first);
    natsSubscription_Destroy(asked);
    /* Nor does its node say anything of it to who asks as another. */
    expect_answer(&w, "default", "\"state\":\"runs\"", true);
    expect_answer(&w, OTHER_ID, "\"state\":\"none\"", false);
    end(&w);
}

static void nonsense(natsConnection *connection, natsSubscription *sub, natsMsg *message,
                     void *closure)
{
    static const char text[] = "{\"schema\":1,\"state\":\"runs\",\"image\":\"\","
                               "\"image_reason\":\"\"}\n\xff\xff\xff\x7fmuch";

    (void)sub;
    (void)closure;
    (void)natsConnection_Publish(connection, natsMsg_GetReply(message), text,
                                 (int)sizeof(text) - 1);
    natsMsg_Destroy(message);
}

/* Who does not answer, or not so that it can be read, is as one who is not there. */
static void what_cannot_be_read_is_no_answer(void **state)
{
    static const char *const asked[] = {"", "{}", "{\"schema\":2}", "\xff"};
    struct world w = {0};
    natsSubscription *sub = NULL;

    (void)state;
    begin(&w);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        nats_tell(&w.nats, LIVE_OF_A, asked[i], strlen(asked[i]));
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    harness_freeze(w.a.pid);
    expect(harness_get(&w.b, nodes_path_of(w.id)), 200, "\"status\":\"accepted\"");
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    /* Somebody is quicker than a. */
    harness_freeze(w.a.pid);
    assert_int_equal(natsConnection_Subscribe(&sub, w.connection, LIVE_OF_A, nonsense, NULL),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(w.connection), NATS_OK);
    expect(harness_get(&w.b, nodes_path_of(w.id)), 200, "\"status\":\"accepted\"");
    expect(harness_get(&w.b, path_of(w.id, "/logs")), 200, "");
    assert_int_equal(natsSubscription_Unsubscribe(sub), NATS_OK);
    natsSubscription_Destroy(sub);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    end(&w);
}

/* Somebody who reads the events of an execution at a node. */
struct stream {
    int fd;
    struct buf seen;
};

static struct stream open_stream(const struct harness *h, const char *id)
{
    struct stream s = {.fd = harness_connect(h), .seen = buf_init(SIZE_MAX / 2)};
    struct timeval limit = {.tv_sec = NATS_WAIT_S};
    char head[256];

    assert_true(s.fd >= 0);
    assert_int_equal(setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    snprintf(head, sizeof(head), "GET %s HTTP/1.0\r\nHost: x\r\n\r\n", path_of(id, "/events"));
    assert_int_equal(fd_write_full(s.fd, head, strlen(head)), 0);
    return s;
}

/* False at its end. */
static bool read_some(struct stream *s)
{
    char block[65536];
    ssize_t n = read(s->fd, block, sizeof(block));

    if (n < 0)
        fail_msg("nothing comes any more after %s", buf_cstr(&s->seen));
    assert_int_equal(buf_append(&s->seen, block, (size_t)n), 0);
    return n > 0;
}

static void read_until(struct stream *s, const char *part)
{
    while (!strstr(buf_cstr(&s->seen), part)) {
        if (!read_some(s))
            fail_msg("%s is not in %s", part, buf_cstr(&s->seen));
    }
}

static void close_stream(struct stream *s)
{
    buf_finish(&s->seen);
    fd_close(&s->fd);
}

/* Takes it as an answer, once it has ended. */
static struct answer finish_stream(struct stream *s)
{
    struct answer a = {0};
    const char *at;

    while (read_some(s))
        ;
    at = strstr(buf_cstr(&s->seen), "\r\n\r\n");
    assert_non_null(at);
    a.body = strdup(at + 4);
    a.len = strlen(a.body);
    close_stream(s);
    return a;
}

/* What all events of a stream gave together, as JSON writes it. */
static char *text_of(const struct answer *a, const char *stream)
{
    struct buf text = buf_init(SIZE_MAX / 2);
    char begin[64];

    snprintf(begin, sizeof(begin), "event: %s\ndata: {\"data\":\"", stream);
    for (const char *at = strstr(a->body, begin); at; at = strstr(at, begin)) {
        at += strlen(begin);
        assert_int_equal(buf_append(&text, at, (size_t)(strstr(at, "\"}\n\n") - at)), 0);
    }
    assert_non_null(buf_cstr(&text));
    return (char *)text.data;
}

static void expect_same_text(const struct answer *one, const struct answer *other,
                             const char *stream)
{
    char *here = text_of(one, stream), *there = text_of(other, stream);

    if (strcmp(here, there) != 0)
        fail_msg("%s: %zu bytes, and %zu at another node", stream, strlen(here), strlen(there));
    free(here);
    free(there);
}

static void expect_status(const struct answer *a, const char *id, const char *status)
{
    char event[128];

    snprintf(event, sizeof(event),
             "event: status\ndata: {\"execution_id\":\"%s\",\"status\":\"%s\"}\n\n", id,
             status);
    assert_non_null(strstr(a->body, event));
}

/* Every tick once, from the first on. */
static void expect_ticks(const struct answer *a, unsigned least)
{
    char *text = text_of(a, "stdout");
    const char *at = text;
    unsigned n = 0;

    for (char tick[32]; *at; n++) {
        snprintf(tick, sizeof(tick), "tick %u\\n", n);
        if (strncmp(at, tick, strlen(tick)) != 0)
            fail_msg("%s is not what follows: %s", tick, at);
        at += strlen(tick);
    }
    assert_true(n >= least);
    free(text);
}

/* To the last byte, and while it runs. */
static void events_come_to_every_node(void **state)
{
    struct world w = {0};
    struct stream at_a, at_b, late;
    struct answer here, there, again;
    char id[38];

    (void)state;
    begin(&w);
    nodes_submit(&w.a, "{" FAKE("chatty") ",\"timeout\":600,\"async\":true}", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, RUNNING);
    at_a = open_stream(&w.a, id);
    at_b = open_stream(&w.b, id);
    read_until(&at_a, "tick 2");
    read_until(&at_b, "tick 2");
    late = open_stream(&w.b, id);
    read_until(&late, "tick 3");
    assert_null(strstr(buf_cstr(&at_b.seen), "event: result"));
    nodes_cancel(&w.b, id);
    here = finish_stream(&at_a);
    there = finish_stream(&at_b);
    again = finish_stream(&late);
    expect_status(&there, id, "accepted");
    expect_status(&there, id, "running");
    expect_same_text(&here, &there, "stdout");
    expect_same_text(&here, &there, "stderr");
    expect_same_text(&here, &again, "stdout");
    assert_non_null(strstr(here.body, "event: result"));
    assert_string_equal(strstr(here.body, "event: result"),
                        strstr(there.body, "event: result"));
    assert_null(strstr(there.body, "\\ufffd"));
    answer_finish(&here);
    answer_finish(&there);
    answer_finish(&again);
    end(&w);
}

/* Where nothing happens it is said that nothing does. */
static void a_silent_one_has_a_heartbeat(void **state)
{
    struct world w = {0};
    struct stream s;
    char id[38];

    (void)state;
    begin(&w);
    nodes_submit(&w.a, "{" FAKE("hang") ",\"timeout\":600,\"async\":true}", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, RUNNING);
    s = open_stream(&w.b, id);
    read_until(&s, "\"status\":\"running\"}\n\n:\n\n");
    close_stream(&s);
    nodes_cancel(&w.a, id);
    end(&w);
}

/* What a stopped node says comes when it goes on. One that is lost says nothing more. */
static void a_stream_outlives_its_node(void **state)
{
    struct world w = {0};
    struct stream s;
    struct answer a;

    (void)state;
    begin(&w);
    s = open_stream(&w.b, w.id);
    read_until(&s, "tick 1");
    harness_freeze(w.a.pid);
    expect(harness_get(&w.b, nodes_path_of(w.id)), 200, "\"status\":\"accepted\"");
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    read_until(&s, "tick 80");
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    a = finish_stream(&s);
    expect_ticks(&a, 80);
    assert_non_null(strstr(a.body, "event: result"));
    if (!strstr(a.body, "the node a was lost while this execution ran"))
        fail_msg("it ends with %s", strstr(a.body, "event: result"));
    answer_finish(&a);
    harness_finish(&w.a);
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nats_wait_node(&w.a, NODE_JOINED);
    nodes_submit(&w.a, LONG, w.id);
    end(&w);
}

/* Waits until nobody asked for twice as long as who follows waits. */
static void wait_unasked(natsSubscription *asked)
{
    natsMsg *message = NULL;

    for (unsigned i = 0; i < 200; i++) {
        if (natsSubscription_NextMsg(&message, asked, 2000) == NATS_TIMEOUT)
            return;
        natsMsg_Destroy(message);
    }
    fail_msg("it is asked for ever");
}

static void who_leaves_leaves_nothing(void **state)
{
    struct world w = {0};
    natsSubscription *asked = NULL;
    struct stream s;

    (void)state;
    begin(&w);
    s = open_stream(&w.b, w.id);
    read_until(&s, "tick 1");
    assert_int_equal(natsConnection_SubscribeSync(&asked, w.connection, LIVE_OF_A), NATS_OK);
    assert_int_equal(natsConnection_Flush(w.connection), NATS_OK);
    close_stream(&s);
    wait_unasked(asked);
    natsSubscription_Destroy(asked);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    end(&w);
}

/* Both are full of one each. */
static void begin_full(struct world *w, char busy_b[38])
{
    nodes_begin_two(&w->nats, &w->a, ONE_SLOT, &w->b, ONE_SLOT);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    w->connection = nats_connect(&w->nats);
    nodes_fill(&w->a, LONG, w->id);
    nodes_wait(&w->b, nodes_path_of(w->id), 200, RUNNING);
    nodes_fill(&w->b, LONG, busy_b);
}

/* One that waits at a goes to b: who reads it at either goes on as if nothing was. */
static void a_stream_follows_what_moves(void **state)
{
    struct world w = {0};
    struct stream at_a, at_b;
    struct answer a;
    char busy_b[38], id[38];

    (void)state;
    begin_full(&w, busy_b);
    nodes_submit(&w.a, LONG, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    at_a = open_stream(&w.a, id);
    at_b = open_stream(&w.b, id);
    read_until(&at_a, "\"accepted\"");
    read_until(&at_b, "\"accepted\"");
    nodes_cancel(&w.b, busy_b);
    read_until(&at_b, "tick 3");
    read_until(&at_a, "tick 3");
    nodes_cancel(&w.a, id);
    a = finish_stream(&at_a);
    expect_status(&a, id, "running");
    expect_ticks(&a, 4);
    answer_finish(&a);
    a = finish_stream(&at_b);
    expect_status(&a, id, "running");
    expect_ticks(&a, 4);
    answer_finish(&a);
    end(&w);
}

/* What of a was asked that waits for news, and is not answered yet. */
struct in_flight {
    char inboxes[2 * STREAMS][128];
    unsigned n, most;
};

static void note_message(struct in_flight *f, const natsMsg *message)
{
    const char *subject = natsMsg_GetSubject(message);

    if (strcmp(subject, LIVE_OF_A) == 0 && strstr(natsMsg_GetData(message), WAITS)) {
        assert_true(f->n < 2 * STREAMS);
        snprintf(f->inboxes[f->n++], sizeof(f->inboxes[0]), "%s", natsMsg_GetReply(message));
        f->most = f->n > f->most ? f->n : f->most;
        return;
    }
    for (unsigned i = 0; i < f->n; i++) {
        if (strcmp(f->inboxes[i], subject) == 0)
            memcpy(f->inboxes[i], f->inboxes[--f->n], sizeof(f->inboxes[0]));
    }
}

/* However many follow one tenant's, no more wait at once; the others are asked for now and
 * then. */
static void many_streams_ask_no_more_than_some(void **state)
{
    static struct in_flight f;
    static struct stream streams[STREAMS];
    struct world w = {0};
    natsSubscription *all = NULL;
    natsMsg *message = NULL;
    char id[38];

    (void)state;
    begin(&w);
    nodes_submit(&w.a, "{" FAKE("hang") ",\"timeout\":600,\"async\":true}", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, RUNNING);
    assert_int_equal(natsConnection_SubscribeSync(&all, w.connection, ">"), NATS_OK);
    assert_int_equal(natsConnection_Flush(w.connection), NATS_OK);
    for (unsigned i = 0; i < STREAMS; i++)
        streams[i] = open_stream(&w.b, id);
    for (unsigned i = 0; i < STREAMS; i++)
        read_until(&streams[i], "\"running\"");
    while (f.most < OF_TENANT) {
        assert_int_equal(natsSubscription_NextMsg(&message, all, ANSWER_MS), NATS_OK);
        note_message(&f, message);
        natsMsg_Destroy(message);
    }
    nodes_cancel(&w.a, id);
    for (unsigned i = 0; i < STREAMS; i++) {
        struct answer a = finish_stream(&streams[i]);

        assert_non_null(strstr(a.body, "event: result"));
        answer_finish(&a);
    }
    while (natsSubscription_NextMsg(&message, all, 10) == NATS_OK) {
        note_message(&f, message);
        natsMsg_Destroy(message);
    }
    assert_int_equal(f.most, OF_TENANT);
    natsSubscription_Destroy(all);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_elsewhere_is_read_as_it_is),
        cmocka_unit_test(a_long_log_is_read_whole),
        cmocka_unit_test(another_tenant_reads_nothing_and_nobody_is_asked),
        cmocka_unit_test(what_cannot_be_read_is_no_answer),
        cmocka_unit_test(events_come_to_every_node),
        cmocka_unit_test(a_silent_one_has_a_heartbeat),
        cmocka_unit_test(a_stream_outlives_its_node),
        cmocka_unit_test(who_leaves_leaves_nothing),
        cmocka_unit_test(a_stream_follows_what_moves),
        cmocka_unit_test(many_streams_ask_no_more_than_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
