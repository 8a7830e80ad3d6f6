/* SPDX-License-Identifier: Apache-2.0 */
/* What is left to other nodes, and those missed something of it, or cannot read what it needs.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>

/* a is gone. */
static void finish(struct waiting_world *w)
{
    nodes_end(&w->b);
    harness_finish(&w->a);
    nats_end(&w->nats);
}

/* As if a node had heard that one was accepted, and nothing since. */
static void miss_offer(const struct harness *h, const char *id)
{
    char path[256], *sql = sqlite3_mprintf("UPDATE records SET waits = 0 WHERE id = %Q", id);
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_free(sql);
    sqlite3_close(db);
}

static void what_others_may_begin_does_not_fail_where_that_was_missed(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    miss_offer(&w.b, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    finish(&w);
}

static void what_may_begin_again_does_not_fail_where_that_was_missed(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"running\"");
    miss_offer(&w.b, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    waiting_again_at_b(&w, id);
    nodes_cancel(&w.b, id);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_may_begin_does_not_fail_where_that_was_missed),
        cmocka_unit_test(what_may_begin_again_does_not_fail_where_that_was_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
