/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes along what an answer said he has seen finds it at every node. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect harness_expect

#define ROUNDS 100u
#define HEADER "Skillvm-Seen: "
#define JSON   "Content-Type: application/json\r\n"
#define RUN                                                                                    \
    "{\"code\":\"print(1)\",\"env\":{\"FAKE\":\"sleep\",\"FAKE_DATA\":\"0\"},\"async\":true}"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

static void begin(struct world *w)
{
    nodes_begin_two(&w->nats, &w->a, "", &w->b, "");
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* The header of an answer, as a request sends it. */
static void take_seen(const struct answer *a, char ret[128])
{
    const char *at = strstr(a->headers, HEADER);

    assert_non_null(at);
    snprintf(ret, 128, "%.*s\r\n", at ? (int)strcspn(at, "\r") : 0, at ? at : "");
}

/*
 * Asks a node for what was seen at another, until it has that: it waits for it by itself for 2
 * s, which a busy machine may need more of, and never answers without it.
 */
static struct answer ask_seen(const struct harness *h, const char *path, const char *seen)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    for (;;) {
        uint64_t asked_ns = clock_monotonic_ns();
        struct answer a = harness_request(h, "GET", path, seen, "", 0);

        if (a.status != 503 || clock_monotonic_ns() < asked_ns + NS_PER_SECOND ||
            clock_monotonic_ns() > until_ns)
            return a;
        answer_finish(&a);
    }
}

/* Makes something at one node, and asks the other for it at once. */
static void make_and_ask(const struct harness *at, const struct harness *other,
                         const char *path, const char *json, const char *id_begins)
{
    struct answer made = harness_request(at, "POST", path, JSON, json, strlen(json));
    char seen[128], there[256], id[64];
    const char *found = strstr(made.body, id_begins);

    if (made.status / 100 != 2 || !found)
        fail_msg("got %d %s", made.status, made.body);
    snprintf(id, sizeof(id), "%.*s", (int)(strlen(id_begins) + 32), found ? found : "");
    snprintf(there, sizeof(there), "%.*s/%s", (int)strcspn(path, "?"), path, id);
    take_seen(&made, seen);
    answer_finish(&made);
    expect(ask_seen(other, there, seen), 200, id);
}

static void what_one_made_the_other_has(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct harness *at = i % 2 ? &w.a : &w.b, *other = i % 2 ? &w.b : &w.a;

        make_and_ask(at, other, "/v1/files?name=x", "[]", "file_");
        make_and_ask(at, other, "/v1/executions", RUN, "exec_");
    }
    end(&w);
}

/* What was removed is not there, for who knows of it. */
static void what_one_removed_the_other_has_not(void **state)
{
    struct world w = {0};
    char seen[128], path[64], id[38];

    (void)state;
    begin(&w);
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        struct answer a = harness_request(&w.a, "POST", "/v1/files?name=x", JSON, "1", 1);

        answer_text(&a, "id", id, sizeof(id));
        answer_finish(&a);
        snprintf(path, sizeof(path), "/v1/files/%s", id);
        nodes_wait(&w.b, path, 200, "");
        a = harness_request(&w.a, "DELETE", path, "", "", 0);
        assert_int_equal(a.status, 204);
        take_seen(&a, seen);
        answer_finish(&a);
        expect(ask_seen(&w.b, path, seen), 404, "");
    }
    end(&w);
}

static void what_nobody_has_is_told(void **state)
{
    static const char *const wrong[] = {"",
                                        "1",
                                        "1.",
                                        ".1",
                                        "1.2.3",
                                        "-1.2",
                                        "a",
                                        "1 ",
                                        "1.b",
                                        "1. 2 3",
                                        "99999999999999999999.1"};
    struct world w = {0};
    char header[128], seen[128];
    struct answer a;

    (void)state;
    begin(&w);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(header, sizeof(header), HEADER "%s\r\n", wrong[i]);
        expect(harness_request(&w.a, "GET", "/v1/files", header, "", 0), 400, "Skillvm-Seen");
    }
    a = harness_request(&w.a, "GET", "/v1/files", HEADER "1.9999999999999999\r\n", "", 0);
    assert_non_null(strstr(a.headers, "Retry-After: 1\r\n"));
    expect(a, 503, "cluster_unavailable");
    expect(harness_request(&w.a, "GET", "/v1/files", HEADER "9999999999999999.1\r\n", "", 0),
           503, "cluster_unavailable");
    /* Who nobody knows waits for nothing, and is told nothing. */
    a = harness_request(&w.a, "GET", "/health", HEADER "9999999999999999.1\r\n", "", 0);
    assert_null(strstr(a.headers, HEADER));
    expect(a, 200, "");
    /* What was read may be asked for anywhere. */
    a = harness_get(&w.b, "/v1/files");
    take_seen(&a, seen);
    answer_finish(&a);
    expect(harness_request(&w.a, "GET", "/v1/files", seen, "", 0), 200, "[]");
    end(&w);
}

static void on_its_own_nobody_is_asked(void **state)
{
    struct harness h;
    struct answer a;

    (void)state;
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    a = harness_request(&h, "GET", "/v1/files", HEADER "nonsense\r\n", "", 0);
    assert_null(strstr(a.headers, HEADER));
    expect(a, 200, "[]");
    nodes_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_made_the_other_has),
        cmocka_unit_test(what_one_removed_the_other_has_not),
        cmocka_unit_test(what_nobody_has_is_told),
        cmocka_unit_test(on_its_own_nobody_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
