/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five nodes and three servers that are killed, stopped and cut off at random, at times two
 * nodes at once, while clients send executions of all kinds. Once all is well again every node
 * says the same of each, and what it says agrees with what clients were answered. CHAOS_SEED,
 * CHAOS_EXECUTIONS and CHAOS_FAULTS are numbers of a longer run, or of one as it was before;
 * where CHAOS_SERVERS is 0 no server is killed or stopped, where CHAOS_NODES is 0 no node.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/chaos_clients.h"
#include "tests/daemon/chaos_log.h"
#include "tests/daemon/nodes_world.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVERS       3u
#define LINES         "  replicas: 3\nlimits:\n  max_running: 2\n"
#define PAUSE_US      50000u
#define HEAL_S        180u
#define FDS_SLACK     16u /* connections that are kept, and what machines have */
#define THREADS_SLACK 28  /* three of each of eight connections, and machines */

enum fault {
    KILL_NODE,
    END_NODE,
    STOP_NODE,
    CUT_NODE,
    STOP_SERVER,
    KILL_LEADER,
    KILL_SERVER,
    CUT_SERVER,
    N_FAULTS
};

static const char *const fault_names[N_FAULTS] = {"kill node",   "end node",    "stop node",
                                                  "cut node",    "stop server", "kill leader",
                                                  "kill server", "cut server"};

struct world {
    struct net_world net; /* the servers, and the nodes behind them */
    struct nats_world nats;
    struct harness nodes[CHAOS_NODES];
    unsigned fds[CHAOS_NODES];
    long threads[CHAOS_NODES];
    char log[64]; /* what all daemons say */
    struct chaos chaos;
    unsigned short seed[3];
    bool hurts_nodes, hurts_servers;
    unsigned n_taken_back; /* answered as ended, and lost since */
    unsigned n_wrong;      /* of what is looked at once all is well again */
};

/* Says what is wrong, and goes on: there may be more. */
#define WRONG(w, ...)                                                                          \
    do {                                                                                       \
        print_error("  " __VA_ARGS__);                                                         \
        print_error("\n");                                                                     \
        (w)->n_wrong++;                                                                        \
    } while (0)

static unsigned number(const char *name, unsigned usual)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static unsigned draw(struct world *w, unsigned n)
{
    return (unsigned)nrand48(w->seed) % n;
}

static void name_node(unsigned i, char ret[8])
{
    snprintf(ret, 8, "n%u", i);
}

static void start_node(struct world *w, unsigned i)
{
    int own = dup(STDERR_FILENO);
    _cleanup_fd_ int log = open(w->log, O_WRONLY | O_APPEND | O_CLOEXEC);
    char name[8];

    assert_true(own >= 0 && log >= 0);
    assert_true(dup2(log, STDERR_FILENO) >= 0);
    name_node(i, name);
    net_enter(&w->net, SERVERS + i);
    nats_start_node(&w->nodes[i], &w->nats, name, LINES);
    net_leave(&w->net);
    assert_true(dup2(own, STDERR_FILENO) >= 0);
    close(own);
}

static void begin(struct world *w)
{
    _cleanup_fd_ int log = -1;

    snprintf(w->log, sizeof(w->log), "/tmp/skillvm-chaos-XXXXXX");
    log = mkostemp(w->log, O_CLOEXEC);
    assert_true(log >= 0);
    if (net_begin(&w->net, SERVERS + CHAOS_NODES))
        w->nats.net = &w->net;
    else
        print_message("  no link is cut: this process may make no networks\n");
    nats_begin(&w->nats, SERVERS);
    start_node(w, 0);
    nats_make(&w->nodes[0]);
    nats_wait_node(&w->nodes[0], NODE_JOINED);
    harness_wait_ready(&w->nodes[0]);
    nodes_push_sure(&w->nodes[0], "demo");
    for (unsigned i = 1; i < CHAOS_NODES; i++)
        start_node(w, i);
    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        nats_wait_node(&w->nodes[i], NODE_JOINED);
        nodes_wait(&w->nodes[i], "/v1/skills", 200, "\"name\":\"demo\"");
        harness_expect(
            nodes_admin_sure(&w->nodes[i], "POST", "/v1/executions", "{\"skill\":\"demo\"}"),
            200, "success");
        w->fds[i] = harness_count_fds(&w->nodes[i]);
        w->threads[i] = harness_status(&w->nodes[i], "Threads:");
    }
}

/* A daemon that nobody killed runs. */
static void expect_alive(const struct harness *h)
{
    int status;

    if (waitpid(h->pid, &status, WNOHANG) != 0)
        fail_msg("the daemon of %s ended by itself, %#x", h->dir, (unsigned)status);
}

static void cut_for(const struct world *w, size_t host, unsigned ms)
{
    net_cut(&w->net, host);
    usleep(ms * 1000);
    net_mend(&w->net, host);
}

static void break_for(pid_t pid, unsigned ms)
{
    harness_freeze(pid);
    usleep(ms * 1000);
    assert_int_equal(kill(pid, SIGCONT), 0);
}

static void hurt_one(struct world *w, enum fault fault, unsigned i, unsigned ms)
{
    struct harness *h = &w->nodes[i];

    if (fault == STOP_NODE || fault == CUT_NODE) {
        if (fault == STOP_NODE)
            break_for(h->pid, ms);
        else
            cut_for(w, SERVERS + i, ms);
        return;
    }
    if (fault == END_NODE)
        assert_int_equal(harness_stop(h, SIGTERM), 0);
    else
        assert_int_equal(harness_stop(h, SIGKILL), -1);
    usleep((draw(w, 2) ? ms : 0) * 1000);
    start_node(w, i);
}

/* From 1 to 20 s, so that every other node is given up by the others; in a fifth of them
   another one stands still meanwhile. */
static void hurt_node(struct world *w, enum fault fault)
{
    unsigned i = draw(w, CHAOS_NODES), ms = 1000 + draw(w, 19000);
    unsigned other = (i + 1 + draw(w, CHAOS_NODES - 1)) % CHAOS_NODES;
    bool are_two = draw(w, 5) == 0;

    expect_alive(&w->nodes[i]);
    expect_alive(&w->nodes[other]);
    print_message("  %s n%u for %u ms%s\n", fault_names[fault], i, ms,
                  are_two ? ", and another one stands still" : "");
    if (are_two)
        harness_freeze(w->nodes[other].pid);
    hurt_one(w, fault, i, ms);
    if (are_two)
        assert_int_equal(kill(w->nodes[other].pid, SIGCONT), 0);
}

/* One at a time: of what only two of three have, nothing is promised without them. */
static void hurt_server(struct world *w, enum fault fault)
{
    unsigned ms = 200 + draw(w, 8000);
    size_t i;

    nats_wait_replicas(&w->nats, NATS_RECORDS);
    i = fault == KILL_LEADER ? nats_leader(&w->nats, NATS_RECORDS) : draw(w, SERVERS);
    print_message("  %s s%zu for %u ms\n", fault_names[fault], i, ms);
    if (fault == STOP_SERVER || fault == CUT_SERVER) {
        if (fault == STOP_SERVER)
            break_for(w->nats.servers[i].pid, ms);
        else
            cut_for(w, i, ms);
        return;
    }
    nats_kill(&w->nats, i);
    usleep(ms * 1000);
    nats_restart(&w->nats, i);
}

static unsigned n_sent(const struct chaos *c)
{
    return __atomic_load_n(&c->n, __ATOMIC_RELAXED);
}

/* Where no network could be made no link can be cut. */
static unsigned list_faults(const struct world *w, enum fault ret[N_FAULTS])
{
    const unsigned end = number("CHAOS_SERVERS", 1) ? N_FAULTS : STOP_SERVER;
    unsigned n = 0;

    for (unsigned i = number("CHAOS_NODES", 1) ? 0 : STOP_SERVER; i < end; i++) {
        if (w->nats.net || (i != CUT_NODE && i != CUT_SERVER))
            ret[n++] = (enum fault)i;
    }
    return n;
}

/* Each comes once so many more were sent. */
static void hurt(struct world *w, unsigned n)
{
    enum fault faults[N_FAULTS];
    const unsigned n_faults = list_faults(w, faults);

    if (n_faults == 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = n_sent(&w->chaos) + w->chaos.wanted / (2 * n);
        enum fault fault = faults[n <= n_faults ? n_faults - 1 - i : draw(w, n_faults)];

        while (n_sent(&w->chaos) < at)
            usleep(PAUSE_US);
        w->hurts_nodes |= fault < STOP_SERVER;
        w->hurts_servers |= fault >= STOP_SERVER;
        if (fault < STOP_SERVER)
            hurt_node(w, fault);
        else
            hurt_server(w, fault);
    }
}

/* What a query says of a node's database, its columns joined. The caller's. */
static char *query(const struct harness *h, const char *sql)
{
    struct buf out = buf_init(64u << 20);
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    char path[256];

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++)
            (void)buf_printf(&out, "%s ", (const char *)sqlite3_column_text(s, i));
        (void)buf_printf(&out, "\n");
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
    (void)buf_printf(&out, "%s", "");
    return (char *)out.data;
}

/* What is known of one that does not end. */
static void fail_open(const struct world *w, unsigned node, const char *open)
{
    char *record;
    struct answer a = harness_get(&w->nodes[node], "/v1/admin/cluster");

    print_message("  n%u says %.160s\n", node, a.body);
    answer_finish(&a);
    record = nodes_record_of(&w->nats, open);
    print_message("  the servers have %s\n", record ? record : "none");
    free(record);
    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        char sql[256], *row;

        snprintf(sql, sizeof(sql),
                 "SELECT e.*, r.* FROM executions e JOIN records r ON r.id = e.id"
                 " WHERE e.id = '%.37s'",
                 open);
        row = query(&w->nodes[i], sql);
        print_message("  n%u has %s\n", i, row);
        free(row);
    }
    fail_msg("n%u still has\n%s", node, open);
}

/* Those that end by nothing else, where their clients were not heard, or heard of no id. */
static void end_endless(const struct world *w)
{
    char *open = query(&w->nodes[0], "SELECT id FROM executions WHERE finished_ns IS NULL");

    for (char *id = strtok(open, " \n"); id; id = strtok(NULL, " \n")) {
        const struct chaos_sent *sent = chaos_find(&w->chaos, id);
        char path[80];
        struct answer a;

        if (sent && !sent->is_endless)
            continue;
        snprintf(path, sizeof(path), "/v1/executions/%s", id);
        a = chaos_ask(&w->nodes[0], "DELETE", path, "");
        answer_finish(&a);
    }
    free(open);
    usleep(PAUSE_US);
}

/* Until everything that was accepted has ended, and all were told. */
static void wait_healed(struct world *w)
{
    uint64_t until_ns = clock_monotonic_ns() + HEAL_S * NS_PER_SECOND;

    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        expect_alive(&w->nodes[i]);
        nats_wait_node(&w->nodes[i], NODE_JOINED);
    }
    for (unsigned i = 0; i < CHAOS_NODES;) {
        char *open = query(&w->nodes[i], "SELECT e.id, status, node, is_told FROM executions e"
                                         " LEFT JOIN records r ON r.id = e.id"
                                         " WHERE finished_ns IS NULL OR NOT is_told");

        if (!*open)
            i++;
        else if (clock_monotonic_ns() > until_ns)
            fail_open(w, i, open);
        else
            end_endless(w);
        free(open);
    }
    for (unsigned i = 0; i < CHAOS_NODES; i++)
        nodes_wait(&w->nodes[i], "/metrics", 200, "skillvm_cluster_untold 0\n");
}

/* Shows what differs first. */
static void expect_same(struct world *w, const char *what, unsigned node, const char *one,
                        const char *other)
{
    size_t at = 0;

    if (strcmp(one, other) == 0)
        return;
    while (one[at] == other[at])
        at++;
    at = at > 200 ? at - 200 : 0;
    WRONG(w, "%s of n%u:\n%.600s\nand of n0:\n%.600s", what, node, other + at, one + at);
}

/* The same of all nodes: until it is, for the last of it may be on its way. */
static void wait_same(struct world *w, const char *what, const char *sql)
{
    uint64_t until_ns = clock_monotonic_ns() + HEAL_S * NS_PER_SECOND;

    for (unsigned i = 1; i < CHAOS_NODES;) {
        char *one = query(&w->nodes[0], sql), *other = query(&w->nodes[i], sql);

        if (strcmp(one, other) != 0 && clock_monotonic_ns() < until_ns)
            usleep(PAUSE_US);
        else
            expect_same(w, what, i++, one, other);
        free(one);
        free(other);
    }
}

/* What is counted as it comes is what there is. */
static void expect_sums(struct world *w)
{
    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        char *sums = query(
            &w->nodes[i], "SELECT 'CPU', (SELECT SUM(cpu_ms) FROM usage) AS counted,"
                          " (SELECT SUM(cpu_ms) FROM records) AS there"
                          " WHERE counted IS NOT there"
                          " UNION ALL"
                          " SELECT 'bytes', (SELECT SUM(stored_bytes) FROM tenants) AS counted,"
                          " (SELECT SUM(result_bytes + artifact_bytes) FROM executions)"
                          " + (SELECT SUM(bytes) FROM skills) AS there"
                          " WHERE counted IS NOT there");

        if (*sums)
            WRONG(w, "n%u counts, and has\n%s", i, sums);
        free(sums);
    }
}

static bool ended(const struct answer *a)
{
    return answer_has(a, "\"status\":\"success\"") || answer_has(a, "\"status\":\"failed\"") ||
           answer_has(a, "\"status\":\"timeout\"") || answer_has(a, "\"status\":\"cancelled\"");
}

/* The same bytes at all nodes. What the first says is the caller's. */
static struct answer read_everywhere(struct world *w, const char *path)
{
    struct answer first = nodes_admin_sure(&w->nodes[0], "GET", path, "");

    if (first.status != 200)
        WRONG(w, "%s is %d %s", path, first.status, first.body);
    for (unsigned i = 1; i < CHAOS_NODES; i++) {
        struct answer other = nodes_admin_sure(&w->nodes[i], "GET", path, "");

        expect_same(w, path, i, first.body, other.body);
        answer_finish(&other);
    }
    return first;
}

/* Whether a daemon's log says this of an execution. */
static bool is_told(const struct world *w, const char *id, const char *what)
{
    char text[96];

    snprintf(text, sizeof(text), "execution=%s is=\"%s\"", id, what);
    return chaos_log_says(w->log, text);
}

/*
 * What was answered as ended is so at all nodes, unless the servers never heard of it. What
 * they confirmed and lost its node tells again: only where nodes are hurt too may there be
 * none.
 */
static void note_taken_back(struct world *w, const struct chaos_sent *sent, const char *body)
{
    w->n_taken_back++;
    if (!strstr(body, "was lost"))
        WRONG(w, "%s was answered as %s, and is %s", sent->id, sent->status, body);
    /* Or the servers did not say within some seconds that they have it. */
    else if (!(w->hurts_nodes && w->hurts_servers) && !is_told(w, sent->id, "not told yet"))
        WRONG(w, "%s was answered as %s, confirmed, and is %s", sent->id, sent->status, body);
}

/* What all nodes say of one of which somebody heard. */
static void expect_agreed(struct world *w, const struct chaos_sent *sent)
{
    struct answer a, more;
    char path[80], status[32];

    snprintf(path, sizeof(path), "/v1/executions/%s", sent->id);
    a = read_everywhere(w, path);
    if (!ended(&a))
        WRONG(w, "%s is %s", sent->id, a.body);
    snprintf(status, sizeof(status), "\"status\":\"%s\"", sent->status);
    if (sent->status[0] && !answer_has(&a, status))
        note_taken_back(w, sent, a.body);
    /* A link that is cut between its acceptance and its request leaves it to its node. */
    if (sent->is_retried && strstr(a.body, "was lost while this execution ran") &&
        !is_told(w, sent->id, "this node's alone"))
        WRONG(w, "%s was not begun again: %s", sent->id, a.body);
    snprintf(path, sizeof(path), "/v1/executions/%s/logs", sent->id);
    more = read_everywhere(w, path);
    answer_finish(&more);
    if (strstr(a.body, "a.txt")) {
        snprintf(path, sizeof(path), "/v1/executions/%s/files/a.txt", sent->id);
        more = read_everywhere(w, path);
        if (strcmp(more.body, "alpha") != 0)
            WRONG(w, "%s is %s", path, more.body);
        answer_finish(&more);
    }
    answer_finish(&a);
}

/* Nothing runs twice unless it may, and what "was not confirmed" not at all. */
static void expect_runs(struct world *w)
{
    const struct chaos *c = &w->chaos;
    size_t n;
    char(*runs)[38] = chaos_log_runs(w->log, &n);

    assert_true(n > 0);
    for (size_t i = 1; i < n; i++) {
        const struct chaos_sent *sent =
            strcmp(runs[i - 1], runs[i]) == 0 ? chaos_find(c, runs[i]) : NULL;

        if (strcmp(runs[i - 1], runs[i]) == 0 && !(sent && sent->is_retried))
            WRONG(w, "%s ran twice", runs[i]);
    }
    for (unsigned i = 0; i < c->n; i++) {
        if (c->sent[i].must_not_run && chaos_log_has_run(runs, n, c->sent[i].id))
            WRONG(w, "%s ran, and was not confirmed", c->sent[i].id);
    }
    print_message("  %zu ran\n", n);
}

static void expect_all(struct world *w)
{
    const struct chaos *c = &w->chaos;
    struct answer list;
    unsigned n = 0;

    for (unsigned i = 0; i < c->n; i++) {
        const struct chaos_sent *sent = &c->sent[i];

        if (sent->other_id)
            WRONG(w, "the key of request %u began two executions, %s is one", i, sent->id);
        if (!sent->id[0])
            continue;
        n++;
        expect_agreed(w, sent);
    }
    list = read_everywhere(w, "/v1/executions?limit=100");
    answer_finish(&list);
    print_message("  %u requests, %u with an id; %u were answered, and are lost\n", c->n, n,
                  w->n_taken_back);
    for (unsigned i = 0; i < 600; i++) {
        if (c->codes[i] > 0)
            print_message("  %u answers of status %u\n", c->codes[i], i);
    }
    assert_true(n > 0);
}

static void expect_no_leaks(struct world *w)
{
    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        uint64_t until_ns = clock_monotonic_ns() + HEAL_S * NS_PER_SECOND;
        unsigned fds;
        long threads;

        while ((fds = harness_count_fds(&w->nodes[i])) > w->fds[i] + FDS_SLACK ||
               (threads = harness_status(&w->nodes[i], "Threads:")) >
                   w->threads[i] + THREADS_SLACK) {
            if (clock_monotonic_ns() > until_ns)
                fail_msg("n%u has %u descriptors of %u, and %ld threads of %ld", i, fds,
                         w->fds[i], harness_status(&w->nodes[i], "Threads:"), w->threads[i]);
            usleep(PAUSE_US);
        }
        print_message("  n%u: descriptors %u, then %u; threads %ld, then %ld\n", i, w->fds[i],
                      fds, w->threads[i], threads);
    }
}

static void end(struct world *w)
{
    for (unsigned i = 0; i < CHAOS_NODES; i++) {
        expect_alive(&w->nodes[i]);
        nodes_end(&w->nodes[i]);
    }
    nats_end(&w->nats);
    net_end(&w->net);
    chaos_finish(&w->chaos);
    assert_int_equal(unlink(w->log), 0);
}

static void all_nodes_agree_whatever_is_lost(void **state)
{
    const unsigned seed = number("CHAOS_SEED", (unsigned)clock_realtime_ns());
    static struct world w;

    (void)state;
    print_message("  CHAOS_SEED=%u\n", seed);
    w.net.own = -1;
    w.seed[0] = (unsigned short)seed;
    w.seed[1] = (unsigned short)(seed >> 16);
    w.chaos.nodes = w.nodes;
    w.chaos.wanted = number("CHAOS_EXECUTIONS", 300);
    begin(&w);
    chaos_begin(&w.chaos, seed);
    hurt(&w, number("CHAOS_FAULTS", 4));
    chaos_join(&w.chaos);
    wait_healed(&w);
    wait_same(&w, "executions",
              "SELECT id, tenant_id, status, accepted_ns, finished_ns, idempotency_key,"
              " artifact_digest, result_bytes FROM executions ORDER BY id");
    wait_same(&w, "usage", "SELECT tenant_id, day, cpu_ms FROM usage ORDER BY tenant_id, day");
    expect_sums(&w);
    expect_runs(&w);
    expect_all(&w);
    expect_no_leaks(&w);
    if (w.n_wrong > 0)
        fail_msg("%u things are wrong; the daemons' log is %s", w.n_wrong, w.log);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_nodes_agree_whatever_is_lost)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
