/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines that wait: who gets which, what is given back and what is not, and that nothing of
 * one execution reaches the next. The stand-in says which process it is, and breaks when told.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tenants_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define FAKE(how) "{\"skill\":\"demo\",\"timeout\":30,\"env\":{\"FAKE\":\"" how "\"}}"
#define WHO       FAKE("who")

#define PARKED(kind) "skillvm_machines_parked{kind=\"" kind "\"}"
#define TAKES(kind)  "skillvm_machine_takes_total{kind=\"" kind "\"}"
#define RESETS(how)  "skillvm_machine_resets_total{result=\"" how "\"}"
#define ENDS(reason) "skillvm_machine_ends_total{reason=\"" reason "\"}"
#define BEHIND       "skillvm_machines_behind"

/* Settings of the daemon that starts next; NULL keeps the default. */
static void set(const char *reuse, const char *parked)
{
    setenv("SKILLVM_MACHINES_PARKED", parked, 1);
    setenv("SKILLVM_MACHINES_REUSE", reuse ? reuse : "", 1);
    unsetenv("SKILLVM_MACHINES_MAX_USES");
    unsetenv("SKILLVM_MACHINES_IDLE");
    unsetenv("SKILLVM_MACHINES_MEMORY");
    unsetenv("SKILLVM_GRACE"); /* where something hangs until its time is over it is short */
}

/* Waits until every machine is back in its place, or gone. */
static void wait_settled(const struct world *w)
{
    wait_metric(w, "skillvm_executions_running", 0);
    wait_metric(w, BEHIND, 0);
}

/* Where an execution was. */
struct where {
    long pid;
    long runs; /* of that process, with its warm-up */
    bool reused;
};

static struct where where_of(struct answer a)
{
    struct where where = {0};

    where.pid = (long)answer_number(&a, "pid");
    where.runs = (long)answer_number(&a, "runs");
    where.reused = answer_has(&a, "\"machine\":\"reused\"");
    assert_int_equal(!where.reused, answer_has(&a, "\"machine\":\"fresh\""));
    answer_finish(&a);
    return where;
}

static struct where who(const struct world *w, const struct tenant *t, const char *json)
{
    struct where where = where_of(run_as(w, t, json));

    wait_settled(w);
    return where;
}

/* Another skill of a tenant's. */
static void push(const struct world *w, const struct tenant *t, const char *name,
                 const char *version, const char *script)
{
    char headers[300];
    size_t len;
    char *tar = harness_skill(name, version, script, &len);

    snprintf(headers, sizeof(headers), "%.*sContent-Type: application/octet-stream\r\n",
             (int)(strstr(t->headers, "Content-Type") - t->headers), t->headers);
    expect(harness_request(&w->h, "POST", "/v1/skills", headers, tar, len), 201, name);
    free(tar);
}

static void a_skill_has_its_machine_again(void **state)
{
    struct where first, second;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "2", "1");
    wait_metric(&w, PARKED("fresh"), 1);
    first = who(&w, &w.a, WHO);
    assert_false(first.reused);
    /* The warm-up came first, and was reset. */
    assert_int_equal(first.runs, 2);
    assert_int_equal(metric(&w, PARKED("used")), 1);
    second = who(&w, &w.a, WHO);
    assert_true(second.reused);
    assert_int_equal(second.pid, first.pid);
    assert_int_equal(second.runs, 3);
    assert_int_equal(metric(&w, TAKES("fresh")), 1);
    assert_int_equal(metric(&w, TAKES("reused")), 1);
    assert_int_equal(metric(&w, RESETS("ok")), 2);
    /* A skill that fails by itself does nothing wrong. */
    expect(run_as(&w, &w.a,
                  "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"exit\",\"FAKE_DATA\":\"3\"}}"),
           200, "\"machine\":\"reused\"");
    wait_settled(&w);
    assert_int_equal(who(&w, &w.a, WHO).pid, first.pid);
    end(&w);
}

/* Everybody runs at once and again; no process has two owners. */
struct crowd {
    struct world *w;
    const struct tenant *t;
    const char *json;
    struct where where[12];
    pthread_t thread;
};

static void *run_crowd(void *arg)
{
    struct crowd *c = arg;

    for (size_t i = 0; i < 12; i++)
        c->where[i] = where_of(run_as(c->w, c->t, c->json));
    return NULL;
}

/* How many executions of the crowd were on a used machine; fails where two owners share one. */
static unsigned mingle(struct world *w, struct crowd *crowd, const unsigned *owners, size_t n)
{
    unsigned reused = 0;

    for (size_t i = 0; i < n; i++) {
        crowd[i].w = w;
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, run_crowd, &crowd[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(crowd[i].thread, NULL);
    for (size_t i = 0; i < n * 12; i++) {
        reused += crowd[i / 12].where[i % 12].reused;
        for (size_t k = 0; k < i; k++) {
            if (owners[i / 12] != owners[k / 12])
                assert_int_not_equal(crowd[i / 12].where[i % 12].pid,
                                     crowd[k / 12].where[k % 12].pid);
        }
    }
    return reused;
}

#define OTHER "{\"skill\":\"other\",\"env\":{\"FAKE\":\"who\"}}"

static void nobody_gets_anothers_machine(void **state)
{
    static const struct {
        const char *reuse;
        const char *limit_of_a;
        unsigned owners[6];
        bool some;
    } cases[] = {
        /* a's demo twice, a's other, b's demo twice, b's other */
        {NULL, "\"weight\":10", {0, 0, 1, 2, 2, 3}, true},
        {"tenant", "\"weight\":10", {0, 0, 0, 2, 2, 2}, true},
        /* A tenant's own is narrower, never wider. */
        {"tenant", "\"reuse\":\"skill\"", {0, 0, 1, 2, 2, 2}, true},
        {"skill", "\"reuse\":\"tenant\"", {0, 0, 1, 2, 2, 3}, true},
        {"never", "\"reuse\":\"tenant\"", {0, 0, 1, 2, 2, 3}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct crowd crowd[6];
        struct world w;
        unsigned reused;

        set(cases[i].reuse, "6");
        begin(&w, "4", "1");
        set_limits(&w, &w.a, cases[i].limit_of_a);
        push(&w, &w.a, "other", "1", "print(2)");
        push(&w, &w.b, "other", "1", "print(2)");
        for (size_t k = 0; k < 6; k++)
            crowd[k] =
                (struct crowd){.t = k < 3 ? &w.a : &w.b, .json = k % 3 == 2 ? OTHER : WHO};
        reused = mingle(&w, crowd, cases[i].owners, 6);
        assert_int_equal(reused > 0, cases[i].some);
        assert_int_equal(metric(&w, TAKES("reused")), reused);
        end(&w);
    }
}

/* The same name and version with other content is another skill. */
static void a_digest_is_the_skill(void **state)
{
    struct where first, second;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    push(&w, &w.a, "demo", "2.0", "print(2)");
    first =
        who(&w, &w.a, "{\"skill\":\"demo\",\"version\":\"1.0\",\"env\":{\"FAKE\":\"who\"}}");
    second =
        who(&w, &w.a, "{\"skill\":\"demo\",\"version\":\"2.0\",\"env\":{\"FAKE\":\"who\"}}");
    assert_false(second.reused);
    assert_int_not_equal(first.pid, second.pid);
    end(&w);
}

static void fresh_means_alone(void **state)
{
    static const char fresh[] =
        "{\"skill\":\"demo\",\"fresh\":true,\"env\":{\"FAKE\":\"who\"}}";
    struct where used, alone, again;
    struct world w;
    char path[128];

    (void)state;
    set(NULL, "4");
    begin(&w, "2", "1");
    wait_metric(&w, PARKED("fresh"), 1);
    used = who(&w, &w.a, WHO);
    alone = who(&w, &w.a, fresh);
    assert_false(alone.reused);
    assert_int_not_equal(alone.pid, used.pid);
    again = who(&w, &w.a, WHO);
    assert_true(again.reused);
    assert_int_equal(again.pid, used.pid);
    assert_int_equal(metric(&w, ENDS("unwanted")), 1);
    assert_int_equal(kill((pid_t)alone.pid, 0), -1);
    expect(run_as(&w, &w.a, "{\"skill\":\"demo\",\"fresh\":1}"), 400, "\\\"fresh\\\" must be");
    /* A tenant that may never have one again. */
    set_limits(&w, &w.a, "\"reuse\":\"never\"");
    assert_false(who(&w, &w.a, WHO).reused);
    assert_false(who(&w, &w.a, WHO).reused);
    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", w.a.id);
    expect(admin(&w.h, "PATCH", path, "{\"limits\":{\"reuse\":\"all\"}}"), 400, "must be");
    expect(admin(&w.h, "PATCH", path, "{\"limits\":{\"reuse\":1}}"), 400, "must be");
    expect(admin(&w.h, "GET", path, ""), 200, "\"reuse\":\"never\"");
    set_limits(&w, &w.a, "\"reuse\":null");
    assert_true(who(&w, &w.a, WHO).reused);
    end(&w);
}

static void only_a_clean_end_gives_it_back(void **state)
{
    static const char *const unclean[] = {"timeout",       "oom",   "deaf",
                                          "fail",          "die",   "hostile-after",
                                          "hostile-files", "close", "vmm-failed"};
    double ended = 0;
    struct world w;

    (void)state;
    set(NULL, "4");
    setenv("SKILLVM_GRACE", "1", 1);
    begin(&w, "1", "1");
    for (size_t i = 0; i < sizeof(unclean) / sizeof(unclean[0]); i++) {
        struct where before = who(&w, &w.a, WHO);
        char json[128], id[ID_SIZE];

        snprintf(json, sizeof(json),
                 "{\"skill\":\"demo\",\"timeout\":1,\"env\":{\"FAKE\":\"%s\"}}", unclean[i]);
        expect(run_as(&w, &w.a, json), 200, "\"machine\":\"reused\"");
        wait_metric(&w, ENDS("unclean"), ++ended);
        wait_settled(&w);
        assert_int_equal(kill((pid_t)before.pid, 0), -1);
        assert_int_equal(metric(&w, PARKED("used")), 0);
        if (i > 0)
            continue;
        before = who(&w, &w.a, WHO);
        submit(&w, &w.a, ASYNC("ticks", ""), id);
        wait_status(&w, &w.a, id, "running");
        expect(cancel(&w, &w.a, id), 202, "cancelling");
        wait_status(&w, &w.a, id, "cancelled");
        wait_metric(&w, ENDS("unclean"), ++ended);
        assert_false(who(&w, &w.a, WHO).pid == before.pid);
    }
    end(&w);
}

/* Whatever a reset does, who waits for it gets a machine, and never that one. */
static void a_reset_that_fails_is_the_end(void **state)
{
    static const char *const broken[] = {"reset-fail", "reset-die", "reset-more",
                                         "reset-unready", "reset-hang"};
    struct world w;

    (void)state;
    set(NULL, "4");
    setenv("SKILLVM_GRACE", "1", 1);
    begin(&w, "2", "1");
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct where bad, next;
        char json[128];

        snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"%s\"}}",
                 broken[i]);
        /* The answer does not wait for it. */
        bad = where_of(run_as(&w, &w.a, json));
        next = where_of(run_as(&w, &w.a, WHO));
        assert_int_not_equal(next.pid, bad.pid);
        assert_false(next.reused);
        wait_metric(&w, RESETS("failed"), (double)i + 1);
        wait_metric(&w, ENDS("reset"), (double)i + 1);
        /* The good one is not mixed up with it. */
        wait_settled(&w);
        assert_int_equal(kill((pid_t)bad.pid, 0), -1);
        expect(run_as(&w, &w.a, FAKE("timeout")), 200, "timed out");
        wait_settled(&w);
    }
    end(&w);
}

/* A slow reset is waited for: it is sooner there than a new machine, and it is the owner's. */
static void who_comes_again_waits_for_the_reset(void **state)
{
    struct where first, second;
    struct world w;

    (void)state;
    set(NULL, "4");
    /* With two, the other may look for a machine before the first one's has begun its reset. */
    begin(&w, "1", "1");
    first = where_of(run_as(&w, &w.a, FAKE("reset-slow")));
    second = where_of(run_as(&w, &w.a, WHO));
    assert_int_equal(second.pid, first.pid);
    assert_true(second.reused);
    end(&w);
}

/* Two sockets have no order: what is said of a connection may come after what came over it. */
static void connected_may_come_late(void **state)
{
    struct where first;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    first = who(&w, &w.a, FAKE("reset-order"));
    assert_int_equal(who(&w, &w.a, WHO).pid, first.pid);
    assert_int_equal(metric(&w, ENDS("broken")), 0);
    end(&w);
}

/* The stream of a run is closed before the next begins, whatever is still written to it. */
static void nothing_late_is_read(void **state)
{
    struct where first;
    struct answer a;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    first = who(&w, &w.a, FAKE("reset-late"));
    a = run_as(&w, &w.a, WHO);
    assert_null(strstr(a.body, "late"));
    assert_int_equal(where_of(a).pid, first.pid);
    end(&w);
}

static void one_that_breaks_while_it_waits_is_dropped(void **state)
{
    static const char *const broken[] = {"parked-die", "parked-talk", "parked-event",
                                         "parked-burn"};
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct where bad, next;
        char json[128];

        snprintf(json, sizeof(json),
                 "{\"skill\":\"demo\",\"fresh\":false,\"env\":{\"FAKE\":\"%s\"}}", broken[i]);
        bad = who(&w, &w.a, json);
        wait_metric(&w, ENDS("broken"), (double)i + 1);
        next = who(&w, &w.a, WHO);
        assert_int_not_equal(next.pid, bad.pid);
        assert_false(next.reused);
        expect(run_as(&w, &w.a, FAKE("timeout")), 200, "timed out");
        wait_settled(&w);
    }
    end(&w);
}

static void uses_are_counted(void **state)
{
    struct where first, second, third;
    struct world w;

    (void)state;
    set(NULL, "4");
    setenv("SKILLVM_MACHINES_MAX_USES", "2", 1);
    begin(&w, "1", "1");
    first = who(&w, &w.a, WHO);
    second = who(&w, &w.a, WHO);
    third = who(&w, &w.a, WHO);
    assert_int_equal(first.pid, second.pid);
    assert_int_not_equal(second.pid, third.pid);
    assert_int_equal(metric(&w, ENDS("uses")), 1);
    end(&w);
}

static void nobody_waits_for_ever(void **state)
{
    struct where first;
    struct world w;

    (void)state;
    set(NULL, "4");
    setenv("SKILLVM_MACHINES_IDLE", "3s", 1);
    begin(&w, "1", "1");
    wait_metric(&w, PARKED("fresh"), 1);
    first = who(&w, &w.a, FAKE("parked-blip")); /* which breaks nothing */
    wait_metric(&w, ENDS("idle"), 1);
    wait_metric(&w, PARKED("used"), 0);
    /* A fresh one stays for who comes. */
    wait_metric(&w, PARKED("fresh"), 1);
    wait_settled(&w);
    assert_int_equal(kill((pid_t)first.pid, 0), -1);
    end(&w);
}

static void places_are_bounded(void **state)
{
    struct world w;
    char json[128], name[16];

    (void)state;
    set(NULL, "2");
    begin(&w, "1", "1");
    wait_metric(&w, PARKED("fresh"), 1);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        push(&w, &w.a, name, "1", name);
        snprintf(json, sizeof(json), "{\"skill\":\"%s\",\"env\":{\"FAKE\":\"who\"}}", name);
        (void)who(&w, &w.a, json);
        assert_true(metric_sum(&w, PARKED("used"), PARKED("fresh")) <= 2);
    }
    /* A fresh one is there again, and of the four that were used the last. */
    wait_metric(&w, PARKED("fresh"), 1);
    assert_true(metric(&w, ENDS("room")) >= 3);
    assert_true(who(&w, &w.a, json).reused);
    end(&w);
    /* Without memory for it nothing waits, and everything runs. */
    set(NULL, "2");
    setenv("SKILLVM_MACHINES_MEMORY", "1", 1);
    begin(&w, "1", "1");
    assert_false(who(&w, &w.a, WHO).reused);
    assert_false(who(&w, &w.a, WHO).reused);
    assert_int_equal(metric_sum(&w, PARKED("used"), PARKED("fresh")), 0);
    end(&w);
}

/* A burst of others' leaves nobody without: there are more fresh ones after it. */
static void fresh_ones_follow_the_demand(void **state)
{
    double parked = 0;
    struct world w;
    char id[ID_SIZE];

    (void)state;
    set(NULL, "8");
    begin(&w, "8", "1");
    wait_metric(&w, PARKED("fresh"), 1);
    /* Half of the demand is forgotten each second, maybe before a slow machine has made two. */
    for (int n = 1; n <= 480 && parked < 2; n++) {
        submit(&w, &w.a, "{\"skill\":\"demo\",\"fresh\":true,\"async\":true}", id);
        if (n % 8 > 0)
            continue;
        wait_metric(&w, "skillvm_execution_seconds_count", n);
        for (int i = 0; i < 400 && parked < 2; i++, usleep(10000))
            parked = metric(&w, PARKED("fresh"));
    }
    assert_true(parked >= 2 && parked <= 8);
    assert_true(metric(&w, TAKES("fresh")) >= 1 && metric(&w, TAKES("reused")) == 0);
    end(&w);
}

/* Each execution pays for itself, not for those before it in the same process. */
static void cpu_time_is_of_the_execution(void **state)
{
    static const char burn[] =
        "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"burn\",\"FAKE_DATA\":\"200\"}}";
    double least = 1e9;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    for (int i = 0; i < 4; i++) {
        struct answer a = run_as(&w, &w.a, burn);
        double ms = answer_number(&a, "host_cpu_ms");

        assert_int_equal(i > 0, answer_has(&a, "\"machine\":\"reused\""));
        if (ms < 199)
            fail_msg("execution %d took %g ms", i, ms);
        if (i > 0 && ms < least)
            least = ms;
        answer_finish(&a);
        wait_settled(&w);
    }
    /* A machine that stands still may add to one, but not to all. */
    assert_true(least <= 390);
    end(&w);
}

static void wait_dead(pid_t pid)
{
    for (int i = 0; i < 6000 && kill(pid, 0) == 0; i++)
        usleep(10000);
    assert_int_equal(kill(pid, 0), -1);
}

static void none_outlives_its_daemon(void **state)
{
    static const int signals[] = {SIGTERM, SIGKILL};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct where used;
        struct world w;

        set(NULL, "4");
        begin(&w, "1", "1");
        used = who(&w, &w.a, WHO);
        wait_metric(&w, PARKED("fresh"), 1);
        harness_wait_children(&w.h, 2);
        assert_int_equal(harness_stop(&w.h, signals[i]), i == 0 ? 0 : -1);
        wait_dead((pid_t)used.pid);
        harness_finish(&w.h);
    }
}

/* A daemon that stops does not wait for a reset that hangs. */
static void stopping_while_it_resets(void **state)
{
    struct where bad;
    struct world w;

    (void)state;
    set(NULL, "4");
    begin(&w, "1", "1");
    bad = where_of(run_as(&w, &w.a, FAKE("reset-hang")));
    wait_metric(&w, BEHIND, 1);
    end(&w);
    wait_dead((pid_t)bad.pid);
}

/* What cannot be kept ready is told, and everything runs all the same. */
static void without_reuse_everything_runs(void **state)
{
    struct where first, second;
    struct world w;

    (void)state;
    set(NULL, "0");
    begin(&w, "1", "1");
    first = who(&w, &w.a, WHO);
    second = who(&w, &w.a, WHO);
    assert_false(second.reused);
    assert_int_not_equal(first.pid, second.pid);
    assert_int_equal(metric(&w, TAKES("started")), 2);
    assert_int_equal(metric(&w, ENDS("unwanted")), 2);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skill_has_its_machine_again),
        cmocka_unit_test(nobody_gets_anothers_machine),
        cmocka_unit_test(a_digest_is_the_skill),
        cmocka_unit_test(fresh_means_alone),
        cmocka_unit_test(only_a_clean_end_gives_it_back),
        cmocka_unit_test(a_reset_that_fails_is_the_end),
        cmocka_unit_test(who_comes_again_waits_for_the_reset),
        cmocka_unit_test(connected_may_come_late),
        cmocka_unit_test(nothing_late_is_read),
        cmocka_unit_test(one_that_breaks_while_it_waits_is_dropped),
        cmocka_unit_test(uses_are_counted),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(places_are_bounded),
        cmocka_unit_test(fresh_ones_follow_the_demand),
        cmocka_unit_test(cpu_time_is_of_the_execution),
        cmocka_unit_test(none_outlives_its_daemon),
        cmocka_unit_test(stopping_while_it_resets),
        cmocka_unit_test(without_reuse_everything_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
