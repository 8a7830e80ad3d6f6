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

#define EACH 5u /* sent to each node */
#define ENDS 4u

struct sender {
    const struct harness *node;
    pthread_t thread;
};

static void *send_each(void *ctx)
{
    const struct sender *sender = ctx;
    char id[38];

    for (unsigned i = 0; i < EACH; i++)
        nodes_submit(sender->node, LONG, id);
    return NULL;
}

/* What a node says of itself, and what it has heard. */
struct view {
    unsigned running, waiting, elsewhere, heard;
};

static unsigned figure(const struct answer *a, const char *name)
{
    char series[80];
    const char *at;

    snprintf(series, sizeof(series), "\n%s ", name);
    at = strstr(a->body, series);
    assert_non_null(at);
    return (unsigned)strtoul(at + strlen(series), NULL, 10);
}

static struct view look(const struct harness *h)
{
    struct answer a = harness_get(h, "/metrics");
    struct view v = {.running = figure(&a, "skillvm_executions_running"),
                     .waiting = figure(&a, "skillvm_executions_queued"),
                     .elsewhere = figure(&a, "skillvm_cluster_elsewhere_running"),
                     .heard = figure(&a, "skillvm_cluster_load_taken_total")};

    answer_finish(&a);
    /* However late it hears of the others. */
    assert_in_range(v.running, 0, 2);
    return v;
}

/* Two words that come after a moment: the second was made after it. */
static bool has_heard(struct view now, struct view before)
{
    return now.heard >= before.heard + 2;
}

/*
 * How many run at both, of so many that there are, once nothing that a node says is on its way:
 * what ended is counted, each has heard how it is since then, and knows what the other has.
 */
static unsigned count_settled(const struct world *w, unsigned left, struct view *ret_a,
                              struct view *ret_b)
{
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    struct view a = look(&w->a), b = look(&w->b), from_a = a, from_b = b, again;
    bool is_counted = false;

    for (;; usleep(20000)) {
        if (clock_monotonic_ns() > until)
            fail_msg("of %u that are left %u and %u run, %u and %u wait; known are %u and %u",
                     left, a.running, b.running, a.waiting, b.waiting, b.elsewhere,
                     a.elsewhere);
        a = look(&w->a);
        b = look(&w->b);
        if (!is_counted) {
            from_a = a;
            from_b = b;
            is_counted = a.running + a.waiting + b.running + b.waiting == left;
            continue;
        }
        if (!has_heard(a, from_a) || !has_heard(b, from_b) || a.running + b.running < 2)
            continue;
        again = look(&w->a);
        if (a.running == b.elsewhere && b.running == a.elsewhere &&
            again.running == a.running && again.elsewhere == a.elsewhere)
            break;
    }
    *ret_a = a;
    *ret_b = b;
    return a.running + b.running;
}

/* Ends one that runs at a node. */
static void end_one(const struct harness *h)
{
    struct answer a = harness_get(h, EXECUTIONS "?status=running");
    char id[38];

    nodes_take_id(&a, id);
    nodes_cancel(h, id);
}

/*
 * As docs/fleet.md says: no node begins more than the cap, and what is over it because both
 * began at one moment ends without another one in its place. Time is no matter of it: one ends
 * once both have heard of all.
 */
static void a_cap_is_overshot_by_what_is_said(void **state)
{
    struct world w = {0};
    struct sender senders[2] = {{.node = &w.a}, {.node = &w.b}};
    struct view a, b;
    unsigned n;

    (void)state;
    begin(&w, SLOTS("4") "stop_timeout: 1s\n");
    nodes_set_limits(&w.a, &w.b, "\"max_running\":2");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_each, &senders[i]), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(senders[i].thread, NULL), 0);
    n = count_settled(&w, 2 * EACH, &a, &b);
    for (unsigned i = 1; i <= ENDS; i++) {
        unsigned before = n;

        end_one(b.running == 0 || (i % 2 && a.running > 0) ? &w.a : &w.b);
        n = count_settled(&w, 2 * EACH - i, &a, &b);
        /* The place of one is taken by both where each looks before it hears of the other. */
        if (before > 2 ? n != before - 1 : n > 3)
            fail_msg("%u ran, one ended, and %u run", before, n);
    }
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
    nodes_fill(&w.a, LONG, held);
    for (int i = 0; i < 7; i++) {
        char ran[80];

        harness_wait_metrics(&w.b, RUNNING("0"), true);
        nats_wait_node(&w.b, "\"takes_executions\":true");
        expect(nodes_run(&w.a, SHORT), 200, "\"status\":\"success\"");
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
    char path[64], key[80], key_id[64];
    struct answer a;
    const char *at;

    nodes_tenant(&w->a, name);
    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", name);
    nodes_wait(&w->a, path, 200, name);
    a = harness_get(&w->a, path);
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
        expect(nodes_run_as(h, t->headers, json), 202, "accepted");
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
    expect(nodes_run(&w.a, SHORT), 200, "\"status\":\"success\"");
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
