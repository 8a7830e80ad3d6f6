/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm cluster` and what `skillvm status` says of one, against a real nats-server. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct nats_world world;
static struct harness harness = {0};
static char printed[65536]; /* both streams of the last command */

static void expect(const char *arguments, int status, const char *part)
{
    char command[1024];
    size_t len;
    FILE *f;
    int ended;

    snprintf(command, sizeof(command), "SKILLVM_SOCKET='%s' exec '%s' %s 2>&1", harness.socket,
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

static void an_operator_has_its_verbs(void **state)
{
    (void)state;
    nats_begin(&world, 1);
    nats_start_node(&harness, &world, "rack1-3", "");
    harness_wait_ready(&harness);
    nats_wait_node(&harness, "\"reason\":\"not_initialised\"");
    expect("cluster status", 0, "state     cut off\n");
    assert_non_null(strstr(printed, "run `skillvm cluster init`, once"));
    expect("status", 0, "cluster  the cluster was not initialised");
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
    nats_publish(&world, "$KV.skillvm_nodes.x", "{", 1);
    nats_wait_refused(&harness, "malformed", "x");
    expect("cluster status", 0, " entries, the last one malformed at \"x\"\n");
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
