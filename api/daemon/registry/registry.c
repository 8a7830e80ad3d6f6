/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_schema.h"
#include "base/lock.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Three connections, each with its lock: what only reads does not wait for another's commit,
 * which takes as long as the disk takes (WAL lets it read on), nor for another's result, which
 * may have megabytes. What was committed is read at once.
 */
enum { WRITER, READER, RESULT_READER, CONNECTIONS };

struct registry {
    /* Where more than one is taken, in this order. */
    struct connection {
        pthread_mutex_t lock;
        sqlite3 *db;
    } connections[CONNECTIONS];
    sqlite3_stmt **statements[REGISTRY_PARTS];
    char audit_node[FLEET_NODE_SIZE]; /* whose audit this is to a cluster; "": no cluster's */
};

static const struct registry_statements *const parts[REGISTRY_PARTS] = {
    [REGISTRY_SKILLS] = &registry_skill_statements,
    [REGISTRY_EXECUTIONS] = &registry_execution_statements,
    [REGISTRY_RESULTS] = &registry_result_statements,
    [REGISTRY_TENANTS] = &registry_tenant_statements,
    [REGISTRY_KEYS] = &registry_key_statements,
    [REGISTRY_FILES] = &registry_file_statements,
    [REGISTRY_USAGE] = &registry_usage_statements,
    [REGISTRY_AUDIT] = &registry_audit_statements,
    [REGISTRY_AUDIT_SHARED] = &registry_audit_shared_statements,
    [REGISTRY_TOOLS] = &registry_tool_statements,
    [REGISTRY_RETENTION] = &registry_retention_statements,
    [REGISTRY_SESSIONS] = &registry_session_statements,
    [REGISTRY_CHANGES] = &registry_change_statements,
    [REGISTRY_RECORDS] = &registry_record_statements,
    [REGISTRY_OF_PLACES] = &registry_place_statements,
    [REGISTRY_SKILL_PLAN] = &registry_skill_plan_statements,
    [REGISTRY_FILE_PLAN] = &registry_file_plan_statements,
    [REGISTRY_SESSION_PLAN] = &registry_session_plan_statements,
    [REGISTRY_ENTRIES] = &registry_entry_statements,
};

static sqlite3 *writer(const struct registry *registry)
{
    return registry->connections[WRITER].db;
}

/* Under the lock of the connection: it says what its last call came to. */
static int error_of(sqlite3 *db, struct err *err, const char *what)
{
    return err_set(err, EIO, "database: cannot %s: %s", what, sqlite3_errmsg(db));
}

static int execute(sqlite3 *db, const char *sql, const char *what, struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : error_of(db, err, what);
}

/* A database of before the first release has a version of its own, and nobody's mark. */
static int read_version(struct registry *registry, int *ret, struct err *err)
{
    static const char sql[] =
        "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id";
    int version, application;
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(writer(registry), sql, -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW) {
        (void)error_of(writer(registry), err, "read its version");
        sqlite3_finalize(s);
        return -EIO;
    }
    version = sqlite3_column_int(s, 0);
    application = sqlite3_column_int(s, 1);
    sqlite3_finalize(s);
    if (version > 0 && application != REGISTRY_APPLICATION_ID)
        return err_set(err, EPROTO,
                       "the database is not of a released skillvm and cannot be taken over:"
                       " move the data folder away, start with an empty one and push the"
                       " skills again");
    if (version > REGISTRY_SCHEMA_VERSION)
        return err_set(err, EPROTO,
                       "the database has schema version %d, this skillvm knows up to %d:"
                       " install the newer skillvm, or restore a backup of before it",
                       version, REGISTRY_SCHEMA_VERSION);
    *ret = version;
    return 0;
}

static int migrate(struct registry *registry, struct err *err)
{
    int version = 0;
    int r = read_version(registry, &version, err);

    for (; r == 0 && version < REGISTRY_SCHEMA_VERSION; version++) {
        char pragmas[96];
        const char *const texts[] = {"BEGIN IMMEDIATE", registry_schema_steps[version],
                                     pragmas};

        (void)snprintf(pragmas, sizeof(pragmas),
                       "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
                       REGISTRY_APPLICATION_ID, version + 1);
        for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
            r = execute(writer(registry), texts[i], "prepare its schema", err);
    }
    return r;
}

static int open_connection(const char *path, sqlite3 **ret, const char *settings,
                           struct err *err)
{
    if (sqlite3_open_v2(path, ret,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
                        NULL) != SQLITE_OK)
        return error_of(*ret, err, "open it");
    (void)sqlite3_busy_timeout(*ret, 5000);
    return execute(*ret, settings, "set it up", err);
}

static int open_all(struct registry *registry, const char *path, struct err *err)
{
    int r = open_connection(path, &registry->connections[WRITER].db,
                            "PRAGMA auto_vacuum = INCREMENTAL;" /* before anything is in it */
                            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                            "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
                            "PRAGMA cache_size = -512;", /* KiB */
                            err);

    if (r < 0)
        return r;
    r = migrate(registry, err);
    if (r < 0)
        return r;
    for (int i = READER; r == 0 && i < CONNECTIONS; i++)
        r = open_connection(path, &registry->connections[i].db,
                            "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;"
                            "PRAGMA cache_size = -512;",
                            err);
    for (int i = 0; r == 0 && i < REGISTRY_PARTS; i++) {
        registry->statements[i] = calloc(parts[i]->n, sizeof(sqlite3_stmt *));
        if (!registry->statements[i])
            r = err_no_memory(err);
    }
    return r;
}

int registry_open(const char *path, struct registry **ret, struct err *err)
{
    struct registry *registry = calloc(1, sizeof(*registry));
    int r;

    if (!registry)
        return err_no_memory(err);
    for (int i = 0; i < CONNECTIONS; i++)
        (void)pthread_mutex_init(&registry->connections[i].lock, NULL);
    r = open_all(registry, path, err);
    if (r < 0)
        registry_close(registry);
    else
        *ret = registry;
    return r;
}

void registry_close(struct registry *registry)
{
    if (!registry)
        return;
    for (int i = 0; i < REGISTRY_PARTS; i++) {
        for (size_t k = 0; registry->statements[i] && k < parts[i]->n; k++)
            (void)sqlite3_finalize(registry->statements[i][k]);
        free(registry->statements[i]);
    }
    for (int i = CONNECTIONS - 1; i >= 0; i--) {
        (void)sqlite3_close(registry->connections[i].db);
        (void)pthread_mutex_destroy(&registry->connections[i].lock);
    }
    free(registry);
}

/* One that only reads is a SELECT. */
static struct connection *connection_of(struct registry *registry, enum registry_part part,
                                        unsigned which)
{
    bool only_reads = strncmp(parts[part]->text[which], "SELECT", 6) == 0;

    return &registry->connections[!only_reads                ? WRITER
                                  : part == REGISTRY_RESULTS ? RESULT_READER
                                                             : READER];
}

int registry_error(struct registry *registry, enum registry_part part, unsigned which,
                   struct err *err, const char *what)
{
    return error_of(connection_of(registry, part, which)->db, err, what);
}

/*
 * Prepared when it is used first: all of them take a daemon's start as long as all the rest of
 * it. The caller holds the lock of its connection. NULL where that fails, which SQLite takes
 * for a statement that is misused.
 */
static sqlite3_stmt *statement(struct registry *registry, enum registry_part part,
                               unsigned which)
{
    sqlite3_stmt **s = &registry->statements[part][which];

    if (!*s)
        (void)sqlite3_prepare_v3(connection_of(registry, part, which)->db,
                                 parts[part]->text[which], -1, SQLITE_PREPARE_PERSISTENT, s,
                                 NULL);
    return *s;
}

static void bind(sqlite3_stmt *s, const struct registry_value *value)
{
    for (int at = 1; at <= sqlite3_bind_parameter_count(s) && value->type; at++, value++) {
        if (value->type == REGISTRY_TEXT)
            (void)sqlite3_bind_text64(s, at, value->text, value->number, SQLITE_STATIC,
                                      SQLITE_UTF8);
        else
            (void)sqlite3_bind_int64(
                s, at, value->number > INT64_MAX ? INT64_MAX : (sqlite3_int64)value->number);
    }
}

struct registry_value registry_bytes(const char *text, size_t len)
{
    return (struct registry_value){REGISTRY_TEXT, text, len};
}

struct registry_value registry_text(const char *text)
{
    return registry_bytes(text, text ? strlen(text) : 0);
}

struct registry_value registry_number(uint64_t number)
{
    return (struct registry_value){REGISTRY_NUMBER, NULL, number};
}

struct registry_value registry_after(uint64_t after_ns, const char *after_id)
{
    return registry_number(after_id ? after_ns : INT64_MAX);
}

struct registry_value registry_after_id(const char *after_id)
{
    return registry_text(after_id ? after_id : "");
}

sqlite3_stmt *registry_begin(struct registry *registry, enum registry_part part, unsigned which,
                             const struct registry_value *values)
{
    sqlite3_stmt *s;

    (void)pthread_mutex_lock(&connection_of(registry, part, which)->lock);
    s = statement(registry, part, which);
    bind(s, values);
    return s;
}

static void reset(sqlite3_stmt *s)
{
    (void)sqlite3_reset(s);
    /* The one call that takes no NULL. */
    if (s)
        (void)sqlite3_clear_bindings(s);
}

void registry_end(struct registry *registry, enum registry_part part, unsigned which,
                  sqlite3_stmt *s)
{
    reset(s);
    (void)pthread_mutex_unlock(&connection_of(registry, part, which)->lock);
}

int registry_run(struct registry *registry, enum registry_part part, unsigned which,
                 const struct registry_value *values, const char *what, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&registry->connections[WRITER].lock);

    return registry_step(registry, part, which, values, what, err);
}

/* What was wrong with a row, under the lock. */
static int refusal(struct registry *registry, const char *what, struct err *err)
{
    switch (sqlite3_extended_errcode(writer(registry))) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
        return -EEXIST;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return -ENOENT;
    default:
        return error_of(writer(registry), err, what);
    }
}

int registry_put_step(struct registry *registry, enum registry_part part, unsigned which,
                      const struct registry_value *values, const char *what, struct err *err)
{
    sqlite3_stmt *s = statement(registry, part, which);
    int r;

    bind(s, values);
    if (sqlite3_step(s) != SQLITE_DONE)
        r = refusal(registry, what, err);
    else
        r = registry_changes(registry) == 0 ? -ENOENT : 0;
    reset(s);
    return r;
}

int registry_put(struct registry *registry, enum registry_part part, unsigned which,
                 const struct registry_value *values, const char *what, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&registry->connections[WRITER].lock);

    return registry_put_step(registry, part, which, values, what, err);
}

/* What read_column() reads. */
static struct registry_value value_of(const struct registry_column *column, const void *member)
{
    switch (column->type) {
    case REGISTRY_ID:
        return registry_text(member);
    case REGISTRY_TEXT:
    case REGISTRY_TEXT_OR_NULL:
        return registry_text(*(char *const *)member);
    case REGISTRY_BOOL:
        return registry_number(*(const bool *)member);
    case REGISTRY_ENUM:
        return registry_number(*(const unsigned *)member);
    default:
        return registry_number(*(const uint64_t *)member);
    }
}

int registry_put_row(struct registry *registry, enum registry_part part, unsigned which,
                     const struct registry_rows *kind, const void *row, const char *what,
                     struct err *err)
{
    struct registry_value values[REGISTRY_PUT_COLUMNS + 1] = {{.type = REGISTRY_NONE}};

    for (size_t i = 0; i < kind->n && i < REGISTRY_PUT_COLUMNS; i++)
        values[i] = value_of(&kind->columns[i], (const char *)row + kind->columns[i].at);
    return registry_put_step(registry, part, which, values, what, err);
}

/* A copy of a text column. False without memory, and for a NULL. */
static bool copy_text(sqlite3_stmt *s, int i, char **ret)
{
    const unsigned char *text = sqlite3_column_text(s, i);

    *ret = text ? strdup((const char *)text) : NULL;
    return *ret != NULL;
}

static bool read_column(sqlite3_stmt *s, int i, const struct registry_column *column, void *ret)
{
    uint64_t number;

    if (column->type == REGISTRY_TEXT_OR_NULL && sqlite3_column_type(s, i) == SQLITE_NULL)
        return true;
    if (column->type == REGISTRY_TEXT || column->type == REGISTRY_TEXT_OR_NULL)
        return copy_text(s, i, ret);
    if (column->type == REGISTRY_ID) {
        const unsigned char *text = sqlite3_column_text(s, i);

        (void)snprintf(ret, column->size, "%s", text ? (const char *)text : "");
        return true;
    }
    number = (uint64_t)sqlite3_column_int64(s, i);
    if (column->type == REGISTRY_BOOL)
        *(bool *)ret = number != 0;
    else if (column->type == REGISTRY_ENUM)
        *(unsigned *)ret = number < UINT_MAX ? (unsigned)number : UINT_MAX;
    else
        *(uint64_t *)ret = number;
    return true;
}

/* Reads the row a statement stands on. False without memory. */
static bool read_row(sqlite3_stmt *s, const struct registry_rows *kind, char *row)
{
    bool ok = true;

    memset(row, 0, kind->size);
    for (size_t i = 0; ok && i < kind->n && (int)i < sqlite3_column_count(s); i++)
        ok = read_column(s, (int)i, &kind->columns[i], row + kind->columns[i].at);
    if (ok && kind->mend)
        kind->mend(row);
    return ok;
}

void registry_row_finish(const struct registry_rows *kind, void *row)
{
    for (size_t i = 0; i < kind->n; i++) {
        const struct registry_column *column = &kind->columns[i];

        if (column->type == REGISTRY_TEXT || column->type == REGISTRY_TEXT_OR_NULL)
            free(*(char **)(void *)((char *)row + column->at));
    }
    memset(row, 0, kind->size);
}

int registry_read_rows(struct registry *registry, enum registry_part part, unsigned which,
                       const struct registry_value *values, const struct registry_rows *kind,
                       size_t max, void *rows, size_t *ret_n, const char *what, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, part, which, values);
    int step = SQLITE_DONE, r = 0;
    size_t n = 0;
    char *at = rows;

    while (r == 0 && n < max && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (!read_row(s, kind, at + n++ * kind->size))
            r = err_no_memory(err);
    }
    if (r == 0 && n < max && step != SQLITE_DONE)
        r = registry_error(registry, part, which, err, what);
    registry_end(registry, part, which, s);
    while (r < 0 && n > 0)
        registry_row_finish(kind, at + --n * kind->size);
    if (r < 0)
        return r;
    *ret_n = n;
    return 0;
}

int registry_read_row(struct registry *registry, enum registry_part part, unsigned which,
                      const struct registry_value *values, const struct registry_rows *kind,
                      void *ret, const char *what, struct err *err)
{
    size_t n = 0;
    int r = registry_read_rows(registry, part, which, values, kind, 1, ret, &n, what, err);

    return r == 0 && n == 0 ? -ENOENT : r;
}

int registry_read_number(struct registry *registry, enum registry_part part, unsigned which,
                         const struct registry_value *values, const char *what, uint64_t *ret,
                         struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, part, which, values);
    int r = 0;

    if (sqlite3_step(s) == SQLITE_ROW)
        *ret = (uint64_t)sqlite3_column_int64(s, 0);
    else
        r = registry_error(registry, part, which, err, what);
    registry_end(registry, part, which, s);
    return r;
}

int registry_transaction_begin(struct registry *registry, struct err *err)
{
    int r;

    /* Held until the transaction ends. */
    (void)pthread_mutex_lock(&registry->connections[WRITER].lock);
    r = execute(writer(registry), "BEGIN IMMEDIATE", "begin a change", err);
    if (r < 0)
        (void)pthread_mutex_unlock(&registry->connections[WRITER].lock);
    return r;
}

int registry_transaction_end(struct registry *registry, int result, struct err *err)
{
    if (result == 0 && execute(writer(registry), "COMMIT", "store a change", err) < 0)
        result = -EIO;
    if (result < 0)
        (void)sqlite3_exec(writer(registry), "ROLLBACK", NULL, NULL, NULL);
    (void)pthread_mutex_unlock(&registry->connections[WRITER].lock);
    return result;
}

int registry_step(struct registry *registry, enum registry_part part, unsigned which,
                  const struct registry_value *values, const char *what, struct err *err)
{
    sqlite3_stmt *s = statement(registry, part, which);
    int r;

    bind(s, values);
    r = sqlite3_step(s) == SQLITE_DONE ? 0 : error_of(writer(registry), err, what);
    reset(s);
    return r;
}

int registry_execute(struct registry *registry, const char *sql, const char *what,
                     struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&registry->connections[WRITER].lock);
    /* Writing back the log has to wait for readers, so there shall be none. */
    _cleanup_lock_ pthread_mutex_t *reader = lock_hold(&registry->connections[READER].lock);
    _cleanup_lock_ pthread_mutex_t *result_reader =
        lock_hold(&registry->connections[RESULT_READER].lock);

    return execute(writer(registry), sql, what, err);
}

const char *registry_audit_node(const struct registry *registry)
{
    return registry->audit_node;
}

void registry_set_audit_node(struct registry *registry, const char *node)
{
    (void)snprintf(registry->audit_node, sizeof(registry->audit_node), "%s", node);
}

int registry_changes(struct registry *registry)
{
    return sqlite3_changes(writer(registry));
}
