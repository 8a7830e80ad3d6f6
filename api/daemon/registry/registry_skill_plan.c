/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_skill_plan.h"

#include "api/daemon/registry/registry_entries.h"
#include "api/daemon/registry/registry_internal.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum statement {
    ENTRY_OF,
    LAST_PLACE,
    IN_USE,
    BYTES,
    OF_CHANGES,
    OF_EXECUTIONS,
    ROW_BYTES,
    N_STATEMENTS
};

static const char *const text[N_STATEMENTS] = {
    [ENTRY_OF] = "SELECT entry FROM skills WHERE tenant_id = ?1 AND name = ?2 AND version = ?3",
    [LAST_PLACE] =
        "SELECT COALESCE(MAX(place), 0) FROM skills WHERE tenant_id = ?1 AND name = ?2",
    [IN_USE] = "SELECT EXISTS(SELECT 1 FROM executions"
               " INDEXED BY executions_unfinished WHERE tenant_id = ?1"
               " AND finished_ns IS NULL AND skill_name = ?2 AND skill_digest = ?3"
               " AND NOT EXISTS(SELECT 1 FROM records"
               " WHERE records.id = executions.id AND node <> ''))",
    /* One that does not say it makes all unknown. */
    [BYTES] = "SELECT CASE WHEN MIN(bytes) > 0 THEN MAX(bytes) ELSE 0 END FROM"
              " (SELECT bytes FROM skills WHERE digest = ?1"
              " UNION ALL SELECT bytes FROM skills WHERE packages_digest = ?1"
              " UNION ALL SELECT bytes FROM files WHERE digest = ?1"
              " UNION ALL SELECT bytes FROM sessions WHERE digest = ?1"
              " UNION ALL SELECT artifact_bytes FROM executions WHERE artifact_digest = ?1"
              " UNION ALL SELECT result_bytes FROM executions WHERE id IN"
              " (SELECT id FROM records WHERE result_digest = ?1))",
    [OF_CHANGES] = "SELECT EXISTS(SELECT 1 FROM skills WHERE digest = ?1)"
                   " OR EXISTS(SELECT 1 FROM skills WHERE packages_digest = ?1)"
                   " OR EXISTS(SELECT 1 FROM files WHERE digest = ?1)"
                   " OR EXISTS(SELECT 1 FROM sessions WHERE digest = ?1)",
    [OF_EXECUTIONS] = "SELECT EXISTS(SELECT 1 FROM executions WHERE artifact_digest = ?1)"
                      " OR EXISTS(SELECT 1 FROM records WHERE result_digest = ?1)",
    [ROW_BYTES] = "SELECT (SELECT COALESCE(SUM(640 + length(CAST(json_quote(description) AS"
                  " BLOB)) + length(CAST(COALESCE(packages, '') AS BLOB))), 0)"
                  " FROM skills WHERE tenant_id = ?1)"
                  " + (SELECT COALESCE(SUM(560 + length(CAST(json_quote(name) AS BLOB))"
                  " + length(content_type)), 0) FROM files WHERE tenant_id = ?1)"
                  " + (SELECT COALESCE(SUM(560 + length(id)), 0)"
                  " FROM sessions WHERE tenant_id = ?1)",
};

const struct registry_statements registry_skill_plan_statements = {text, N_STATEMENTS};

static int number_of(struct registry *registry, enum statement which,
                     const struct registry_value *values, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_SKILL_PLAN, which, values, "look up a skill",
                                ret, err);
}

/* The change that makes a version what it is. 0, -ENOENT or -EIO. */
static int find(struct registry *registry, const char *tenant, const char *name,
                const char *version, struct change *ret, struct err *err)
{
    static const struct registry_column id[] = {REGISTRY_COLUMN(REGISTRY_ID, change, id)};
    static const struct registry_rows ids = REGISTRY_ROWS(change, id);
    int r = registry_read_row(
        registry, REGISTRY_SKILL_PLAN, ENTRY_OF,
        REGISTRY_VALUES(registry_text(tenant), registry_text(name), registry_text(version)),
        &ids, ret, "look up a skill", err);

    return r < 0 ? r : registry_change_of(registry, CHANGE_SKILL, ret->id, ret, err);
}

/* The skill in its place behind all others of its name, but for its id. */
static int fill(struct registry *registry, const char *tenant,
                const struct registry_skill *skill, struct change_skill *ret, struct err *err)
{
    int r = number_of(registry, LAST_PLACE,
                      REGISTRY_VALUES(registry_text(tenant), registry_text(skill->name)),
                      &ret->place, err);

    if (r < 0)
        return r;
    if (ret->place++ >= CHANGE_PLACE_MAX)
        return err_set(err, EIO, "no place is left behind the versions of %s", skill->name);
    ret->created_ns = clock_realtime_ns();
    ret->bytes = skill->bytes;
    ret->is_floating = skill->is_floating;
    ret->packages_python = skill->packages_python;
    if (!text_copy(ret->description, sizeof(ret->description), skill->description))
        return err_set(err, E2BIG,
                       "the description is too long for a skill of a cluster: up to %zu bytes "
                       "are possible",
                       sizeof(ret->description) - 1);
    if (text_copy(ret->tenant, sizeof(ret->tenant), tenant) &&
        text_copy(ret->name, sizeof(ret->name), skill->name) &&
        text_copy(ret->version, sizeof(ret->version), skill->version) &&
        text_copy(ret->digest, sizeof(ret->digest), skill->digest) &&
        text_copy(ret->packages_digest, sizeof(ret->packages_digest), skill->packages_digest) &&
        text_copy(ret->packages, sizeof(ret->packages), skill->packages))
        return 0;
    return err_set(err, E2BIG,
                   "the list of its packages is too long for a skill of a cluster: up to %u "
                   "bytes are possible",
                   CHANGE_PACKAGES_SIZE - 1);
}

static void name_aside(const char *digest, char ret[CHANGE_VERSION_SIZE])
{
    (void)snprintf(ret, CHANGE_VERSION_SIZE, REGISTRY_BY_DIGEST "%.64s", digest);
}

/* It is there. What was kept of the same content as an earlier one is no such thing. */
static int plan_there(struct registry *registry, const struct change_skill *there,
                      struct change *ret, struct err *err)
{
    char aside[CHANGE_VERSION_SIZE];
    int r;

    name_aside(there->digest, aside);
    r = find(registry, there->tenant, there->name, aside, ret, err);
    if (r < 0)
        return r == -ENOENT ? -EALREADY : r;
    ret->is_removed = true;
    return 1;
}

/* What is there keeps a row, by its digest; or gives its own to what comes. */
static int plan_aside(struct registry *registry, const struct change *there, struct change *ret,
                      struct err *err)
{
    char aside[CHANGE_VERSION_SIZE];
    int r;

    name_aside(there->skill.digest, aside);
    r = find(registry, there->skill.tenant, there->skill.name, aside, ret, err);
    if (r != -ENOENT)
        return r;
    r = registry_entry_make(registry, CHANGE_SKILL, ret, err);
    if (r < 0)
        return r;
    ret->skill = there->skill;
    memcpy(ret->skill.version, aside, sizeof(aside));
    return 1;
}

static int check_unused(struct registry *registry, const struct change_skill *there,
                        struct err *err)
{
    uint64_t in_use = 0;
    int r = number_of(registry, IN_USE,
                      REGISTRY_VALUES(registry_text(there->tenant), registry_text(there->name),
                                      registry_text(there->digest)),
                      &in_use, err);

    if (r < 0 || !in_use)
        return r;
    return err_set(err, EEXIST,
                   "an execution of %s %s waits or runs: let it end or cancel it, then "
                   "replace the skill",
                   there->name, there->version);
}

int registry_skill_plan(struct registry *registry, const char *tenant,
                        const struct registry_skill *skill, bool replace, struct change *ret,
                        char ret_previous[CHANGE_DIGEST_SIZE], struct err *err)
{
    struct change there = {0};
    int r = find(registry, tenant, skill->name, skill->version, &there, err);
    const struct registry_skill row = {.digest = there.skill.digest,
                                       .packages_digest = there.skill.packages_digest,
                                       .packages = there.skill.packages,
                                       .packages_python = there.skill.packages_python};

    *ret = (struct change){0};
    ret_previous[0] = '\0';
    if (r < 0 && r != -ENOENT)
        return r;
    if (r == -ENOENT) {
        r = registry_entry_make(registry, CHANGE_SKILL, ret, err);
        return r < 0 ? r : fill(registry, tenant, skill, &ret->skill, err);
    }
    if (registry_skill_is_there(&row, skill, replace))
        return plan_there(registry, &there.skill, ret, err);
    if (!replace && !there.skill.is_floating)
        return registry_skill_taken(skill, there.skill.digest, err);
    r = replace ? check_unused(registry, &there.skill, err)
                : plan_aside(registry, &there, ret, err);
    if (r != 0)
        return r;
    memcpy(ret_previous, there.skill.digest, CHANGE_DIGEST_SIZE);
    *ret = (struct change){.kind = CHANGE_SKILL};
    memcpy(ret->id, there.id, sizeof(ret->id));
    return fill(registry, tenant, skill, &ret->skill, err);
}

int registry_skill_plan_delete(struct registry *registry, const char *tenant,
                               const struct registry_skill *skill, struct change *ret,
                               struct err *err)
{
    int r = find(registry, tenant, skill->name, skill->version, ret, err);

    if (r < 0)
        return r;
    ret->is_removed = true;
    return strcmp(ret->skill.digest, skill->digest) == 0 ? 0 : -ENOENT;
}

int registry_object_bytes(struct registry *registry, const char *digest, uint64_t *ret,
                          struct err *err)
{
    return number_of(registry, BYTES, REGISTRY_VALUES(registry_text(digest)), ret, err);
}

int registry_object_naming(struct registry *registry, const char *digest,
                           struct registry_naming *ret, struct err *err)
{
    const struct registry_value *values = REGISTRY_VALUES(registry_text(digest));
    uint64_t changes = 0, executions = 0;
    int r = number_of(registry, OF_CHANGES, values, &changes, err);

    if (r < 0)
        return r;
    r = number_of(registry, OF_EXECUTIONS, values, &executions, err);
    *ret = (struct registry_naming){.by_changes = changes, .by_executions = executions};
    return r;
}

int registry_owned_rows_bytes(struct registry *registry, const char *tenant, uint64_t *ret,
                              struct err *err)
{
    return number_of(registry, ROW_BYTES, REGISTRY_VALUES(registry_text(tenant)), ret, err);
}
