/* SPDX-License-Identifier: Apache-2.0 */
/* What an end leaves behind: of a machine whose skill had not begun, an execution that is to
   run all the same; of an execution, no memory. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define expect harness_expect

#define FAKE(mode) "{\"skill\":\"demo\",\"timeout\":60,\"env\":{\"FAKE\":\"" mode "\"}}"

/* What the daemon may keep of executions that took much. */
#define KEPT_KIB 5120

static void begin(struct harness *h, const char *image)
{
    harness_init(h, "boot", image);
    harness_start(h, NULL);
    assert_int_equal(harness_push(h, "demo", "1", "print(1)"), 201);
}

static void end(struct harness *h)
{
    harness_assert_clean(h);
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_finish(h);
}

static void assert_counts(const struct harness *h, unsigned died, unsigned taken)
{
    char line[96];

    snprintf(line, sizeof(line), "\nskillvm_vmm_faults_total{cause=\"vmm_died\"} %u\n", died);
    assert_true(harness_metrics_have(h, line));
    snprintf(line, sizeof(line), "\nskillvm_machine_takes_total{kind=\"started\"} %u\n", taken);
    assert_true(harness_metrics_have(h, line));
}

/* A machine that died before it was given anything is one machine, and no execution, lost. */
static void an_execution_gets_another_machine(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "restore=die-first");
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    assert_counts(&h, 1, 2);
    end(&h);
}

/* Nor where it had all of it, and had not yet said that the skill begins; but not for ever. */
static void an_execution_that_had_not_begun_is_begun_again(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "restore");
    expect(harness_run(&h, FAKE("die-first")), 200, "\"status\":\"success\"");
    assert_counts(&h, 1, 2);
    expect(harness_run(&h, FAKE("die-early")), 200, "ended (before the skill ran)");
    assert_counts(&h, 3, 4);
    /* Not where it has run: once is never twice. */
    expect(harness_run(&h, FAKE("die")), 200, "\"status\":\"failed\"");
    assert_counts(&h, 4, 5);
    end(&h);
}

/* Whoever starts the daemon may not care for the ends of children; it waits for its own. */
static void children_are_waited_for_whoever_started_it(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "boot", "restore");
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    harness_start(&h, NULL);
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    assert_int_equal(harness_push(&h, "demo", "1", "print(1)"), 201);
    expect(harness_run(&h, FAKE("die")), 200, "\"status\":\"failed\"");
    assert_true(harness_metrics_have(&h, "\nskillvm_vmm_deaths_total{cause=\"exit_1\"} 1\n"));
    end(&h);
}

#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
/* Each has megabytes of log, output or files, of which the daemon has blocks of all sizes. */
static void what_executions_took_goes_back(void **state)
{
    static const char *const how[] = {"flood", "greedy", "bulk"};
    struct harness h;
    char json[128];
    long before_kib;

    (void)state;
    setenv("SKILLVM_RETENTION_INTERVAL", "100ms", 1);
    begin(&h, "restore");
    unsetenv("SKILLVM_RETENTION_INTERVAL");
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    before_kib = harness_memory_kib(&h);
    for (unsigned i = 0; i < 12; i++) {
        snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"%s\"}}",
                 how[i % 3]);
        expect(harness_run(&h, json), 200, "execution_id");
    }
    harness_until(harness_memory_kib(&h) - before_kib <= KEPT_KIB);
    end(&h);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_execution_gets_another_machine),
        cmocka_unit_test(an_execution_that_had_not_begun_is_begun_again),
        cmocka_unit_test(children_are_waited_for_whoever_started_it),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(what_executions_took_goes_back),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
