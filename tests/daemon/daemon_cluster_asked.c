/* SPDX-License-Identifier: Apache-2.0 */
/* A node that others ask much of what runs there. */
#include <nats/nats.h>

#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <stdio.h>
#include <string.h>

#define SILENT    "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"hang\"},\"timeout\":600,\"async\":true}"
#define RUNNING   "\"status\":\"running\""
#define OF_TENANT 64u /* that wait for news */
#define TRIES     20u /* a machine that stands still for a second answers all that wait */

/* Asks for news that there are none of, so often at once, each with its own place for answers.
 */
static void ask(natsConnection *connection, const char *id, unsigned n)
{
    char text[256], place[32];

    snprintf(text, sizeof(text),
             "{\"schema\":1,\"tenant\":\"default\",\"id\":\"%s\",\"log_at\":0,"
             "\"wait_ms\":1000,\"begun\":true}",
             id);
    for (unsigned i = 0; i < n; i++) {
        snprintf(place, sizeof(place), "asked.%u", i);
        assert_int_equal(
            natsConnection_PublishRequestString(connection, "skillvm.live.a", place, text),
            NATS_OK);
    }
}

/* Takes so many answers. Whether the first two are to the last two questions, in their turn. */
static bool take_answers(natsSubscription *answers, unsigned n)
{
    bool are_last = true;

    for (unsigned i = 0; i < n; i++) {
        natsMsg *message = NULL;
        char place[32];

        assert_int_equal(natsSubscription_NextMsg(&message, answers, 10000), NATS_OK);
        snprintf(place, sizeof(place), "asked.%u", OF_TENANT + i);
        if (i < 2 && strcmp(natsMsg_GetSubject(message), place) != 0)
            are_last = false;
        assert_non_null(strstr(natsMsg_GetData(message), "\"state\":\"runs\""));
        natsMsg_Destroy(message);
    }
    return are_last;
}

/* So many of a tenant's wait; who comes after them is answered at once. */
static void who_asks_too_much_does_not_wait(void **state)
{
    struct nats_world nats = {0};
    struct harness a = {0}, b = {0};
    natsConnection *connection;
    natsSubscription *answers = NULL;
    char id[38];
    unsigned tries = 0;

    (void)state;
    nodes_begin_two(&nats, &a, "", &b, "");
    assert_int_equal(harness_push(&a, "demo", "1.0", "print(1)"), 201);
    nodes_submit(&a, SILENT, id);
    nodes_wait(&b, nodes_path_of(id), 200, RUNNING);
    connection = nats_connect(&nats);
    assert_int_equal(natsConnection_SubscribeSync(&answers, connection, "asked.*"), NATS_OK);
    do {
        assert_true(tries++ < TRIES);
        ask(connection, id, OF_TENANT + 2);
    } while (!take_answers(answers, OF_TENANT + 2));
    nodes_wait(&b, nodes_path_of(id), 200, RUNNING);
    natsSubscription_Destroy(answers);
    natsConnection_Destroy(connection);
    nodes_cancel(&a, id);
    nodes_end(&b);
    nodes_end(&a);
    nats_end(&nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_too_much_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
