/* SPDX-License-Identifier: Apache-2.0 */
/* The skills of the registry. */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "base/clock.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS "name, version, digest, description, created_ns, bytes, id"

#define PAGE_ROWS 100u

enum statement { INSERT, BY_VERSION, LATEST, PAGE, DELETE, DIGEST_USED, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO skills(tenant_id, name, version, digest, description, created_ns,"
               " bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [BY_VERSION] = "SELECT " COLUMNS " FROM skills"
                   " WHERE tenant_id = ?1 AND name = ?2 AND version = ?3",
    [LATEST] = "SELECT " COLUMNS " FROM skills"
               " WHERE tenant_id = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1",
    [PAGE] = "SELECT " COLUMNS " FROM skills WHERE tenant_id = ?1 AND name >= ?2"
             " AND (name > ?2 OR id < ?3) ORDER BY name, id DESC LIMIT ?4",
    [DELETE] = "DELETE FROM skills WHERE tenant_id = ?1 AND name = ?2 AND version = ?3",
    [DIGEST_USED] = "SELECT EXISTS(SELECT 1 FROM skills WHERE digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM executions WHERE artifact_digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM files WHERE digest = ?1)",
};

const struct registry_statements registry_skill_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which, const char *first)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_SKILLS, which);

    registry_bind_text(s, 1, first);
    return s;
}

void registry_skill_finish(struct registry_skill *skill)
{
    free(skill->name);
    free(skill->version);
    free(skill->digest);
    free(skill->description);
    *skill = (struct registry_skill){0};
}

static bool read_row(sqlite3_stmt *s, void *row)
{
    struct registry_skill *ret = row;

    ret->created_ns = registry_column_u64(s, 4);
    ret->bytes = registry_column_u64(s, 5);
    ret->place = registry_column_u64(s, 6);
    return registry_column(s, 0, &ret->name) && registry_column(s, 1, &ret->version) &&
           registry_column(s, 2, &ret->digest) && registry_column(s, 3, &ret->description);
}

static void finish_row(void *row)
{
    registry_skill_finish(row);
}

static const struct registry_rows kind = {sizeof(struct registry_skill), read_row, finish_row};

static int find_skill(struct registry *registry, const char *tenant, const char *name,
                      const char *version, struct registry_skill *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, version ? BY_VERSION : LATEST, tenant);

    registry_bind_text(s, 2, name);
    if (version)
        registry_bind_text(s, 3, version);
    return registry_read_row(registry, s, &kind, ret, "look up a skill", err);
}

int registry_skill_get(struct registry *registry, const char *tenant, const char *name,
                       const char *version, struct registry_skill *ret, bool *ret_name_known,
                       struct err *err)
{
    struct registry_skill other;
    int r = find_skill(registry, tenant, name, version, ret, err);

    *ret_name_known = r == 0;
    if (r != -ENOENT || !version)
        return r;
    r = find_skill(registry, tenant, name, NULL, &other, err);
    if (r < 0)
        return r;
    registry_skill_finish(&other);
    *ret_name_known = true;
    return -ENOENT;
}

int registry_skill_put(struct registry *registry, const char *tenant,
                       const struct registry_registration *registration, char **ret_existing,
                       struct err *err)
{
    struct registry_skill existing;
    sqlite3_stmt *s = begin(registry, INSERT, tenant);
    bool duplicate;
    int r = 0;

    registry_bind_text(s, 2, registration->name);
    registry_bind_text(s, 3, registration->version);
    registry_bind_text(s, 4, registration->digest);
    registry_bind_text(s, 5, registration->description);
    registry_bind_u64(s, 6, clock_realtime_ns());
    registry_bind_u64(s, 7, registration->bytes);
    duplicate = sqlite3_step(s) != SQLITE_DONE;
    if (duplicate && registry_is_orphan(registry))
        r = err_set(err, ENOENT, "the tenant was deleted");
    else if (duplicate && !registry_is_duplicate(registry))
        r = registry_error(registry, err, "register a skill");
    registry_end(registry, s);
    if (r < 0 || !duplicate)
        return r;
    r = find_skill(registry, tenant, registration->name, registration->version, &existing, err);
    if (r < 0)
        return r == -ENOENT ? err_set(err, EIO, "database: a skill vanished") : r;
    if (existing.digest && strcmp(existing.digest, registration->digest) != 0) {
        *ret_existing = existing.digest;
        existing.digest = NULL;
        r = -EEXIST;
    }
    registry_skill_finish(&existing);
    return r;
}

/* Reads what follows a name and a place. *ret_n rows are the caller's. */
static int read_page(struct registry *registry, const char *tenant, const char *name,
                     uint64_t place, struct registry_skill *rows, size_t *ret_n,
                     struct err *err)
{
    sqlite3_stmt *s = begin(registry, PAGE, tenant);

    registry_bind_text(s, 2, name);
    registry_bind_u64(s, 3, place);
    registry_bind_u64(s, 4, PAGE_ROWS);
    return registry_read_rows(registry, s, &kind, PAGE_ROWS, rows, ret_n, "list the skills",
                              err);
}

int registry_skill_each(struct registry *registry, const char *tenant,
                        registry_skill_visit *visit, void *ctx, struct err *err)
{
    struct registry_skill rows[PAGE_ROWS];
    char *after = strdup("");
    uint64_t place = INT64_MAX;
    size_t n = PAGE_ROWS;
    int r = after ? 0 : registry_no_memory(err);

    /* In pages: whoever has many must not keep the lock from others. */
    while (r == 0 && n == PAGE_ROWS) {
        r = read_page(registry, tenant, after, place, rows, &n, err);
        if (r < 0)
            break;
        for (size_t i = 0; r == 0 && i < n; i++)
            r = visit(ctx, &rows[i]);
        if (r == 0 && n == PAGE_ROWS) {
            free(after);
            place = rows[n - 1].place;
            after = rows[n - 1].name;
            rows[n - 1].name = NULL;
        }
        for (size_t i = 0; i < n; i++)
            registry_skill_finish(&rows[i]);
    }
    free(after);
    return r;
}

int registry_skill_delete(struct registry *registry, const char *tenant, const char *name,
                          const char *version, struct err *err)
{
    sqlite3_stmt *s = begin(registry, DELETE, tenant);

    registry_bind_text(s, 2, name);
    registry_bind_text(s, 3, version);
    return registry_run_on_row(registry, s, "delete a skill", err);
}

int registry_digest_used(struct registry *registry, const char *digest, bool *ret,
                         struct err *err)
{
    uint64_t used = 1;
    int r = registry_read_number(registry, begin(registry, DIGEST_USED, digest),
                                 "look up a digest", &used, err);

    if (r < 0)
        return r;
    *ret = used != 0;
    return 0;
}
