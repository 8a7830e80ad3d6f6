/* SPDX-License-Identifier: Apache-2.0 */
/* What other nodes say of their tenants: as it is read from a stranger, and its sums. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/loads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     1000000ull
#define S      (1000 * MS)
#define FIRST  "default"
#define SECOND "ten_0123456789abcdef0123456789abcdef"
#define HEAD   "{\"schema\":1,\"node\":\"n\",\"instance\":\"i\",\"free\":2,\"tenants\":"

static struct load load; /* large */
static struct load_charges charges;

static void begin(const char *node, const char *instance, unsigned free_slots)
{
    memset(&load, 0, sizeof(load));
    snprintf(load.node, sizeof(load.node), "%s", node);
    snprintf(load.instance, sizeof(load.instance), "%s", instance);
    load.free = free_slots;
}

static void add(const char *tenant, unsigned running, unsigned waiting, uint64_t waits_ms,
                uint64_t taken)
{
    struct load_tenant *t = &load.tenants[load.n_tenants++];

    snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
    t->running = running;
    t->waiting = waiting;
    t->waits_ms = waits_ms;
    t->taken = taken;
}

/* The largest that there can be fits, and comes back as it was. */
static void what_is_written_is_read(void **state)
{
    static struct load back;
    enum node_refusal why;
    struct buf text;

    (void)state;
    begin("n", "0123456789abcdef0123456789abcdef", 1000000);
    for (unsigned i = 0; i < LOAD_TENANTS_MAX; i++) {
        char id[TENANT_ID_SIZE];

        snprintf(id, sizeof(id), "%.32s%04x", SECOND, i);
        add(id, 1000000, i, 1000000000000, 1000000000000 - i);
    }
    assert_int_equal(load_entry_write(&load, &text), 0);
    assert_int_equal(load_entry_parse("n", buf_cstr(&text), text.len, &back, &why), 0);
    assert_int_equal(back.n_tenants, LOAD_TENANTS_MAX);
    assert_int_equal(back.free, load.free);
    assert_string_equal(back.instance, load.instance);
    for (size_t i = 0; i < LOAD_TENANTS_MAX; i++) {
        assert_string_equal(back.tenants[i].tenant, load.tenants[i].tenant);
        assert_int_equal(back.tenants[i].waiting, load.tenants[i].waiting);
        assert_true(back.tenants[i].waits_ms == load.tenants[i].waits_ms);
        assert_true(back.tenants[i].taken == load.tenants[i].taken);
    }
    assert_int_equal(load_entry_parse("m", buf_cstr(&text), text.len, &back, &why), -EINVAL);
    assert_int_equal(why, NODE_WRONG_NAME);
    buf_finish(&text);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum node_refusal why;
    } all[] = {
        {"", NODE_MALFORMED},
        {"[]", NODE_MALFORMED},
        {"{\"schema\":2}", NODE_NEWER},
        {"{\"schema\":1,\"node\":\"n\"}", NODE_MALFORMED},
        {HEAD "{}}", NODE_MALFORMED},
        {"{\"schema\":1,\"node\":\"n\",\"instance\":\"\",\"free\":2,\"tenants\":[]}",
         NODE_MALFORMED},
        {HEAD "[1]}", NODE_MALFORMED},
        {HEAD "[[]]}", NODE_MALFORMED},
        {HEAD "[[\"" FIRST "\",1,1,1]]}", NODE_MALFORMED},
        {HEAD "[[\"" FIRST "\",-1,1,1,1]]}", NODE_MALFORMED},
        {HEAD "[[\"" FIRST "\",1.5,1,1,1]]}", NODE_MALFORMED},
        {HEAD "[[\"" FIRST "\",1000001,1,1,1]]}", NODE_MALFORMED},
        {HEAD "[[\"no/tenant\",1,1,1,1]]}", NODE_MALFORMED},
        {HEAD "[[\"" SECOND "0\",1,1,1,1]]}", NODE_MALFORMED},
    };
    enum node_refusal why;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_int_equal(load_entry_parse("n", all[i].text, strlen(all[i].text), &load, &why),
                         -EINVAL);
        assert_int_equal(why, all[i].why);
    }
    /* A later version may say more. */
    {
        static const char more[] = HEAD "[[\"" FIRST "\",1,2,3,4,5,{}]],\"x\":null}";

        assert_int_equal(load_entry_parse("n", more, strlen(more), &load, &why), 0);
        assert_int_equal(load.tenants[0].taken, 4);
    }
}

static bool all_but_b(void *ctx, const char *node, const char *instance)
{
    (void)ctx;
    (void)instance;
    return strcmp(node, "b") != 0;
}

static void the_last_word_of_each_counts(void **state)
{
    struct loads loads = {0};

    (void)state;
    begin("a", "1", 0);
    add(FIRST, 2, 3, 0, 0);
    assert_int_equal(loads_take(&loads, &load, 10 * S, &charges), 0);
    begin("b", "1", 0);
    add(FIRST, 5, 0, 0, 0);
    add(SECOND, 1, 1, 0, 0);
    assert_int_equal(loads_take(&loads, &load, 11 * S, &charges), 0);
    assert_int_equal(loads_of(&loads, FIRST).running, 7);
    assert_int_equal(loads_of(&loads, FIRST).waiting, 3);
    assert_int_equal(loads_of(&loads, SECOND).running, 1);
    assert_int_equal(loads.running, 8);
    begin("a", "1", 0);
    assert_int_equal(loads_take(&loads, &load, 12 * S, &charges), 0);
    assert_int_equal(loads_of(&loads, FIRST).running, 5);
    assert_int_equal(loads_of(&loads, FIRST).waiting, 0);
    /* One that is gone, and one that is silent. */
    loads_forget(&loads, 0, all_but_b, NULL);
    assert_int_equal(loads_of(&loads, FIRST).running, 0);
    assert_int_equal(loads_of(&loads, SECOND).waiting, 0);
    assert_int_equal(loads.n, 1);
    loads_forget(&loads, 12 * S + 1, all_but_b, NULL);
    assert_int_equal(loads.n, 0);
    assert_int_equal(loads.running, 0);
    loads_finish(&loads);
}

/* A node says nothing twice of one tenant; who does counts twice and breaks nothing. */
static void a_tenant_that_is_there_twice_counts_twice(void **state)
{
    struct loads loads = {0};

    (void)state;
    begin("a", "1", 0);
    add(FIRST, 2, 0, 0, 0);
    add(FIRST, 3, 0, 0, 0);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(loads_of(&loads, FIRST).running, 5);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(loads_of(&loads, FIRST).running, 5);
    loads_finish(&loads);
    assert_int_equal(loads_of(&loads, FIRST).running, 0);
}

static void what_is_new_of_a_rate_is_charged_once(void **state)
{
    struct loads loads = {0};

    (void)state;
    /* Nobody knows what this process told before. */
    begin("a", "1", 0);
    add(FIRST, 0, 0, 0, 7);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(charges.n, 0);
    begin("a", "1", 0);
    add(SECOND, 0, 0, 0, 2);
    add(FIRST, 0, 0, 0, 9);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(charges.n, 2);
    assert_string_equal(charges.list[0].tenant, SECOND);
    assert_int_equal(charges.list[0].n, 2);
    assert_int_equal(charges.list[1].n, 2);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(charges.n, 0);
    /* It was whole in between. */
    begin("a", "1", 0);
    add(FIRST, 0, 0, 0, 1);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(charges.n, 1);
    assert_int_equal(charges.list[0].n, 1);
    /* Another process of the name. */
    begin("a", "2", 0);
    add(FIRST, 0, 0, 0, 50);
    assert_int_equal(loads_take(&loads, &load, S, &charges), 0);
    assert_int_equal(charges.n, 0);
    loads_finish(&loads);
}

/* Who waits where no slot is free waits for that, and for nobody's place. */
static void the_oldest_that_can_run_is_found(void **state)
{
    struct loads loads = {0};

    (void)state;
    begin("a", "1", 0);
    add(FIRST, 0, 1, 5000, 0);
    assert_int_equal(loads_take(&loads, &load, 10 * S, &charges), 0);
    assert_int_equal(loads_waits_since(&loads, FIRST), 0);
    begin("b", "1", 1);
    add(SECOND, 0, 1, 9000, 0);
    add(FIRST, 0, 1, 2000, 0);
    assert_int_equal(loads_take(&loads, &load, 10 * S, &charges), 0);
    assert_true(loads_waits_since(&loads, FIRST) == 8 * S);
    begin("c", "1", 1);
    add(FIRST, 1, 0, 7000, 0);
    assert_int_equal(loads_take(&loads, &load, 10 * S, &charges), 0);
    assert_true(loads_waits_since(&loads, FIRST) == 8 * S);
    begin("d", "1", 1);
    add(FIRST, 1, 1, 1000000, 0);
    assert_int_equal(loads_take(&loads, &load, 10 * S, &charges), 0);
    assert_true(loads_waits_since(&loads, FIRST) == 1);
    assert_int_equal(loads_free(&loads, "d", "1"), 1);
    assert_int_equal(loads_free(&loads, "a", "1"), 0);
    /* Of another process it says nothing, and of a node that says nothing neither. */
    assert_int_equal(loads_free(&loads, "d", "2"), 0);
    assert_int_equal(loads_free(&loads, "e", "1"), 0);
    loads_finish(&loads);
}

static void there_is_a_bound_to_nodes(void **state)
{
    struct loads loads = {0};

    (void)state;
    for (unsigned i = 0; i <= LOADS_NODES_MAX; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%u", i);
        begin(name, "1", 0);
        add(FIRST, 1, 0, 0, 0);
        assert_int_equal(loads_take(&loads, &load, S, &charges),
                         i < LOADS_NODES_MAX ? 0 : -E2BIG);
    }
    assert_int_equal(loads_of(&loads, FIRST).running, LOADS_NODES_MAX);
    loads_finish(&loads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_last_word_of_each_counts),
        cmocka_unit_test(a_tenant_that_is_there_twice_counts_twice),
        cmocka_unit_test(what_is_new_of_a_rate_is_charged_once),
        cmocka_unit_test(the_oldest_that_can_run_is_found),
        cmocka_unit_test(there_is_a_bound_to_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
