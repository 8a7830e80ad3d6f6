/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry.h"

#include "api/daemon/registry_schema.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* An execution as read_row wants it. */
#define EXECUTION_COLUMNS                                                                      \
    "id, status, skill_name, skill_version, skill_digest, accepted_ns, finished_ns"
/* A page of a list: newest first, from a place on. */
#define EXECUTION_PAGE                                                                         \
    " (accepted_ns, id) < (?1, ?2) ORDER BY accepted_ns DESC, id DESC LIMIT ?3"

enum statement {
    SKILL_INSERT,
    SKILL_BY_VERSION,
    SKILL_LATEST,
    SKILL_ALL,
    SKILL_DELETE,
    SKILL_BY_DIGEST,
    EXECUTION_INSERT,
    EXECUTION_END,
    EXECUTION_BY_ID,
    EXECUTION_BY_KEY,
    EXECUTION_UNFINISHED,
    EXECUTION_LIST, /* and three more by what is filtered */
    EXECUTION_LIST_SKILL,
    EXECUTION_LIST_STATUS,
    EXECUTION_LIST_BOTH,
    N_STATEMENTS,
};

static const char *const statement_text[N_STATEMENTS] = {
    [SKILL_INSERT] = "INSERT INTO skills(name, version, digest, description, created_ns)"
                     " VALUES(?1, ?2, ?3, ?4, ?5)",
    [SKILL_BY_VERSION] = "SELECT name, version, digest, description, created_ns FROM skills"
                         " WHERE name = ?1 AND version = ?2",
    [SKILL_LATEST] = "SELECT name, version, digest, description, created_ns FROM skills"
                     " WHERE name = ?1 ORDER BY id DESC LIMIT 1",
    [SKILL_ALL] = "SELECT name, version, digest, description, created_ns FROM skills"
                  " ORDER BY name, id DESC",
    [SKILL_DELETE] = "DELETE FROM skills WHERE name = ?1 AND version = ?2",
    [SKILL_BY_DIGEST] = "SELECT 1 FROM skills WHERE digest = ?1 LIMIT 1",
    [EXECUTION_INSERT] =
        "INSERT INTO executions(id, status, skill_name, skill_version, skill_digest,"
        " accepted_ns, idempotency_key, request_digest)"
        " VALUES(?1, 'accepted', ?2, ?3, ?4, ?5, ?6, ?7)",
    [EXECUTION_END] = "UPDATE executions SET status = ?2, result = ?3, finished_ns = ?4"
                      " WHERE id = ?1",
    [EXECUTION_BY_ID] = "SELECT " EXECUTION_COLUMNS ", result FROM executions WHERE id = ?1",
    [EXECUTION_BY_KEY] = "SELECT id, request_digest FROM executions WHERE idempotency_key = ?1",
    [EXECUTION_UNFINISHED] = "SELECT " EXECUTION_COLUMNS ", result FROM executions"
                             " WHERE finished_ns IS NULL LIMIT 1",
    [EXECUTION_LIST] = "SELECT " EXECUTION_COLUMNS " FROM executions WHERE" EXECUTION_PAGE,
    [EXECUTION_LIST_SKILL] = "SELECT " EXECUTION_COLUMNS " FROM executions"
                             " WHERE skill_name = ?4 AND" EXECUTION_PAGE,
    [EXECUTION_LIST_STATUS] = "SELECT " EXECUTION_COLUMNS " FROM executions"
                              " WHERE status = ?5 AND" EXECUTION_PAGE,
    [EXECUTION_LIST_BOTH] = "SELECT " EXECUTION_COLUMNS " FROM executions"
                            " WHERE skill_name = ?4 AND status = ?5 AND" EXECUTION_PAGE,
};

struct registry {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
};

static int db_error(struct registry *registry, struct err *err, const char *what)
{
    return err_set(err, EIO, "database: cannot %s: %s", what, sqlite3_errmsg(registry->db));
}

static int execute(struct registry *registry, const char *sql, struct err *err)
{
    if (sqlite3_exec(registry->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return db_error(registry, err, "prepare its schema");
    return 0;
}

static int read_schema_version(struct registry *registry, int *ret, struct err *err)
{
    sqlite3_stmt *s;
    int r;

    if (sqlite3_prepare_v2(registry->db, "PRAGMA user_version", -1, &s, NULL) != SQLITE_OK)
        return db_error(registry, err, "read its version");
    r = sqlite3_step(s) == SQLITE_ROW ? 0 : db_error(registry, err, "read its version");
    if (r == 0)
        *ret = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return r;
}

static int migrate(struct registry *registry, struct err *err)
{
    int version = 0;
    int r = read_schema_version(registry, &version, err);

    if (r < 0)
        return r;
    if (version > REGISTRY_SCHEMA_VERSION)
        return err_set(err, EPROTO,
                       "the database has schema version %d, this skillvm knows up to %d",
                       version, REGISTRY_SCHEMA_VERSION);
    for (; version < REGISTRY_SCHEMA_VERSION; version++) {
        char pragma[64];

        (void)sqlite3_snprintf(sizeof(pragma), pragma, "PRAGMA user_version = %d; COMMIT;",
                               version + 1);
        r = execute(registry, "BEGIN IMMEDIATE", err);
        if (r == 0)
            r = execute(registry, registry_schema_steps[version], err);
        if (r == 0)
            r = execute(registry, pragma, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int registry_open(const char *path, struct registry **ret, struct err *err)
{
    struct registry *registry = calloc(1, sizeof(*registry));
    int r;

    if (!registry)
        return err_set(err, ENOMEM, "out of memory");
    (void)pthread_mutex_init(&registry->lock, NULL);
    if (sqlite3_open_v2(path, &registry->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
                        NULL) != SQLITE_OK) {
        r = db_error(registry, err, "open it");
        goto fail;
    }
    (void)sqlite3_busy_timeout(registry->db, 5000);
    r = execute(registry,
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
                "PRAGMA cache_size = -512;", /* KiB */
                err);
    if (r == 0)
        r = migrate(registry, err);
    for (int i = 0; r == 0 && i < N_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(registry->db, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &registry->statements[i], NULL) != SQLITE_OK)
            r = db_error(registry, err, "prepare a statement");
    }
    if (r < 0)
        goto fail;
    *ret = registry;
    return 0;
fail:
    registry_close(registry);
    return r;
}

void registry_close(struct registry *registry)
{
    if (!registry)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(registry->statements[i]);
    (void)sqlite3_close(registry->db);
    (void)pthread_mutex_destroy(&registry->lock);
    free(registry);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    (void)sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

/* Takes the lock and gives a statement ready to bind. */
static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    (void)pthread_mutex_lock(&registry->lock);
    return registry->statements[which];
}

/* Gives the statement and the lock back. */
static void end(struct registry *registry, sqlite3_stmt *s)
{
    (void)sqlite3_reset(s);
    (void)sqlite3_clear_bindings(s);
    (void)pthread_mutex_unlock(&registry->lock);
}

/* A copy of a text column that is never NULL. False without memory. */
static bool column(sqlite3_stmt *s, int at, char **ret)
{
    const unsigned char *text = sqlite3_column_text(s, at);

    *ret = text ? strdup((const char *)text) : NULL;
    return *ret != NULL;
}

/* The same; NULL for NULL. */
static bool column_or_null(sqlite3_stmt *s, int at, char **ret)
{
    *ret = NULL;
    return sqlite3_column_type(s, at) == SQLITE_NULL || column(s, at, ret);
}

void registry_skill_finish(struct registry_skill *skill)
{
    free(skill->name);
    free(skill->version);
    free(skill->digest);
    free(skill->description);
    *skill = (struct registry_skill){0};
}

void registry_execution_finish(struct registry_execution *execution)
{
    free(execution->id);
    free(execution->status);
    free(execution->skill_name);
    free(execution->skill_version);
    free(execution->skill_digest);
    free(execution->result);
    *execution = (struct registry_execution){0};
}

static int find_skill(struct registry *registry, const char *name, const char *version,
                      struct registry_skill *ret, struct err *err)
{
    struct registry_skill skill = {0};
    sqlite3_stmt *s = begin(registry, version ? SKILL_BY_VERSION : SKILL_LATEST);
    int r = 0;

    bind_text(s, 1, name);
    if (version)
        bind_text(s, 2, version);
    switch (sqlite3_step(s)) {
    case SQLITE_ROW:
        if (!column(s, 0, &skill.name) || !column(s, 1, &skill.version) ||
            !column(s, 2, &skill.digest) || !column(s, 3, &skill.description))
            r = err_set(err, ENOMEM, "out of memory");
        skill.created_ns = (uint64_t)sqlite3_column_int64(s, 4);
        break;
    case SQLITE_DONE:
        r = -ENOENT;
        break;
    default:
        r = db_error(registry, err, "look up a skill");
    }
    end(registry, s);
    if (r < 0)
        registry_skill_finish(&skill);
    else
        *ret = skill;
    return r;
}

int registry_skill_get(struct registry *registry, const char *name, const char *version,
                       struct registry_skill *ret, bool *ret_name_known, struct err *err)
{
    struct registry_skill other;
    int r = find_skill(registry, name, version, ret, err);

    *ret_name_known = r == 0;
    if (r != -ENOENT || !version)
        return r;
    r = find_skill(registry, name, NULL, &other, err);
    if (r == 0) {
        registry_skill_finish(&other);
        *ret_name_known = true;
        return -ENOENT;
    }
    return r;
}

int registry_skill_put(struct registry *registry, const char *name, const char *version,
                       const char *digest, const char *description, char **ret_existing,
                       struct err *err)
{
    struct registry_skill existing;
    sqlite3_stmt *s = begin(registry, SKILL_INSERT);
    int step, r = 0;

    bind_text(s, 1, name);
    bind_text(s, 2, version);
    bind_text(s, 3, digest);
    bind_text(s, 4, description);
    (void)sqlite3_bind_int64(s, 5, (sqlite3_int64)clock_realtime_ns());
    step = sqlite3_step(s);
    if (step != SQLITE_DONE && step != SQLITE_CONSTRAINT)
        r = db_error(registry, err, "register a skill");
    end(registry, s);
    if (r < 0 || step == SQLITE_DONE)
        return r;
    r = find_skill(registry, name, version, &existing, err);
    if (r < 0)
        return r == -ENOENT ? err_set(err, EIO, "database: a skill vanished") : r;
    if (existing.digest && strcmp(existing.digest, digest) != 0) {
        *ret_existing = existing.digest;
        existing.digest = NULL;
        r = -EEXIST;
    }
    registry_skill_finish(&existing);
    return r;
}

int registry_skill_each(struct registry *registry, registry_skill_visit *visit, void *ctx,
                        struct err *err)
{
    sqlite3_stmt *s = begin(registry, SKILL_ALL);
    int step = SQLITE_DONE, r = 0;

    while (r == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct registry_skill skill = {.created_ns = (uint64_t)sqlite3_column_int64(s, 4)};

        if (!column(s, 0, &skill.name) || !column(s, 1, &skill.version) ||
            !column(s, 2, &skill.digest) || !column(s, 3, &skill.description))
            r = err_set(err, ENOMEM, "out of memory");
        else
            r = visit(ctx, &skill);
        registry_skill_finish(&skill);
    }
    if (r == 0 && step != SQLITE_DONE)
        r = db_error(registry, err, "list the skills");
    end(registry, s);
    return r;
}

/* Runs a bound statement that gives no rows, and ends it. */
static int run(struct registry *registry, sqlite3_stmt *s, const char *what, struct err *err)
{
    int r = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(registry, err, what);

    end(registry, s);
    return r;
}

int registry_skill_delete(struct registry *registry, const char *name, const char *version,
                          struct err *err)
{
    sqlite3_stmt *s = begin(registry, SKILL_DELETE);
    int r = 0;

    bind_text(s, 1, name);
    bind_text(s, 2, version);
    if (sqlite3_step(s) != SQLITE_DONE)
        r = db_error(registry, err, "delete a skill");
    else if (sqlite3_changes(registry->db) == 0)
        r = -ENOENT;
    end(registry, s);
    return r;
}

int registry_digest_used(struct registry *registry, const char *digest, bool *ret,
                         struct err *err)
{
    sqlite3_stmt *s = begin(registry, SKILL_BY_DIGEST);
    int r = 0;

    bind_text(s, 1, digest);
    switch (sqlite3_step(s)) {
    case SQLITE_ROW:
        *ret = true;
        break;
    case SQLITE_DONE:
        *ret = false;
        break;
    default:
        r = db_error(registry, err, "look up a digest");
    }
    end(registry, s);
    return r;
}

int registry_execution_accept(struct registry *registry,
                              const struct registry_acceptance *acceptance, struct err *err)
{
    sqlite3_stmt *s = begin(registry, EXECUTION_INSERT);
    int r = 0;

    bind_text(s, 1, acceptance->id);
    bind_text(s, 2, acceptance->skill_name);
    bind_text(s, 3, acceptance->skill_version);
    bind_text(s, 4, acceptance->skill_digest);
    (void)sqlite3_bind_int64(s, 5, (sqlite3_int64)acceptance->accepted_ns);
    bind_text(s, 6, acceptance->idempotency_key);
    bind_text(s, 7, acceptance->request_digest);
    if (sqlite3_step(s) != SQLITE_DONE)
        /* An id of 128 random bits is never there already: it is the key. */
        r = acceptance->idempotency_key &&
                    sqlite3_extended_errcode(registry->db) == SQLITE_CONSTRAINT_UNIQUE
                ? err_set(err, EEXIST, "the idempotency key is in use")
                : db_error(registry, err, "store an execution");
    end(registry, s);
    return r;
}

int registry_execution_by_key(struct registry *registry, const char *key, char **ret_id,
                              char **ret_request_digest, struct err *err)
{
    sqlite3_stmt *s = begin(registry, EXECUTION_BY_KEY);
    char *id = NULL, *digest = NULL;
    int r = 0;

    bind_text(s, 1, key);
    switch (sqlite3_step(s)) {
    case SQLITE_ROW:
        if (!column(s, 0, &id) || !column(s, 1, &digest))
            r = err_set(err, ENOMEM, "out of memory");
        break;
    case SQLITE_DONE:
        r = -ENOENT;
        break;
    default:
        r = db_error(registry, err, "look up an idempotency key");
    }
    end(registry, s);
    if (r < 0) {
        free(id);
        free(digest);
        return r;
    }
    *ret_id = id;
    *ret_request_digest = digest;
    return 0;
}

int registry_execution_end(struct registry *registry, const char *id, const char *status,
                           const char *result, size_t result_len, uint64_t finished_ns,
                           struct err *err)
{
    sqlite3_stmt *s = begin(registry, EXECUTION_END);

    bind_text(s, 1, id);
    bind_text(s, 2, status);
    (void)sqlite3_bind_text64(s, 3, result, result_len, SQLITE_STATIC, SQLITE_UTF8);
    (void)sqlite3_bind_int64(s, 4, (sqlite3_int64)finished_ns);
    return run(registry, s, "store a result", err);
}

/* Copies the row a statement stands on. False without memory. */
static bool read_row(sqlite3_stmt *s, struct registry_execution *ret)
{
    ret->accepted_ns = (uint64_t)sqlite3_column_int64(s, 5);
    ret->finished_ns = (uint64_t)sqlite3_column_int64(s, 6);
    return column(s, 0, &ret->id) && column(s, 1, &ret->status) &&
           column(s, 2, &ret->skill_name) && column(s, 3, &ret->skill_version) &&
           column(s, 4, &ret->skill_digest);
}

/* Reads one execution from a bound statement, and ends it. */
static int read_execution(struct registry *registry, sqlite3_stmt *s,
                          struct registry_execution *ret, struct err *err)
{
    struct registry_execution e = {0};
    int r = 0;

    switch (sqlite3_step(s)) {
    case SQLITE_ROW:
        if (!read_row(s, &e) || !column_or_null(s, 7, &e.result))
            r = err_set(err, ENOMEM, "out of memory");
        break;
    case SQLITE_DONE:
        r = -ENOENT;
        break;
    default:
        r = db_error(registry, err, "look up an execution");
    }
    end(registry, s);
    if (r < 0)
        registry_execution_finish(&e);
    else
        *ret = e;
    return r;
}

int registry_execution_get(struct registry *registry, const char *id,
                           struct registry_execution *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, EXECUTION_BY_ID);

    bind_text(s, 1, id);
    return read_execution(registry, s, ret, err);
}

int registry_execution_unfinished(struct registry *registry, struct registry_execution *ret,
                                  struct err *err)
{
    return read_execution(registry, begin(registry, EXECUTION_UNFINISHED), ret, err);
}

int registry_execution_list(struct registry *registry, const struct registry_page *page,
                            struct registry_execution *rows, size_t *ret_n, struct err *err)
{
    enum statement which =
        (enum statement)(EXECUTION_LIST + (page->skill ? 1 : 0) + (page->status ? 2 : 0));
    sqlite3_stmt *s = begin(registry, which);
    int step = SQLITE_DONE, r = 0;
    size_t n = 0;

    (void)sqlite3_bind_int64(s, 1, page->after_id ? (sqlite3_int64)page->after_ns : INT64_MAX);
    bind_text(s, 2, page->after_id ? page->after_id : "");
    (void)sqlite3_bind_int64(s, 3, (sqlite3_int64)page->max);
    if (page->skill)
        bind_text(s, 4, page->skill);
    if (page->status)
        bind_text(s, 5, page->status);
    while (r == 0 && n < page->max && (step = sqlite3_step(s)) == SQLITE_ROW) {
        rows[n] = (struct registry_execution){0};
        if (!read_row(s, &rows[n++]))
            r = err_set(err, ENOMEM, "out of memory");
    }
    if (r == 0 && n < page->max && step != SQLITE_DONE)
        r = db_error(registry, err, "list executions");
    end(registry, s);
    for (size_t i = 0; r < 0 && i < n; i++)
        registry_execution_finish(&rows[i]);
    if (r == 0)
        *ret_n = n;
    return r;
}
