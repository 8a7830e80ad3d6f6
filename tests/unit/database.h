/* SPDX-License-Identifier: Apache-2.0 */
/* A look into the database in a data folder, behind the back of who has it. For programs that
 * link sqlite3. */
#ifndef SKILLVM_TESTS_UNIT_DATABASE_H
#define SKILLVM_TESTS_UNIT_DATABASE_H

#include "tests/unit/cmocka_all.h"

#include <sqlite3.h>
#include <stdio.h>

/* The number that this gives. */
static inline int database_number(const char *folder, const char *sql)
{
    sqlite3_stmt *s = NULL;
    sqlite3 *db = NULL;
    char path[256];
    int n;

    snprintf(path, sizeof(path), "%s/skillvm.db", folder);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return n;
}

#endif
