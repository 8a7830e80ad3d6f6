/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of the registry. */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_usage.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* An execution as read_row wants it; the result comes after, where it is wanted. */
#define COLUMNS                                                                                \
    "id, tenant_id, status, skill_name, skill_version, skill_digest, accepted_ns,"             \
    " finished_ns, artifact_digest, artifact_bytes"
#define RESULT_COLUMN 10
/* A page of a list: newest first, from a place on. */
#define PAGE                                                                                   \
    " tenant_id = ?4 AND (accepted_ns, id) < (?1, ?2)"                                         \
    " ORDER BY accepted_ns DESC, id DESC LIMIT ?3"

enum statement {
    INSERT,
    END,
    CHARGE,
    BY_ID,
    BY_KEY,
    UNFINISHED,
    LIST, /* and three more by what is filtered */
    LIST_SKILL,
    LIST_STATUS,
    LIST_BOTH,
    N_STATEMENTS,
};

static const char *const text[N_STATEMENTS] = {
    /* A tenant that was deleted since the request was let in gets no rows any more. */
    [INSERT] = "INSERT INTO executions(id, status, skill_name, skill_version, skill_digest,"
               " accepted_ns, idempotency_key, request_digest, tenant_id)"
               " SELECT ?1, 'accepted', ?2, ?3, ?4, ?5, ?6, ?7, id FROM tenants WHERE id = ?8",
    [END] = "UPDATE executions SET status = ?2, result = ?3, finished_ns = ?4,"
            " artifact_digest = ?5, artifact_bytes = ?6, result_bytes = ?7 WHERE id = ?1",
    [CHARGE] = "INSERT INTO usage(tenant_id, day, cpu_ms)"
               " SELECT tenant_id, ?2, ?3 FROM executions WHERE id = ?1"
               " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    [BY_ID] = "SELECT " COLUMNS ", result FROM executions WHERE id = ?1 AND tenant_id = ?2",
    [BY_KEY] = "SELECT id, request_digest FROM executions"
               " WHERE tenant_id = ?1 AND idempotency_key = ?2",
    [UNFINISHED] = "SELECT " COLUMNS ", result FROM executions"
                   " WHERE finished_ns IS NULL LIMIT 1",
    [LIST] = "SELECT " COLUMNS " FROM executions WHERE" PAGE,
    [LIST_SKILL] = "SELECT " COLUMNS " FROM executions WHERE skill_name = ?5 AND" PAGE,
    [LIST_STATUS] = "SELECT " COLUMNS " FROM executions WHERE status = ?6 AND" PAGE,
    [LIST_BOTH] = "SELECT " COLUMNS " FROM executions"
                  " WHERE skill_name = ?5 AND status = ?6 AND" PAGE,
};

const struct registry_statements registry_execution_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    return registry_begin(registry, REGISTRY_EXECUTIONS, which);
}

void registry_execution_finish(struct registry_execution *execution)
{
    free(execution->id);
    free(execution->status);
    free(execution->skill_name);
    free(execution->skill_version);
    free(execution->skill_digest);
    free(execution->result);
    free(execution->artifact_digest);
    *execution = (struct registry_execution){0};
}

int registry_execution_accept(struct registry *registry, const char *tenant,
                              const struct registry_acceptance *acceptance, struct err *err)
{
    sqlite3_stmt *s = begin(registry, INSERT);
    int r = 0;

    registry_bind_text(s, 1, acceptance->id);
    registry_bind_text(s, 2, acceptance->skill_name);
    registry_bind_text(s, 3, acceptance->skill_version);
    registry_bind_text(s, 4, acceptance->skill_digest);
    registry_bind_u64(s, 5, acceptance->accepted_ns);
    registry_bind_text(s, 6, acceptance->idempotency_key);
    registry_bind_text(s, 7, acceptance->request_digest);
    registry_bind_text(s, 8, tenant);
    if (sqlite3_step(s) != SQLITE_DONE)
        /* An id of 128 random bits is never there already: it is the key. */
        r = acceptance->idempotency_key && registry_is_duplicate(registry)
                ? err_set(err, EEXIST, "the idempotency key is in use")
                : registry_error(registry, err, "store an execution");
    else if (registry_changes(registry) == 0)
        r = err_set(err, ENOENT, "the tenant was deleted");
    registry_end(registry, s);
    return r;
}

int registry_execution_by_key(struct registry *registry, const char *tenant, const char *key,
                              char **ret_id, char **ret_request_digest, struct err *err)
{
    sqlite3_stmt *s = begin(registry, BY_KEY);
    char *id = NULL, *digest = NULL;
    int r;

    registry_bind_text(s, 1, tenant);
    registry_bind_text(s, 2, key);
    r = registry_fetch(registry, s, "look up an idempotency key", err);
    if (r == 0 && (!registry_column(s, 0, &id) || !registry_column(s, 1, &digest)))
        r = registry_no_memory(err);
    registry_end(registry, s);
    if (r < 0) {
        free(id);
        free(digest);
        return r;
    }
    *ret_id = id;
    *ret_request_digest = digest;
    return 0;
}

int registry_execution_end(struct registry *registry, const char *id,
                           const struct registry_ending *ending, struct err *err)
{
    sqlite3_stmt *s;
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    s = registry_statement(registry, REGISTRY_EXECUTIONS, END);
    registry_bind_text(s, 1, id);
    registry_bind_text(s, 2, ending->status);
    (void)sqlite3_bind_text64(s, 3, ending->result, ending->result_len, SQLITE_STATIC,
                              SQLITE_UTF8);
    registry_bind_u64(s, 4, ending->finished_ns);
    registry_bind_text(s, 5, ending->artifact_digest);
    registry_bind_u64(s, 6, ending->artifact_bytes);
    registry_bind_u64(s, 7, ending->result_len);
    r = registry_step(registry, s, "store a result", err);
    if (r == 0 && ending->cpu_ms > 0) {
        s = registry_statement(registry, REGISTRY_EXECUTIONS, CHARGE);
        registry_bind_text(s, 1, id);
        registry_bind_u64(s, 2, registry_usage_day(ending->finished_ns));
        registry_bind_u64(s, 3, ending->cpu_ms);
        r = registry_step(registry, s, "store usage", err);
    }
    return registry_transaction_end(registry, r, err);
}

/* Copies the row a statement stands on. False without memory. */
static bool read_row(sqlite3_stmt *s, void *row)
{
    struct registry_execution *ret = row;
    registry_column_copy(s, 1, ret->tenant, sizeof(ret->tenant));
    ret->accepted_ns = registry_column_u64(s, 6);
    ret->finished_ns = registry_column_u64(s, 7);
    ret->artifact_bytes = registry_column_u64(s, 9);
    return registry_column(s, 0, &ret->id) && registry_column(s, 2, &ret->status) &&
           registry_column(s, 3, &ret->skill_name) &&
           registry_column(s, 4, &ret->skill_version) &&
           registry_column(s, 5, &ret->skill_digest) &&
           registry_column_or_null(s, 8, &ret->artifact_digest);
}

static void finish_row(void *row)
{
    registry_execution_finish(row);
}

static const struct registry_rows kind = {sizeof(struct registry_execution), read_row,
                                          finish_row};

/* With its result. */
static bool read_whole(sqlite3_stmt *s, void *row)
{
    struct registry_execution *ret = row;

    return read_row(s, ret) && registry_column_or_null(s, RESULT_COLUMN, &ret->result);
}

static const struct registry_rows whole = {sizeof(struct registry_execution), read_whole,
                                           finish_row};

int registry_execution_get(struct registry *registry, const char *tenant, const char *id,
                           struct registry_execution *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, BY_ID);

    registry_bind_text(s, 1, id);
    registry_bind_text(s, 2, tenant);
    return registry_read_row(registry, s, &whole, ret, "look up an execution", err);
}

int registry_execution_unfinished(struct registry *registry, struct registry_execution *ret,
                                  struct err *err)
{
    return registry_read_row(registry, begin(registry, UNFINISHED), &whole, ret,
                             "look up an execution", err);
}

int registry_execution_list(struct registry *registry, const char *tenant,
                            const struct registry_page *page, struct registry_execution *rows,
                            size_t *ret_n, struct err *err)
{
    enum statement which =
        (enum statement)(LIST + (page->skill ? 1 : 0) + (page->status ? 2 : 0));
    sqlite3_stmt *s = begin(registry, which);

    registry_bind_place(s, page->after_ns, page->after_id);
    registry_bind_u64(s, 3, page->max);
    registry_bind_text(s, 4, tenant);
    if (page->skill)
        registry_bind_text(s, 5, page->skill);
    if (page->status)
        registry_bind_text(s, 6, page->status);
    return registry_read_rows(registry, s, &kind, page->max, rows, ret_n, "list executions",
                              err);
}
