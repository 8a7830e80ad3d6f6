/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a tenant, and its share, count over all nodes. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define EXECUTIONS "/v1/executions"
#define SLOTS(n)   "limits:\n  max_running: " n "\n"
#define CODE(how, n)                                                                           \
    "{\"code\":\"print(1)\",\"lang\":\"python\",\"env\":{\"FAKE\":\"" how                      \
    "\",\"FAKE_DATA\":\"" n "\"}"
#define LONG         CODE("ticks", "") ",\"timeout\":600,\"async\":true}"
#define SHORT        CODE("exit", "0") "}"
#define RAN(n)       "\nskillvm_executions_total{status=\"success\"} " n "\n"
#define RUNNING(n)   "\nskillvm_executions_running " n "\n"
#define QUEUED(n)    "\nskillvm_executions_queued " n "\n"
#define ELSEWHERE(n) "\nskillvm_cluster_elsewhere_running " n "\n"
#define WAITS(n)     "\nskillvm_cluster_elsewhere_queued " n "\n"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

static void begin(struct world *w, const char *lines)
{
    nodes_begin_two(&w->nats, &w->a, lines, &w->b, lines);
    harness_wait_metrics(&w->a, "\nskillvm_cluster_load_nodes 1\n", true);
    harness_wait_metrics(&w->b, "\nskillvm_cluster_load_nodes 1\n", true);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* What waits for others to end runs once they did, and once nobody knows of them any more. */
static void a_cap_holds_over_nodes(void **state)
{
    struct world w = {0};
    char ids[3][38];

    (void)state;
    begin(&w, SLOTS("4"));
    nodes_set_limits(&w.a, &w.b, "\"max_running\":2");
    nodes_submit(&w.a, LONG, ids[0]);
    nodes_submit(&w.a, LONG, ids[1]);
    harness_wait_metrics(&w.b, ELSEWHERE("2"), true);
    nodes_submit(&w.b, CODE("exit", "0") ",\"async\":true}", ids[2]);
    harness_wait_metrics(&w.a, WAITS("1"), true);
    harness_wait_metrics(&w.b, RUNNING("0"), true);
    nodes_cancel(&w.a, ids[0]);
    nodes_wait(&w.b, nodes_path_of(ids[2]), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w.b, RAN("1"), true);
    nodes_submit(&w.a, LONG, ids[0]);
    harness_wait_metrics(&w.b, ELSEWHERE("2"), true);
    nodes_submit(&w.b, LONG, ids[2]);
    harness_wait_metrics(&w.a, WAITS("1"), true);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(ids[2]), 200, "\"status\":\"running\"");
    harness_wait_metrics(&w.b, ELSEWHERE("0"), true);
    nodes_cancel(&w.b, ids[2]);
    nats_start_node(&w.a, &w.nats, "a", SLOTS("4"));
    nats_wait_node(&w.a, NODE_JOINED);
    end(&w);
}

#define SENT 20u

struct span {
    const struct harness *node;
    pthread_t thread;
    unsigned long long began_ns, ended_ns;
};

static void *run_span(void *ctx)
{
    struct span *span = ctx;
    struct answer a = harness_run(span->node, CODE("span", "600") "}");
    const char *at = strstr(a.body, "\"stdout\":\"span ");

    if (a.status == 200 && at)
        (void)sscanf(at, "\"stdout\":\"span %llu %llu", &span->began_ns, &span->ended_ns);
    answer_finish(&a);
    return NULL;
}

/* How many ran when this one began. */
static unsigned count_at(const struct span *spans, unsigned long long ns)
{
    unsigned n = 0;

    for (size_t i = 0; i < SENT; i++)
        n += spans[i].began_ns <= ns && ns < spans[i].ended_ns;
    return n;
}

/* As docs/fleet.md says: no node begins more than the cap, and over time it holds. */
static void a_cap_is_overshot_by_what_is_said(void **state)
{
    struct span spans[SENT] = {0};
    unsigned long long first = UINT64_MAX, last = 0, sum = 0;
    struct world w = {0};
    unsigned most = 0;

    (void)state;
    begin(&w, SLOTS("4"));
    nodes_set_limits(&w.a, &w.b, "\"max_running\":2");
    for (size_t i = 0; i < SENT; i++) {
        spans[i].node = i % 2 ? &w.b : &w.a;
        assert_int_equal(pthread_create(&spans[i].thread, NULL, run_span, &spans[i]), 0);
    }
    for (size_t i = 0; i < SENT; i++)
        assert_int_equal(pthread_join(spans[i].thread, NULL), 0);
    for (size_t i = 0; i < SENT; i++) {
        unsigned n = count_at(spans, spans[i].began_ns);

        assert_true(spans[i].ended_ns > 0);
        most = n > most ? n : most;
        first = spans[i].began_ns < first ? spans[i].began_ns : first;
        last = spans[i].ended_ns > last ? spans[i].ended_ns : last;
        sum += spans[i].ended_ns - spans[i].began_ns;
    }
    /* By what the other node begins before it hears of this one's. */
    assert_true(most <= 2 + 2);
    if (sum > 3 * (last - first))
        fail_msg("%.2f ran at once", (double)sum / (double)(last - first));
    end(&w);
}

static void what_waits_elsewhere_counts(void **state)
{
    struct world w = {0};
    char ids[3][38];

    (void)state;
    begin(&w, SLOTS("4"));
    nodes_set_limits(&w.a, &w.b, "\"max_running\":1,\"max_queued\":2");
    for (int i = 0; i < 3; i++) {
        nodes_submit(&w.a, LONG, ids[i]);
        harness_wait_metrics(&w.a, RUNNING("1"), true);
    }
    harness_wait_metrics(&w.b, WAITS("2"), true);
    expect(harness_run(&w.b, SHORT), 429, "max_queued: 2 of the tenant's executions");
    nodes_cancel(&w.a, ids[2]);
    harness_wait_metrics(&w.b, WAITS("1"), true);
    nodes_submit(&w.b, LONG, ids[2]);
    for (int i = 0; i < 2; i++)
        nodes_cancel(&w.a, ids[i]);
    nodes_cancel(&w.b, ids[2]);
    end(&w);
}

/* Begins short ones until no more may, or so many have. How many have. */
static unsigned begin_many(const struct harness *h, unsigned most)
{
    for (unsigned n = 0; n < most; n++) {
        struct answer a = harness_run(h, SHORT);
        bool is_refused = a.status == 429;

        if (is_refused)
            assert_true(answer_has(&a, "\"error\":\"rate_limited\""));
        else
            assert_int_equal(a.status, 200);
        answer_finish(&a);
        if (is_refused)
            return n;
    }
    return most;
}

static void a_rate_holds_over_nodes(void **state)
{
    struct world w = {0};
    uint64_t began_ns;
    unsigned n;

    (void)state;
    begin(&w, SLOTS("4"));
    nodes_set_limits(&w.a, &w.b, "\"rate_per_minute\":60");
    began_ns = clock_monotonic_ns();
    assert_int_equal(begin_many(&w.a, 50), 50);
    n = begin_many(&w.b, 500);
    /* The rest, what it had not heard of, and what came back meanwhile, one a second. */
    if (n >= 40 + (clock_monotonic_ns() - began_ns) / NS_PER_SECOND)
        fail_msg("%u more", n);
    end(&w);
}

/* One that goes to another node takes one of the rate, not two. */
static void a_rate_is_taken_once(void **state)
{
    struct world w = {0};
    char held[38];

    (void)state;
    begin(&w, SLOTS("1"));
    nodes_set_limits(&w.a, &w.b, "\"rate_per_minute\":10");
    nodes_submit(&w.a, LONG, held);
    nodes_wait(&w.a, nodes_path_of(held), 200, "\"status\":\"running\"");
    for (int i = 0; i < 7; i++) {
        char ran[80];

        harness_wait_metrics(&w.b, RUNNING("0"), true);
        nats_wait_node(&w.b, "\"takes_executions\":true");
        expect(harness_run(&w.a, SHORT), 200, "\"status\":\"success\"");
        snprintf(ran, sizeof(ran), "\nskillvm_executions_total{status=\"success\"} %d\n",
                 i + 1);
        harness_wait_metrics(&w.b, ran, true);
    }
    nodes_cancel(&w.a, held);
    end(&w);
}

struct tenant {
    char id[64], headers[200];
};

static void make_tenant(const struct world *w, const char *name, struct tenant *ret)
{
    char json[64], key[80], key_id[64];
    struct answer a;
    const char *at;

    snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
    a = nodes_admin_sure(&w->a, "POST", "/v1/admin/tenants", json);
    assert_int_equal(a.status, 201);
    at = strstr(a.body, "ten_");
    assert_non_null(at);
    snprintf(ret->id, sizeof(ret->id), "%.36s", at);
    answer_finish(&a);
    nodes_key(&w->a, name, key, key_id);
    nodes_wait_key(&w->b, key, 200);
    snprintf(ret->headers, sizeof(ret->headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n", key);
}

static void flood(const struct harness *h, const struct tenant *t, unsigned n)
{
    static const char json[] = CODE("sleep", "100") ",\"async\":true}";

    for (unsigned i = 0; i < n; i++)
        expect(harness_request(h, "POST", EXECUTIONS, t->headers, json, strlen(json)), 202,
               "accepted");
}

/* How many of a tenant's have ended well at a node. */
static unsigned ran(const struct harness *h, const struct tenant *t)
{
    struct answer a = harness_get(h, "/metrics");
    char series[128];
    const char *at;
    unsigned n = 0;

    snprintf(series, sizeof(series),
             "\nskillvm_tenant_executions_total{tenant=\"%s\",status=\"success\"} ", t->id);
    at = strstr(a.body, series);
    if (at)
        n = (unsigned)strtoul(at + strlen(series), NULL, 10);
    answer_finish(&a);
    return n;
}

/* The same at both. */
static unsigned ran_anywhere(const struct world *w, const struct tenant *t)
{
    return ran(&w->a, t) + ran(&w->b, t);
}

/* Has one go on to flood both nodes, of whose so many were sent. */
static unsigned keep_flooding(struct world *w, const struct tenant *t, unsigned sent)
{
    if (sent - ran_anywhere(w, t) > 60)
        return sent;
    flood(&w->a, t, 30);
    flood(&w->b, t, 30);
    return sent + 60;
}

/*
 * How many turns at b one has who floods both nodes, of whose *sent were sent, while 15 of
 * another end, which came to b. A turn that the other had at a instead is not counted.
 */
static int turns_beside(struct world *w, const struct tenant *much, unsigned *sent,
                        const struct tenant *little)
{
    unsigned before, all, elsewhere;
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    *sent = keep_flooding(w, much, *sent);
    harness_wait_metrics(&w->b, ELSEWHERE("1"), true);
    all = ran_anywhere(w, little) + 15;
    elsewhere = ran(&w->a, little);
    flood(&w->b, little, 15);
    before = ran(&w->b, much);
    for (; ran_anywhere(w, little) < all; usleep(20000)) {
        assert_true(clock_monotonic_ns() < until);
        *sent = keep_flooding(w, much, *sent);
    }
    return (int)(ran(&w->b, much) - before) - (int)(ran(&w->a, little) - elsewhere);
}

/*
 * The same, until it is within bounds: where the processor is short nodes hear late of each
 * other, which is not so each time.
 */
static int turns_within(struct world *w, const struct tenant *much, const struct tenant *little,
                        int least, int most)
{
    unsigned sent = 0;
    int n = 0;

    for (unsigned round = 0; round < 4; round++) {
        n = turns_beside(w, much, &sent, little);
        if (n >= least && n <= most)
            break;
    }
    return n;
}

/* Who floods both nodes leaves the second one to who is there alone. */
static void shares_hold_over_nodes(void **state)
{
    struct tenant much, little;
    struct world w = {0};
    int n;

    (void)state;
    begin(&w, SLOTS("1") "  max_queued: 200\n");
    make_tenant(&w, "much", &much);
    make_tenant(&w, "little", &little);
    n = turns_within(&w, &much, &little, -8, 8);
    /* Alone it would have had as many turns there as the other. */
    if (n > 8)
        fail_msg("%d of the other's ran", n);
    end(&w);
}

/*
 * Of two slots three quarters are one and a half: who has three times the weight has three
 * turns for each of the other. By the second node alone it would have had six, and with equal
 * weights one.
 */
static void weights_hold_over_nodes(void **state)
{
    static const char path[] = "/v1/admin/tenants/heavy";
    struct tenant heavy, light;
    struct world w = {0};
    int n;

    (void)state;
    begin(&w, SLOTS("1") "  max_queued: 200\n");
    make_tenant(&w, "heavy", &heavy);
    make_tenant(&w, "light", &light);
    expect(nodes_admin_sure(&w.a, "PATCH", path, "{\"limits\":{\"weight\":30}}"), 200, "");
    nodes_wait(&w.b, path, 200, "\"weight\":30");
    n = turns_within(&w, &heavy, &light, 9, 30);
    if (n < 9 || n > 30)
        fail_msg("%d of the heavier one's ran", n);
    end(&w);
}

static void say(const struct world *w, const char *node, const char *text)
{
    char subject[80];

    snprintf(subject, sizeof(subject), "skillvm.load.%s", node);
    nats_tell(&w->nats, subject, text, strlen(text));
}

/* Nonsense, what is under another's name, and what no node says that there is. */
static void what_is_no_nodes_word_counts_for_nothing(void **state)
{
#define SAID(node)                                                                             \
    "{\"schema\":1,\"node\":\"" node "\",\"instance\":\"0123\",\"free\":0,\"tenants\":"        \
    "[[\"default\",5,5,5,5]]}"
#define REFUSED "\nskillvm_cluster_messages_refused_total"
    struct world w = {0};

    (void)state;
    begin(&w, SLOTS("1"));
    nodes_set_limits(&w.a, &w.b, "\"max_running\":1");
    say(&w, "c", SAID("c"));
    say(&w, "b", SAID("b"));
    say(&w, "b", SAID("c"));
    harness_wait_metrics(&w.a, REFUSED "{reason=\"wrong_name\"} 1\n", true);
    say(&w, "b", "{\"schema\":2}");
    harness_wait_metrics(&w.a, REFUSED "{reason=\"newer_schema\"} 1\n", true);
    say(&w, "b", "{");
    harness_wait_metrics(&w.a, REFUSED "{reason=\"malformed\"} 1\n", true);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "\"last\":\"malformed at \\\"b\\\"\"");
    assert_true(harness_metrics_have(&w.a, ELSEWHERE("0")));
    expect(harness_run(&w.a, SHORT), 200, "\"status\":\"success\"");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cap_holds_over_nodes),
        cmocka_unit_test(a_cap_is_overshot_by_what_is_said),
        cmocka_unit_test(what_waits_elsewhere_counts),
        cmocka_unit_test(a_rate_holds_over_nodes),
        cmocka_unit_test(a_rate_is_taken_once),
        cmocka_unit_test(shares_hold_over_nodes),
        cmocka_unit_test(weights_hold_over_nodes),
        cmocka_unit_test(what_is_no_nodes_word_counts_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
