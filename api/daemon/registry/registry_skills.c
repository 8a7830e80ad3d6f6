/* SPDX-License-Identifier: Apache-2.0 */
/* The skills of the registry. */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/terms/ids.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                \
    "name, version, digest, description, created_ns, bytes, place, is_floating,"               \
    " packages_digest,"                                                                        \
    " packages, packages_python"

#define PAGE_ROWS 100u

enum statement {
    INSERT,
    BY_VERSION,
    BY_DIGEST,
    LATEST,
    OLDER_OF_NAME,
    NAMES_AFTER,
    DELETE,
    DELETE_UNUSED,
    SET_ASIDE,
    DIGEST_USED,
    N_STATEMENTS
};

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO skills(tenant_id, name, version, digest, description, created_ns,"
               " bytes, is_floating, packages_digest, packages, packages_python, entry, place)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
               " '" ID_SKILL "' || lower(hex(randomblob(16))),"
               " (SELECT COALESCE(MAX(place), 0) + 1 FROM skills"
               " WHERE tenant_id = ?1 AND name = ?2))",
    [BY_VERSION] = "SELECT " COLUMNS " FROM skills"
                   " WHERE tenant_id = ?1 AND name = ?2 AND version = ?3",
    [BY_DIGEST] = "SELECT " COLUMNS " FROM skills"
                  " WHERE tenant_id = ?1 AND name = ?2 AND digest = ?3"
                  " ORDER BY place DESC, version DESC LIMIT 1",
    [LATEST] = "SELECT " COLUMNS " FROM skills"
               " WHERE tenant_id = ?1 AND name = ?2"
               " ORDER BY place DESC, version DESC LIMIT 1",
    [OLDER_OF_NAME] = "SELECT " COLUMNS " FROM skills WHERE tenant_id = ?1 AND name = ?2"
                      " AND (place, version) < (?4, ?5)"
                      " ORDER BY place DESC, version DESC LIMIT ?3",
    [NAMES_AFTER] = "SELECT " COLUMNS " FROM skills WHERE tenant_id = ?1 AND name > ?2"
                    " ORDER BY name, place DESC, version DESC LIMIT ?3",
    [DELETE] = "DELETE FROM skills WHERE tenant_id = ?1 AND name = ?2 AND version = ?3"
               " AND digest = ?4",
    [DELETE_UNUSED] = "DELETE FROM skills WHERE tenant_id = ?1 AND name = ?2 AND version = ?3"
                      " AND NOT EXISTS(SELECT 1 FROM executions"
                      " INDEXED BY executions_unfinished WHERE tenant_id = ?1"
                      " AND finished_ns IS NULL AND skill_name = ?2"
                      " AND skill_digest = skills.digest)",
    [SET_ASIDE] = "UPDATE skills SET version = '" REGISTRY_BY_DIGEST "' || digest"
                  " WHERE tenant_id = ?1 AND name = ?2 AND version = ?3",
    [DIGEST_USED] = "SELECT EXISTS(SELECT 1 FROM skills WHERE digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM skills WHERE packages_digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM executions WHERE artifact_digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM records WHERE result_digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM files WHERE digest = ?1)"
                    " OR EXISTS(SELECT 1 FROM sessions WHERE digest = ?1)",
};

const struct registry_statements registry_skill_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_skill, name),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_skill, version),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_skill, digest),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_skill, description),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_skill, created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_skill, bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_skill, place),
    REGISTRY_COLUMN(REGISTRY_BOOL, registry_skill, is_floating),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_skill, packages_digest),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_skill, packages),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_skill, packages_python),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_skill, columns);

REGISTRY_FINISH(registry_skill, kind)

static int find_skill(struct registry *registry, const char *tenant, const char *name,
                      const char *version, struct registry_skill *ret, struct err *err)
{
    const size_t prefix = strlen(REGISTRY_BY_DIGEST);
    bool by_digest = version && strncmp(version, REGISTRY_BY_DIGEST, prefix) == 0;
    const char *value = by_digest ? version + prefix : version;

    return registry_read_row(
        registry, REGISTRY_SKILLS,
        by_digest ? BY_DIGEST
        : version ? BY_VERSION
                  : LATEST,
        REGISTRY_VALUES(registry_text(tenant), registry_text(name), registry_text(value)),
        &kind, ret, "look up a skill", err);
}

int registry_skill_get(struct registry *registry, const char *tenant, const char *name,
                       const char *version, struct registry_skill *ret, bool *ret_name_known,
                       struct err *err)
{
    _cleanup_registry_skill_ struct registry_skill other = {0};
    int r = find_skill(registry, tenant, name, version, ret, err);

    *ret_name_known = r == 0;
    if (r != -ENOENT || !version)
        return r;
    r = find_skill(registry, tenant, name, NULL, &other, err);
    *ret_name_known = r == 0;
    return r < 0 ? r : -ENOENT;
}

/* Within a transaction: frees the version for other content. */
static int make_way(struct registry *registry, const char *tenant,
                    const struct registry_skill *skill, bool replace, struct err *err)
{
    int r = registry_step(registry, REGISTRY_SKILLS, replace ? DELETE_UNUSED : SET_ASIDE,
                          REGISTRY_VALUES(registry_text(tenant), registry_text(skill->name),
                                          registry_text(skill->version)),
                          "replace a skill", err);

    if (r < 0 || !replace || registry_changes(registry) > 0)
        return r;
    return err_set(err, EEXIST,
                   "an execution of %s %s waits or runs: let it end or cancel it, then "
                   "replace the skill",
                   skill->name, skill->version);
}

static int put_in_place(struct registry *registry, const char *tenant,
                        const struct registry_skill *skill, const struct registry_value *values,
                        bool replace, struct err *err)
{
    int r = make_way(registry, tenant, skill, replace, err);

    return r < 0 ? r
                 : registry_step(registry, REGISTRY_SKILLS, INSERT, values, "register a skill",
                                 err);
}

static int put_other(struct registry *registry, const char *tenant,
                     const struct registry_skill *skill, const struct registry_value *values,
                     bool replace, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = put_in_place(registry, tenant, skill, values, replace, err);
    return registry_transaction_end(registry, r, err);
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool registry_skill_is_there(const struct registry_skill *there,
                             const struct registry_skill *skill, bool replace)
{
    return strcmp(there->digest, skill->digest) == 0 &&
           (!replace || (is_same(there->packages_digest, skill->packages_digest) &&
                         is_same(there->packages, skill->packages) &&
                         there->packages_python == skill->packages_python));
}

int registry_skill_taken(const struct registry_skill *skill, const char *digest,
                         struct err *err)
{
    return err_set(err, EEXIST,
                   "%s %s is registered already with other content (digest %.12s): give "
                   "this another version, or replace that (--replace, ?replace=true)",
                   skill->name, skill->version, digest);
}

int registry_skill_put(struct registry *registry, const char *tenant,
                       const struct registry_skill *skill, bool replace, char **ret_previous,
                       struct err *err)
{
    const struct registry_value *values = REGISTRY_VALUES(
        registry_text(tenant), registry_text(skill->name), registry_text(skill->version),
        registry_text(skill->digest), registry_text(skill->description),
        registry_number(clock_realtime_ns()), registry_number(skill->bytes),
        registry_number(skill->is_floating), registry_text(skill->packages_digest),
        registry_text(skill->packages), registry_number(skill->packages_python));
    _cleanup_registry_skill_ struct registry_skill existing = {0};
    _cleanup_free_ char *previous = NULL;
    int r = registry_put(registry, REGISTRY_SKILLS, INSERT, values, "register a skill", err);

    if (r == -ENOENT)
        return err_set(err, ENOENT, "the tenant was deleted");
    if (r != -EEXIST)
        return r;
    r = find_skill(registry, tenant, skill->name, skill->version, &existing, err);
    if (r < 0)
        return r == -ENOENT ? err_set(err, EIO, "database: a skill vanished") : r;
    if (registry_skill_is_there(&existing, skill, replace))
        return 0;
    if (!replace && !existing.is_floating)
        return registry_skill_taken(skill, existing.digest, err);
    previous = strdup(existing.digest);
    if (!previous)
        return err_no_memory(err);
    r = put_other(registry, tenant, skill, values, replace, err);
    if (r == 0)
        *ret_previous = steal_ptr(&previous);
    return r;
}

static int read_some(struct registry *registry, enum statement which, const char *tenant,
                     const struct registry_skill *last, size_t max, struct registry_skill *rows,
                     size_t *ret_n, struct err *err)
{
    return registry_read_rows(
        registry, REGISTRY_SKILLS, which,
        REGISTRY_VALUES(registry_text(tenant), registry_text(last->name ? last->name : ""),
                        registry_number(max), registry_number(last->place),
                        registry_text(last->version)),
        &kind, max, rows, ret_n, "list the skills", err);
}

/* The skills after one: each page begins where the last one ended, whatever is before that. */
static int read_page(struct registry *registry, const char *tenant,
                     const struct registry_skill *last, struct registry_skill *rows,
                     size_t *ret_n, struct err *err)
{
    size_t n = 0;
    int r = read_some(registry, OLDER_OF_NAME, tenant, last, PAGE_ROWS, rows, ret_n, err);

    if (r < 0 || *ret_n == PAGE_ROWS)
        return r;
    r = read_some(registry, NAMES_AFTER, tenant, last, PAGE_ROWS - *ret_n, rows + *ret_n, &n,
                  err);
    *ret_n += n;
    while (r < 0 && *ret_n > 0)
        registry_skill_finish(&rows[--*ret_n]);
    return r;
}

int registry_skill_each(struct registry *registry, const char *tenant,
                        registry_skill_visit *visit, void *ctx, struct err *err)
{
    _cleanup_registry_skill_ struct registry_skill last = {.place = INT64_MAX};
    struct registry_skill rows[PAGE_ROWS];
    size_t n = PAGE_ROWS;
    int r = 0;

    /* In pages: whoever has many must not keep the lock from others. */
    while (r == 0 && n == PAGE_ROWS) {
        r = read_page(registry, tenant, &last, rows, &n, err);
        if (r < 0)
            break;
        for (size_t i = 0; r == 0 && i < n; i++)
            r = visit(ctx, &rows[i]);
        for (size_t i = 0; i < n; i++) {
            registry_skill_finish(&last);
            last = rows[i];
        }
    }
    return r;
}

int registry_skill_delete(struct registry *registry, const char *tenant,
                          const struct registry_skill *skill, struct err *err)
{
    return registry_put(registry, REGISTRY_SKILLS, DELETE,
                        REGISTRY_VALUES(registry_text(tenant), registry_text(skill->name),
                                        registry_text(skill->version),
                                        registry_text(skill->digest)),
                        "delete a skill", err);
}

int registry_digest_used(struct registry *registry, const char *digest, bool *ret,
                         struct err *err)
{
    uint64_t used = 1;
    int r = registry_read_number(registry, REGISTRY_SKILLS, DIGEST_USED,
                                 REGISTRY_VALUES(registry_text(digest)), "look up a digest",
                                 &used, err);

    if (r < 0)
        return r;
    *ret = used != 0;
    return 0;
}
