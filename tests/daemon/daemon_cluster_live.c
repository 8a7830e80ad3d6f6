/* SPDX-License-Identifier: Apache-2.0 */
/* What runs at one node is read at another as it is there, and by nobody else. */
#include <nats/nats.h>

#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define expect harness_expect

#define LINES       "limits:\n  max_running: 4\n"
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
    char url[512];

    nodes_begin_two(&w->nats, &w->a, LINES, &w->b, LINES);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    (void)nats_urls(&w->nats, url, sizeof(url));
    assert_int_equal(natsConnection_ConnectTo(&w->connection, url), NATS_OK);
    nodes_submit(&w->a, LONG, w->id);
    nodes_wait(&w->a, nodes_path_of(w->id), 200, RUNNING);
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

/* What follows a member's name is the same in both. */
static void expect_same(const struct answer *one, const struct answer *other, const char *name)
{
    const char *here = strstr(one->body, name), *there = strstr(other->body, name);

    assert_non_null(here);
    assert_non_null(there);
    assert_int_equal(strcspn(here, ",}"), strcspn(there, ",}"));
    assert_memory_equal(here, there, strcspn(here, ",}"));
}

static void what_runs_elsewhere_is_read_as_it_is(void **state)
{
    struct world w = {0};
    struct answer here, there;

    (void)state;
    begin(&w);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    here = harness_get(&w.a, nodes_path_of(w.id));
    there = harness_get(&w.b, nodes_path_of(w.id));
    expect_same(&here, &there, IMAGE);
    expect_same(&here, &there, IMAGE_WHY);
    answer_finish(&here);
    answer_finish(&there);
    nodes_wait(&w.b, path_of(w.id, "/logs"), 200, "tick 3");
    /* All that one node gave, another gives after it. */
    here = harness_get(&w.a, path_of(w.id, "/logs"));
    there = harness_get(&w.b, path_of(w.id, "/logs"));
    assert_true(there.len >= here.len);
    assert_memory_equal(here.body, there.body, here.len);
    answer_finish(&here);
    answer_finish(&there);
    end(&w);
}

/* A log that takes many answers. */
static void a_long_log_is_read_whole(void **state)
{
    struct world w = {0};
    struct answer here, there;
    char id[38];

    (void)state;
    begin(&w);
    nodes_submit(&w.a, "{" FAKE("chatty") ",\"timeout\":600,\"async\":true}", id);
    nodes_wait(&w.a, path_of(id, "/logs"), 200, "that is all");
    here = harness_get(&w.a, path_of(id, "/logs"));
    there = harness_get(&w.b, path_of(id, "/logs"));
    assert_true(here.len > 300000);
    assert_int_equal(here.len, there.len);
    assert_memory_equal(here.body, there.body, here.len);
    answer_finish(&here);
    answer_finish(&there);
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
    expect(harness_get(&w.b, nodes_path_of(w.id)), 200, RUNNING);
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
    assert_int_equal(kill(w.a.pid, SIGSTOP), 0);
    expect(harness_get(&w.b, nodes_path_of(w.id)), 200, "\"status\":\"accepted\"");
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nodes_wait(&w.b, nodes_path_of(w.id), 200, RUNNING);
    /* Somebody is quicker than a. */
    assert_int_equal(kill(w.a.pid, SIGSTOP), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_elsewhere_is_read_as_it_is),
        cmocka_unit_test(a_long_log_is_read_whole),
        cmocka_unit_test(another_tenant_reads_nothing_and_nobody_is_asked),
        cmocka_unit_test(what_cannot_be_read_is_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
