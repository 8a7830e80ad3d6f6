/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How SQLite answers each statement of the registry: none reads all that a tenant ran or pushed
 * for the few rows that it is about, for whoever has much would keep the lock from all others.
 * And which of them only read.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_schema.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const struct registry_statements *const all[] = {
    &registry_skill_statements,        &registry_execution_statements,
    &registry_tenant_statements,       &registry_key_statements,
    &registry_file_statements,         &registry_session_statements,
    &registry_change_statements,       &registry_record_statements,
    &registry_retention_statements,    &registry_skill_plan_statements,
    &registry_file_plan_statements,    &registry_session_plan_statements,
    &registry_place_statements,        &registry_tool_statements,
    &registry_audit_shared_statements, &registry_audit_statements,
    &registry_usage_statements,        &registry_entry_statements,
};

/* What waits or runs is as little as queues have room for. */
static bool is_of_few(const char *step)
{
    return strstr(step, "executions_unfinished") != NULL;
}

static bool is_good(const char *text, const char *step, bool few)
{
    if (is_of_few(step))
        return true;
    if (strncmp(step, "SCAN executions", 15) == 0 || strncmp(step, "SCAN e ", 7) == 0)
        return false;
    if (strstr(step, "TEMP B-TREE FOR") && strstr(step, "ORDER BY"))
        return few;
    /* One of a skill's versions, or those from one on. */
    if (strstr(text, "name = ?2 AND digest = ?3"))
        return strstr(step, "(digest=? AND tenant_id=? AND name=?)");
    if (strstr(text, "(place, version) <"))
        return strstr(step, "(tenant_id=? AND name=? AND (place,version)<(?,?))");
    return !strstr(text, "skill_name = ?") || !strstr(step, "SEARCH executions") ||
           strstr(step, "(id=?)") || strstr(step, "skill_name=? AND ");
}

static unsigned count_bad(sqlite3 *db, const char *text)
{
    char sql[8192];
    sqlite3_stmt *s = NULL;
    unsigned bad = 0;
    bool few = false;

    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", text);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(s, 3);

        few |= is_of_few(step);
        if (is_good(text, step, few))
            continue;
        bad++;
        fprintf(stderr, "%s\n    %s\n", text, step);
    }
    sqlite3_finalize(s);
    return bad;
}

/* The registry has a connection for those that begin with SELECT, which prepares no other. */
static unsigned count_misread(sqlite3 *db, const char *text)
{
    sqlite3_stmt *s = NULL;
    bool reads;

    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), SQLITE_OK);
    reads = sqlite3_stmt_readonly(s);
    sqlite3_finalize(s);
    return reads != (strncmp(text, "SELECT", 6) == 0);
}

static unsigned sum_of(unsigned (*count)(sqlite3 *db, const char *text))
{
    sqlite3 *db = NULL;
    unsigned sum = 0;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (size_t i = 0; i < REGISTRY_SCHEMA_VERSION; i++)
        assert_int_equal(sqlite3_exec(db, registry_schema_steps[i], NULL, NULL, NULL),
                         SQLITE_OK);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t k = 0; k < all[i]->n; k++)
            sum += count(db, all[i]->text[k]);
    sqlite3_close(db);
    return sum;
}

static void no_statement_reads_all(void **state)
{
    (void)state;
    assert_int_equal(sum_of(count_bad), 0);
}

static void those_that_only_read_are_known_by_their_text(void **state)
{
    (void)state;
    assert_int_equal(sum_of(count_misread), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_statement_reads_all),
        cmocka_unit_test(those_that_only_read_are_known_by_their_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
