/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void waiting_fill(const struct harness *h, char ret[38])
{
    nodes_fill(h, WAITING_BUSY, ret);
}

void waiting_end(const struct harness *h, const char *id)
{
    nodes_ask_end(h, id);
}

void waiting_begin_free(struct waiting_world *w, const char *a_name, const char *a_lines,
                        const char *b_lines)
{
    nodes_begin_named(&w->nats, &w->a, a_name, a_lines, &w->b, b_lines);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

void waiting_begin_as(struct waiting_world *w, const char *a_name, const char *a_lines)
{
    waiting_begin_free(w, a_name, a_lines, WAITING_LINES);
    waiting_fill(&w->a, w->busy_a);
    waiting_fill(&w->b, w->busy_b);
}

void waiting_begin(struct waiting_world *w)
{
    waiting_begin_as(w, "a", WAITING_LINES);
}

void waiting_finish(struct waiting_world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* What the servers have of one. The caller's. */
static char *record_of(const struct waiting_world *w, const char *id)
{
    char *record = nodes_record_of(&w->nats, id);

    assert_non_null(record);
    return record;
}

void waiting_expect(const struct waiting_world *w, const char *id, const char *part, bool there)
{
    char *record = record_of(w, id);

    if ((strstr(record, part) != NULL) != there)
        fail_msg("%s is%s in %s", part, there ? " not" : "", record);
    free(record);
}

/* Until one part is there, and the other one is or is not. */
static void wait_record(const struct waiting_world *w, const char *id, const char *part,
                        const char *other, bool there)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool is_so = false;

    while (!is_so) {
        char *record = record_of(w, id);

        is_so = strstr(record, part) && (strstr(record, other) != NULL) == there;
        if (!is_so && clock_monotonic_ns() > until_ns)
            fail_msg("%s is never with%s %s in %s", part, there ? "" : "out", other, record);
        free(record);
        usleep(50000);
    }
}

void waiting_until(const struct waiting_world *w, const char *id, const char *part,
                   const char *other)
{
    wait_record(w, id, part, other, true);
}

void waiting_at_b(const struct waiting_world *w, const char *id)
{
    waiting_until(w, id, "\"node\":\"b\"", "\"request\":\"{");
}

void waiting_at_a(const struct waiting_world *w, char ret[38])
{
    nodes_submit(&w->a, "{" WAITING_OF("exit") ",\"async\":true}", ret);
    harness_expect(harness_get(&w->a, nodes_path_of(ret)), 200, "\"status\":\"accepted\"");
    waiting_expect(w, ret, "\"request\":\"{", true);
    nodes_wait(&w->b, nodes_path_of(ret), 200, "\"status\":\"accepted\"");
}

struct answer waiting_unconfirmed(const struct waiting_world *w, const char *json)
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    for (;;) {
        struct answer a;

        harness_freeze(w->nats.servers[0].pid);
        a = harness_run(&w->a, json);
        assert_int_equal(a.status, 503);
        if (answer_has(&a, "was not confirmed"))
            return a;
        if (clock_monotonic_ns() > until_ns)
            fail_msg("it is never sent: %s", a.body);
        answer_finish(&a);
        assert_int_equal(kill(w->nats.servers[0].pid, SIGCONT), 0);
        nats_wait_node(&w->a, NODE_JOINED);
        /* So that there is a connection again. */
        harness_expect(nodes_run(&w->a, "{" WAITING_OF("exit") "}"), 200, "");
    }
}

void waiting_begin_running(struct waiting_world *w, const char *a_lines, const char *request,
                           char ret[38])
{
    nodes_begin_first(&w->nats, &w->a, "a", a_lines);
    nats_wait_node(&w->a, NODE_JOINED);
    harness_wait_ready(&w->a);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_submit(&w->a, request, ret);
    nodes_wait(&w->a, nodes_path_of(ret), 200, "\"status\":\"running\"");
    nodes_begin_second(&w->nats, &w->a, &w->b, WAITING_LINES);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    nodes_wait(&w->b, nodes_path_of(ret), 200, "\"status\":\"running\"");
}

void waiting_begin_retried(struct waiting_world *w, char ret[38])
{
    waiting_begin_running(w, WAITING_LINES, WAITING_RETRIED, ret);
    waiting_expect(w, ret, "\"again\":{", true);
    waiting_expect(w, ret, "\"retries\":1", true);
}

void waiting_again_at_b(const struct waiting_world *w, const char *id)
{
    wait_record(w, id, "\"node\":\"b\"", "\"again\":{", false);
    nodes_wait(&w->b, nodes_path_of(id), 200, "\"status\":\"running\"");
}

/* Where nodes with the images of b are asked. */
static void name_group_of_b(const struct waiting_world *w, char *ret, size_t size)
{
    char subject[256];
    char *entry = nats_last(&w->nats, NATS_NODES, "$KV.skillvm_nodes.b", subject);
    cJSON *json = cJSON_Parse(entry);
    const cJSON *image;
    uint64_t sum = 0;

    assert_non_null(json);
    cJSON_ArrayForEach(image, cJSON_GetObjectItem(json, "images")) {
        uint64_t hash = 0xcbf29ce484222325u;

        for (const char *at = image->valuestring; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
        sum += hash;
    }
    snprintf(ret, size, "skillvm.run.%016llx", (unsigned long long)sum);
    cJSON_Delete(json);
    free(entry);
}

void waiting_tell_b(const struct waiting_world *w, const char *id)
{
    char subject[64], text[512];
    char *record = nodes_record_of(&w->nats, id);
    cJSON *json = cJSON_Parse(record);

    assert_non_null(json);
    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"%s\",\"id\":\"%s\",\"digest\":\"\",\"seen\":0,"
             "\"sent_ns\":%llu,\"node\":\"a\",\"instance\":\"%s\"}\n",
             cJSON_GetObjectItem(json, "tenant")->valuestring, id,
             (unsigned long long)clock_realtime_ns(),
             cJSON_GetObjectItem(json, "instance")->valuestring);
    name_group_of_b(w, subject, sizeof(subject));
    nats_tell(&w->nats, subject, text, strlen(text));
    cJSON_Delete(json);
    free(record);
}

bool waiting_ask_b(const struct waiting_world *w, const char *from)
{
    static unsigned n;
    char subject[64], text[512], answer[256];

    name_group_of_b(w, subject, sizeof(subject));
    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"default\",\"id\":\"exec_%032x\",\"digest\":\"\","
             "\"seen\":0,\"sent_ns\":%llu,\"from\":\"%s\"}\n{" WAITING_OF("exit") "}",
             ++n, (unsigned long long)clock_realtime_ns(), from);
    return nats_call(&w->nats, subject, text, answer) && strstr(answer, "\"accepted\":true");
}

struct nats_answering waiting_answer_as_b(const struct waiting_world *w, char *answer)
{
    char subject[64], unused[256];

    name_group_of_b(w, subject, sizeof(subject));
    /* A node answers on for a moment after it has become full. */
    harness_until(!nats_call(&w->nats, subject, "{}", unused));
    return nats_answer(&w->nats, subject, answer);
}

void waiting_stop_a(const struct waiting_world *w)
{
    nodes_begin_stop(&w->a);
}
