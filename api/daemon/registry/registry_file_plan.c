/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_file_plan.h"

#include "api/daemon/registry/registry_entries.h"
#include "api/daemon/registry/registry_internal.h"
#include "base/text.h"

#include <errno.h>

enum statement { ENTRY_OF, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [ENTRY_OF] = "SELECT entry FROM files WHERE id = ?1 AND tenant_id = ?2",
};

const struct registry_statements registry_file_plan_statements = {text, N_STATEMENTS};

int registry_file_plan(struct registry *registry, const char *tenant,
                       const struct registry_file *file, struct change *ret, struct err *err)
{
    struct change_file *row = &ret->file;
    int r = registry_entry_make(registry, CHANGE_FILE, ret, err);

    if (r < 0)
        return r;
    row->bytes = file->bytes;
    row->created_ns = file->created_ns;
    row->expires_ns = file->expires_ns;
    return text_copy(row->tenant, sizeof(row->tenant), tenant) &&
                   text_copy(row->id, sizeof(row->id), file->id) &&
                   text_copy(row->name, sizeof(row->name), file->name) &&
                   text_copy(row->content_type, sizeof(row->content_type),
                             file->content_type) &&
                   text_copy(row->digest, sizeof(row->digest), file->digest)
               ? 0
               : err_set(err, E2BIG, "the file's name is too long");
}

int registry_file_plan_delete(struct registry *registry, const char *tenant, const char *id,
                              struct change *ret, struct err *err)
{
    static const struct registry_column entry[] = {REGISTRY_COLUMN(REGISTRY_ID, change, id)};
    static const struct registry_rows entries = REGISTRY_ROWS(change, entry);
    int r = registry_read_row(registry, REGISTRY_FILE_PLAN, ENTRY_OF,
                              REGISTRY_VALUES(registry_text(id), registry_text(tenant)),
                              &entries, ret, "look up a file", err);

    if (r < 0)
        return r;
    ret->kind = CHANGE_FILE;
    ret->is_removed = true;
    return 0;
}
