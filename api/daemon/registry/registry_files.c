/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_files.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#define SELECT                                                                                 \
    "SELECT id, tenant_id, name, digest, bytes, created_ns, expires_ns, content_type FROM "    \
    "files"                                                                                    \
    " WHERE "

enum statement { INSERT, BY_ID, LIST, DELETE, EXPIRED, COUNT, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO files(id, name, digest, bytes, created_ns, expires_ns, tenant_id, "
               "content_type)"
               " SELECT ?1, ?2, ?3, ?4, ?5, ?6, id, ?8 FROM tenants WHERE id = ?7",
    [BY_ID] = SELECT "id = ?1 AND tenant_id = ?2",
    [LIST] = SELECT "tenant_id = ?1 AND expires_ns > ?2"
                    " ORDER BY created_ns DESC, id DESC LIMIT ?3 OFFSET ?4",
    [DELETE] = "DELETE FROM files WHERE id = ?1 AND tenant_id = ?2",
    [COUNT] = "SELECT COUNT(*) FROM files WHERE tenant_id = ?1",
    [EXPIRED] = SELECT "expires_ns <= ?1 ORDER BY expires_ns, id LIMIT ?2",
};

const struct registry_statements registry_file_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    return registry_begin(registry, REGISTRY_FILES, which);
}

void registry_file_finish(struct registry_file *file)
{
    free(file->name);
    free(file->content_type);
    free(file->digest);
    *file = (struct registry_file){0};
}

static bool read_row(sqlite3_stmt *s, void *row)
{
    struct registry_file *ret = row;

    registry_column_copy(s, 0, ret->id, sizeof(ret->id));
    registry_column_copy(s, 1, ret->tenant, sizeof(ret->tenant));
    ret->bytes = registry_column_u64(s, 4);
    ret->created_ns = registry_column_u64(s, 5);
    ret->expires_ns = registry_column_u64(s, 6);
    return registry_column(s, 2, &ret->name) && registry_column(s, 3, &ret->digest) &&
           registry_column(s, 7, &ret->content_type);
}

static void finish_row(void *row)
{
    registry_file_finish(row);
}

static const struct registry_rows kind = {sizeof(struct registry_file), read_row, finish_row};

int registry_file_create(struct registry *registry, const char *tenant,
                         const struct registry_file *file, struct err *err)
{
    sqlite3_stmt *s = begin(registry, INSERT);

    registry_bind_text(s, 1, file->id);
    registry_bind_text(s, 2, file->name);
    registry_bind_text(s, 3, file->digest);
    registry_bind_u64(s, 4, file->bytes);
    registry_bind_u64(s, 5, file->created_ns);
    registry_bind_u64(s, 6, file->expires_ns);
    registry_bind_text(s, 7, tenant);
    registry_bind_text(s, 8, file->content_type);
    return registry_run_on_row(registry, s, "store a file", err);
}

int registry_file_get(struct registry *registry, const char *tenant, const char *id,
                      struct registry_file *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, BY_ID);

    registry_bind_text(s, 1, id);
    registry_bind_text(s, 2, tenant);
    return registry_read_row(registry, s, &kind, ret, "look up a file", err);
}

int registry_file_list(struct registry *registry, const char *tenant, uint64_t now_ns,
                       size_t offset, size_t max, struct registry_file *rows, size_t *ret_n,
                       struct err *err)
{
    sqlite3_stmt *s = begin(registry, LIST);

    registry_bind_text(s, 1, tenant);
    registry_bind_u64(s, 2, now_ns);
    registry_bind_u64(s, 3, max);
    registry_bind_u64(s, 4, offset);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n, "list files", err);
}

int registry_file_delete(struct registry *registry, const char *tenant, const char *id,
                         struct err *err)
{
    sqlite3_stmt *s = begin(registry, DELETE);

    registry_bind_text(s, 1, id);
    registry_bind_text(s, 2, tenant);
    return registry_run_on_row(registry, s, "delete a file", err);
}

int registry_file_expired(struct registry *registry, uint64_t now_ns, size_t max,
                          struct registry_file *rows, size_t *ret_n, struct err *err)
{
    sqlite3_stmt *s = begin(registry, EXPIRED);

    registry_bind_u64(s, 1, now_ns);
    registry_bind_u64(s, 2, max);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n, "list files", err);
}

int registry_file_count(struct registry *registry, const char *tenant, uint64_t *ret,
                        struct err *err)
{
    sqlite3_stmt *s = begin(registry, COUNT);

    registry_bind_text(s, 1, tenant);
    return registry_read_number(registry, s, "count files", ret, err);
}
