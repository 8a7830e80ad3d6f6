/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm cluster` and what `skillvm status` says of one, against a real nats-server. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600,\"async\":true}"

static struct nats_world world;
static struct harness harness = {0};
static char printed[65536]; /* both streams of the last command */

static void expect(const char *arguments, int status, const char *part)
{
    char command[1024];
    size_t len;
    FILE *f;
    int ended;

    snprintf(command, sizeof(command),
             "export SKILLVM_SOCKET='%s'; skillvm='%s'; exec 2>&1; $skillvm %s", harness.socket,
             SKILLVM, arguments);
    f = popen(command, "re");
    assert_non_null(f);
    len = fread(printed, 1, sizeof(printed) - 1, f);
    printed[len] = '\0';
    ended = pclose(f);
    ended = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    if (ended != status || !strstr(printed, part))
        fail_msg("skillvm %s: status %d: %s; expected %d with %s", arguments, ended, printed,
                 status, part);
}

/* A command that ends by the interrupt that it gets once it waits: when it catches SIGTERM. */
static void expect_interrupted(const char *arguments, const char *part)
{
    char command[512];

    snprintf(command, sizeof(command),
             "%s & pid=$!; for i in $(seq 1000); do "
             "! grep -Eq 'SigCgt:.*[4-7c-f][0-9a-f]{3}$' /proc/$pid/status || break; "
             "sleep 0.05; done; kill -TERM $pid; wait $pid",
             arguments);
    expect(command, 128 + SIGTERM, part);
}

/* It waits for what runs, and what it began stays so. */
static void draining_is_an_operators(void)
{
    assert_int_equal(harness_push(&harness, "demo", "1.0", "print(1)"), 201);
    expect("cluster drain rack1-3 --timeout never", 2, "use an amount such as 30s or 2m");
    expect("cluster drain", 2, "no fewer than 1");
    expect("cluster drain other", 125, "there is no node other");
    harness_expect(harness_run(&harness, LONG), 202, "accepted");
    harness_wait_metrics(&harness, "\nskillvm_executions_running 1\n", true);
    expect("cluster drain rack1-3 --timeout 500ms", 124,
           "the time is up: rack1-3 is still being drained (1 run and 0 wait there)");
    expect("cluster status", 0, "drained   it takes no executions\n");
    /* An interrupt leaves it so. */
    expect_interrupted("cluster drain rack1-3",
                       "interrupted: rack1-3 is still being drained (1 run and 0 wait there)");
    expect("cluster drain --undo rack1-3", 0, "rack1-3 takes executions again\n");
    expect("cluster drain --undo --json rack1-3", 0, "\"draining\":false,\"running\":1");
    expect("cluster drain rack1-3 --json & sleep 0.1; $skillvm exec cancel $($skillvm exec "
           "list --status running --json | grep -o 'exec_[0-9a-f]*') >/dev/null; wait $!",
           0, "\"draining\":true,\"running\":0,\"waiting\":0");
    expect("cluster drain rack1-3", 0, "rack1-3 is drained: nothing runs there\n");
    expect("status", 0, "this node is being drained: it takes no executions");
    expect("cluster drain --undo rack1-3", 0, "rack1-3 takes executions again\n");
}

/* Of all that it takes from others, and that there is no audit of theirs. */
static void what_it_left_out_is_shown(void)
{
    static const struct {
        const char *what;
        const char *subject;
        const char *key;
        const char *why;
    } cases[] = {
        {"nodes", "$KV.skillvm_nodes.x", "x", "malformed"},
        {"changes", "$KV.skillvm_registry.key.y", "key.y", "wrong_name"},
        {"executions", "$KV.skillvm_executions.z", "z", "wrong_name"},
        {"audit", "$KV.skillvm_audit.rack1-3.v", "rack1-3.v", "wrong_name"},
    };
    char part[128];

    expect("cluster status", 0, "changes ");
    assert_null(strstr(printed, "left out"));
    assert_null(strstr(printed, "audit"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nats_publish(&world, cases[i].subject, "[", 1);
        nats_wait_refused(&harness, cases[i].why, cases[i].key);
        snprintf(part, sizeof(part), "left out  1 entries of %s, the last one %s at \"%s\"\n",
                 cases[i].what, cases[i].why, cases[i].key);
        expect("cluster status", 0, part);
    }
    /* Nobody keeps that for who does not listen at the moment. */
    for (unsigned i = 0; i < 4000 && !strstr(printed, " entries of loads, the last one ");
         i++) {
        nats_tell(&world, "skillvm.load.w", "[", 1);
        expect("cluster status", 0, "left out ");
    }
    expect("cluster status", 0, " entries of loads, the last one malformed at \"w\"\n");
    nats_delete_bucket(&world, "KV_skillvm_audit");
    nats_wait_node(&harness, "\"audit\":{\"followed\":false");
    expect("cluster status", 0, "audit     not followed: ");
    assert_non_null(strstr(printed, "skillvm cluster init"));
    assert_non_null(strstr(printed, "state     joined\n"));
    expect("cluster init", 0, "initialised\n");
}

/* A node is joined all the same, so nothing else says so. */
static void what_is_full_is_shown(void)
{
    int status = 201;

    nats_limit(&world, NATS_CHANGES, 4096);
    for (unsigned i = 0; status == 201 && i < 100; i++) {
        char json[32];
        struct answer a;

        snprintf(json, sizeof(json), "{\"name\":\"t%u\"}", i);
        a = harness_request(&harness, "POST", "/v1/admin/tenants",
                            "Content-Type: application/json\r\n", json, strlen(json));
        status = a.status;
        answer_finish(&a);
    }
    assert_int_equal(status, 503);
    expect("cluster status", 0, "full      the servers have no room");
    assert_non_null(strstr(printed, "state     joined\n"));
}

/* Until it lacks nothing but its cluster. */
static void wait_unready(void)
{
    bool says = false;

    for (unsigned i = 0; !says && i < 4000; i++) {
        struct answer a = harness_get(&harness, "/ready");

        says = a.status == 503 && answer_has(&a, "\"status\":\"cut_off\"");
        answer_finish(&a);
        usleep(20000);
    }
    assert_true(says);
}

static void an_operator_has_its_verbs(void **state)
{
    (void)state;
    nats_begin(&world, 1);
    nats_start_node(&harness, &world, "rack1-3", "");
    nats_wait_node(&harness, "\"reason\":\"not_initialised\"");
    wait_unready();
    expect("health", 1, "cluster: the cluster was not initialised");
    expect("cluster status", 0, "state     cut off\n");
    assert_non_null(strstr(printed, "run `skillvm cluster init`, once"));
    expect("status", 0, "up       cluster: the cluster was not initialised");
    expect("cluster init", 0, "initialised\n");
    expect("cluster init", 0, "it is initialised already\n");
    expect("cluster init --json", 0, "\"made\":false");
    nats_wait_node(&harness, "\"node\":\"rack1-3\",\"alive\":true,\"state\":\"joined\"");
    expect("status", 0, "cluster  joined\n");
    expect("status --json", 0, "\"cluster\":\"ok\"");
    expect("cluster status", 0, "state     joined\n");
    assert_non_null(strstr(printed, "server    nats://127.0.0.1:"));
    assert_non_null(strstr(printed, "\nrack1-3  joined  "));
    expect("cluster status -o json", 0, "\"state\":\"joined\"");
    expect("cluster rm rack1-3", 125, "the node rack1-3 is alive");
    expect("cluster rm other", 125, "there is no node other");
    expect("cluster rm", 2, "no fewer than 1");
    expect("cluster rm --help", 0, "Removes the entry of a node that is gone");
    draining_is_an_operators();
    what_it_left_out_is_shown();
    what_is_full_is_shown();
    nats_kill(&world, 0);
    expect("cluster init", 125, "no server can be reached");
    assert_int_equal(harness_stop(&harness, SIGTERM), 0);
    harness_finish(&harness);
    nats_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_operator_has_its_verbs)};

    unsetenv("SKILLVM_SERVER");
    unsetenv("SKILLVM_API_KEY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
