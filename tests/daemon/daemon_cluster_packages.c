/* SPDX-License-Identifier: Apache-2.0 */
/* Skills of a cluster that bring packages: an object of their own, at every node. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"
#include "tests/daemon/packages_world.h"

#include <string.h>

static void start_with_python(struct harness *h, const struct nats_world *nats,
                              const char *name)
{
    harness_init(h, "boot", "restore");
    harness_write(h, "python.manifest",
                  "language python 3.11.2\nprogram bash\nstandard json\nmodule yaml\n"
                  "package yaml-one 6.0\n");
    nats_start_node(h, nats, name, "");
}

/* What it brings is read with it, and which packages these are is told as at the first node. */
static void packages_come_with_their_skill(void **state)
{
    struct nats_world nats = {0};
    struct world a = {0};
    struct harness b = {0};
    struct answer one, other;

    (void)state;
    nats_begin(&nats, 1);
    start_with_python(&a.h, &nats, "a");
    nats_make(&a.h);
    start_with_python(&b, &nats, "b");
    nats_wait_node(&a.h, NODE_JOINED);
    nats_wait_node(&b, NODE_JOINED);
    harness_wait_ready(&b);
    expect(send_skill(&a, PUSH, good_skill("good")), 201, "\"name\":\"good\"");
    assert_int_equal(harness_count_files(&a.h, "objects"), 2);
    nodes_wait(&b, PUSH, 200, "\"name\":\"good\"");
    assert_int_equal(harness_count_files(&b, "objects"), 0);
    other = harness_run(&b, "{\"skill\":\"good\"}");
    assert_int_equal(other.status, 200);
    has(&other, "\"status\":\"success\"");
    assert_null(strstr(other.body, "\"packages_bytes\":0,"));
    answer_finish(&other);
    assert_int_equal(harness_count_files(&b, "objects"), 2);
    one = harness_get(&a.h, "/v1/skills/good/1/inspect");
    other = harness_get(&b, "/v1/skills/good/1/inspect");
    assert_int_equal(one.status, 200);
    assert_string_equal(one.body, other.body);
    answer_finish(&one);
    answer_finish(&other);
    expect(nodes_admin_sure(&b, "DELETE", "/v1/skills/good/1", ""), 204, "");
    nodes_wait(&a.h, "/v1/skills/good/1", 404, "");
    assert_int_equal(harness_count_files(&b, "objects"), 0);
    nodes_end(&b);
    nodes_end(&a.h);
    nats_end(&nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_come_with_their_skill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
