/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself, as it is written and as it is read from a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/nodes.h"

#include <stdlib.h>
#include <string.h>

#define REST                                                                                   \
    "\"instance\":\"i\",\"state\":\"joined\",\"version\":\"0.2.0+x~1\",\"cpu\":\"\","          \
    "\"kvm\":false,\"memory_bytes\":1,\"slots\":2,\"started_ms\":3,"
#define LISTS "\"images\":[\"python\"],\"labels\":{\"rack\":\"a7\"}"
#define NAMED "{\"schema\":1,\"node\":\"n\","

static struct node_entry filled(void)
{
    struct node_entry e = {.started_ns = 1700000000123000000u,
                           .memory_bytes = 1ull << 40,
                           .slots = 256,
                           .kvm = true,
                           .n_images = NODE_IMAGES_MAX,
                           .n_labels = FLEET_LABELS_MAX,
                           .n_snapshots = NODE_SNAPSHOTS_MAX};

    memset(e.node, 'n', sizeof(e.node) - 1);
    memset(e.instance, 'f', sizeof(e.instance) - 1);
    memset(e.state, 's', sizeof(e.state) - 1);
    memset(e.version, '9', sizeof(e.version) - 1);
    memset(e.cpu, 'c', sizeof(e.cpu) - 1);
    for (size_t i = 0; i < NODE_IMAGES_MAX; i++)
        memset(e.images[i], 'i', NODE_IMAGE_SIZE - 1);
    for (size_t i = 0; i < NODE_SNAPSHOTS_MAX; i++)
        e.snapshots[i] = UINT64_MAX - i;
    e.snapshots[1] = 0;
    for (size_t i = 0; i < FLEET_LABELS_MAX; i++) {
        snprintf(e.labels[i].key, FLEET_LABEL_SIZE, "%02zu%.62s", i, e.node);
        memset(e.labels[i].value, 'v', FLEET_LABEL_SIZE - 1);
    }
    return e;
}

/* The largest that there can be fits, and comes back as it was. */
static void what_is_written_is_read(void **state)
{
    const struct node_entry e = filled();
    struct node_entry back = {0};
    enum node_refusal why;
    struct buf text;

    (void)state;
    assert_int_equal(node_entry_write(&e, &text), 0);
    assert_int_equal(node_entry_parse(e.node, buf_cstr(&text), text.len, &back, &why), 0);
    assert_memory_equal(&e, &back, sizeof(e));
    buf_finish(&text);
}

static void what_is_unknown_is_left_alone(void **state)
{
    static const char text[] = NAMED REST "\"later\":[{\"x\":null}]," LISTS "}";
    struct node_entry e;
    enum node_refusal why;

    (void)state;
    assert_int_equal(node_entry_parse("n", text, sizeof(text) - 1, &e, &why), 0);
    assert_string_equal(e.images[0], "python");
    assert_string_equal(e.labels[0].key, "rack");
    assert_int_equal(e.started_ns, 3000000);
    /* What is not said, as by an earlier version. */
    assert_int_equal(e.n_snapshots, 0);
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *key;
        const char *text;
        enum node_refusal why;
    } cases[] = {
        {"n", "", NODE_MALFORMED},
        {"n", "null", NODE_MALFORMED},
        {"n", NAMED REST LISTS, NODE_MALFORMED},
        {"n", NAMED REST LISTS "}x", NODE_MALFORMED},
        {"n", "{\"node\":\"n\"," REST LISTS "}", NODE_MALFORMED},
        {"n", "{\"schema\":0,\"node\":\"n\"," REST LISTS "}", NODE_MALFORMED},
        {"n", "{\"schema\":-1,\"node\":\"n\"," REST LISTS "}", NODE_MALFORMED},
        {"n", "{\"schema\":1.0,\"node\":\"n\"," REST LISTS "}", NODE_MALFORMED},
        {"n", "{\"schema\":99999999999999999999,\"node\":\"n\"," REST LISTS "}",
         NODE_MALFORMED},
        {"n", "{\"schema\":2}", NODE_NEWER},
        {"m", NAMED REST LISTS "}", NODE_WRONG_NAME},
        {"", NAMED REST LISTS "}", NODE_WRONG_NAME},
        {"n.n", "{\"schema\":1,\"node\":\"n.n\"," REST LISTS "}", NODE_WRONG_NAME},
        {"n", "{\"schema\":1,\"node\":7," REST LISTS "}", NODE_MALFORMED},
        {"n", "{\"schema\":1,\"node\":\"\\u006e\"," REST LISTS "}", NODE_MALFORMED},
        {"n", NAMED REST "\"images\":{},\"labels\":{}}", NODE_MALFORMED},
        {"n", NAMED REST "\"images\":[1],\"labels\":{}}", NODE_MALFORMED},
        {"n", NAMED REST "\"images\":[],\"labels\":[]}", NODE_MALFORMED},
        {"n", NAMED REST "\"images\":[],\"labels\":{\"a b\":\"\"}}", NODE_MALFORMED},
        {"n", NAMED REST "\"images\":[],\"labels\":{\"a\":\"\",\"a\":\"\"}}", NODE_MALFORMED},
        {"n", NAMED LISTS "}", NODE_MALFORMED},
        {"n", NAMED REST LISTS ",\"snapshots\":7}", NODE_MALFORMED},
        {"n", NAMED REST LISTS ",\"snapshots\":[7]}", NODE_MALFORMED},
        {"n", NAMED REST LISTS ",\"snapshots\":[\"00000000000000a\"]}", NODE_MALFORMED},
        {"n", NAMED REST LISTS ",\"snapshots\":[\"000000000000000g\"]}", NODE_MALFORMED},
        {"n", NAMED REST LISTS ",\"snapshots\":[\"-00000000000000a\"]}", NODE_MALFORMED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct node_entry e = {.slots = 7};
        enum node_refusal why = NODE_TOO_MANY;

        if (node_entry_parse(cases[i].key, cases[i].text, strlen(cases[i].text), &e, &why) == 0)
            fail_msg("%s was taken", cases[i].text);
        if (why != cases[i].why)
            fail_msg("%s: %s", cases[i].text, node_refusal_names[why]);
        assert_int_equal(e.slots, 7);
    }
}

static void size_is_bounded(void **state)
{
    char *text = malloc(NODE_ENTRY_BYTES_MAX + 1);
    struct node_entry e;
    enum node_refusal why;

    (void)state;
    memset(text, ' ', NODE_ENTRY_BYTES_MAX + 1);
    assert_int_not_equal(node_entry_parse("n", text, NODE_ENTRY_BYTES_MAX + 1, &e, &why), 0);
    assert_int_equal(why, NODE_TOO_LARGE);
    assert_int_not_equal(node_entry_parse("n", text, NODE_ENTRY_BYTES_MAX, &e, &why), 0);
    assert_int_equal(why, NODE_MALFORMED);
    free(text);
}

static void take(struct nodes *nodes, const char *name, uint64_t revision, uint64_t renewed_ns,
                 bool is_removed)
{
    struct cluster_entry entry = {.revision = revision, .is_removed = is_removed};
    char text[512];

    snprintf(entry.key, sizeof(entry.key), "%s", name);
    snprintf(text, sizeof(text), "{\"schema\":1,\"node\":\"%s\"," REST LISTS "}", name);
    entry.data = text;
    entry.len = strlen(text);
    nodes_take(nodes, &entry, renewed_ns);
}

static void there_is_room_for_so_many(void **state)
{
    struct nodes nodes = {0};
    char name[16];

    (void)state;
    for (unsigned i = 0; i < NODES_MAX + 2; i++) {
        snprintf(name, sizeof(name), "n%u", (i * 7919u) % 65536u);
        take(&nodes, name, i + 1, 1, false);
    }
    assert_int_equal(nodes.n, NODES_MAX);
    assert_int_equal(nodes.refused.n[NODE_TOO_MANY], 2);
    for (size_t i = 1; i < nodes.n; i++)
        assert_true(strcmp(nodes.list[i - 1]->entry.node, nodes.list[i]->entry.node) < 0);
    /* Those that are known go on to be renewed, and one that goes makes room. */
    take(&nodes, "n0", 5000, 9, false);
    assert_int_equal(nodes.refused.n[NODE_TOO_MANY], 2);
    take(&nodes, "n0", 5001, 9, true);
    take(&nodes, "new", 5002, 9, false);
    assert_int_equal(nodes.n, NODES_MAX);
    nodes_forget_before(&nodes, 9);
    assert_int_equal(nodes.n, 1);
    assert_string_equal(nodes.list[0]->entry.node, "new");
    nodes_finish(&nodes);
}

/* What comes late changes nothing, until the bucket is watched anew. */
static void the_newest_counts(void **state)
{
    struct nodes nodes = {0};

    (void)state;
    take(&nodes, "n", 5, 50, false);
    take(&nodes, "n", 4, 60, true);
    assert_int_equal(nodes.n, 1);
    take(&nodes, "n", 4, 60, false);
    assert_int_equal(nodes.list[0]->renewed_ns, 50);
    nodes_begin(&nodes);
    take(&nodes, "n", 1, 70, false);
    assert_int_equal(nodes.list[0]->renewed_ns, 70);
    take(&nodes, "n", 2, 70, true);
    take(&nodes, "m", 3, 70, true);
    assert_int_equal(nodes.n, 0);
    nodes_finish(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_unknown_is_left_alone),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(there_is_room_for_so_many),
        cmocka_unit_test(the_newest_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
