/* SPDX-License-Identifier: Apache-2.0 */
/* Skills of a cluster that bring packages: an object of their own, at every node. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"
#include "tests/daemon/packages_world.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    assert_true(answer_number(&other, "packages_bytes") > 0);
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

/* Says of itself that it takes --count, as the stand-in's guest is told. */
#define SCRIPT                                                                                 \
    "import argparse\n#probe:{\"version\":1,\"doc\":\"\",\"parser\":{\"description\":null,"    \
    "\"actions\":[{\"kind\":\"store\",\"dest\":\"count\",\"options\":[\"--count\"],"           \
    "\"nargs\":null,\"type\":\"integer\",\"required\":false,\"help\":null}]}}\n"

/* Takes from a node the object that is not the skill's archive, as where it went to make room.
 */
static void lose_packages(const struct harness *h)
{
    struct answer skill = harness_get(h, PUSH "/told/latest");
    char path[256];
    struct dirent *entry;
    DIR *dir;

    assert_int_equal(skill.status, 200);
    snprintf(path, sizeof(path), "%s/objects", h->data);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.' && !strstr(skill.body, entry->d_name))
            assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
    }
    closedir(dir);
    answer_finish(&skill);
    assert_int_equal(harness_count_files(h, "objects"), 1);
}

/* The script of a skill whose packages could not be read is looked at when they can be. */
static void a_look_without_packages_is_no_failure(void **state)
{
    struct nats_world nats = {0};
    struct part parts[] = {
        {"requirements.txt", text("base\n")},
        {"wheels/base-1.0-py3-none-any.whl", make_wheel("base", "", "VALUE = 1\n")},
        {NULL, {NULL, 0}}};
    struct world a = {0};
    struct harness b = {0};
    struct answer list;

    (void)state;
    nats_begin(&nats, 1);
    start_with_python(&a.h, &nats, "a");
    nats_make(&a.h);
    start_with_python(&b, &nats, "b");
    nats_wait_node(&a.h, NODE_JOINED);
    nats_wait_node(&b, NODE_JOINED);
    harness_wait_ready(&b);
    /* One that names its image, for which nobody looks into its packages. */
    expect(send_skill(&a, PUSH, make_skill("told\nimage: python", SCRIPT, parts)), 201,
           "\"name\":\"told\"");
    nodes_wait(&b, PUSH "/told/latest", 200, "main.py");
    lose_packages(&b);
    nats_kill(&nats, 0);
    nats_wait_node(&b, "\"state\":\"cut_off\"");
    list = harness_get(&b, "/v1/tools");
    assert_int_equal(list.status, 200);
    has(&list, "\"name\":\"told\"");
    assert_null(strstr(list.body, "\"count\""));
    answer_finish(&list);
    nats_restart(&nats, 0);
    nats_wait_node(&b, NODE_JOINED);
    expect(harness_get(&b, "/v1/tools"), 200, "\"count\"");
    assert_int_equal(harness_count_files(&b, "objects"), 2);
    nodes_end(&b);
    nodes_end(&a.h);
    nats_end(&nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_come_with_their_skill),
        cmocka_unit_test(a_look_without_packages_is_no_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
