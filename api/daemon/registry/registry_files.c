/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_files.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/terms/ids.h"

#include <sqlite3.h>

#define SELECT                                                                                 \
    "SELECT id, tenant_id, name, digest, bytes, created_ns, expires_ns, content_type FROM "    \
    "files"                                                                                    \
    " WHERE "

enum statement { INSERT, BY_ID, LIST, DELETE, COUNT, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO files(id, name, digest, bytes, created_ns, expires_ns, tenant_id, "
               "content_type, entry)"
               " SELECT ?1, ?2, ?3, ?4, ?5, ?6, id, ?8,"
               " '" ID_FILE_ROW "' || lower(hex(randomblob(16))) FROM tenants WHERE id = ?7",
    [BY_ID] = SELECT "id = ?1 AND tenant_id = ?2",
    [LIST] = SELECT "tenant_id = ?1 AND expires_ns > ?2"
                    " ORDER BY created_ns DESC, id DESC LIMIT ?3 OFFSET ?4",
    [DELETE] = "DELETE FROM files WHERE id = ?1 AND tenant_id = ?2",
    [COUNT] = "SELECT COUNT(*) FROM files WHERE tenant_id = ?1",
};

const struct registry_statements registry_file_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_file, id),
    REGISTRY_COLUMN(REGISTRY_ID, registry_file, tenant),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_file, name),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_file, digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_file, bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_file, created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_file, expires_ns),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_file, content_type),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_file, columns);

REGISTRY_FINISH(registry_file, kind)

int registry_file_create(struct registry *registry, const char *tenant,
                         const struct registry_file *file, struct err *err)
{
    return registry_put(
        registry, REGISTRY_FILES, INSERT,
        REGISTRY_VALUES(registry_text(file->id), registry_text(file->name),
                        registry_text(file->digest), registry_number(file->bytes),
                        registry_number(file->created_ns), registry_number(file->expires_ns),
                        registry_text(tenant), registry_text(file->content_type)),
        "store a file", err);
}

int registry_file_get(struct registry *registry, const char *tenant, const char *id,
                      struct registry_file *ret, struct err *err)
{
    return registry_read_row(registry, REGISTRY_FILES, BY_ID,
                             REGISTRY_VALUES(registry_text(id), registry_text(tenant)), &kind,
                             ret, "look up a file", err);
}

int registry_file_list(struct registry *registry, const char *tenant, uint64_t now_ns,
                       size_t offset, size_t max, struct registry_file *rows, size_t *ret_n,
                       struct err *err)
{
    return registry_read_rows(registry, REGISTRY_FILES, LIST,
                              REGISTRY_VALUES(registry_text(tenant), registry_number(now_ns),
                                              registry_number(max), registry_number(offset)),
                              &kind, max, rows, ret_n, "list files", err);
}

int registry_file_delete(struct registry *registry, const char *tenant, const char *id,
                         struct err *err)
{
    return registry_put(registry, REGISTRY_FILES, DELETE,
                        REGISTRY_VALUES(registry_text(id), registry_text(tenant)),
                        "delete a file", err);
}

int registry_file_count(struct registry *registry, const char *tenant, uint64_t *ret,
                        struct err *err)
{
    return registry_read_number(registry, REGISTRY_FILES, COUNT,
                                REGISTRY_VALUES(registry_text(tenant)), "count files", ret,
                                err);
}
