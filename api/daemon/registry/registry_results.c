/* SPDX-License-Identifier: Apache-2.0 */
/* The results of executions, apart from their rows: one may have megabytes. */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "base/cleanup.h"

#include <errno.h>

enum statement { BY_ID, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [BY_ID] = "SELECT result FROM executions WHERE id = ?1 AND tenant_id = ?2",
};

const struct registry_statements registry_result_statements = {text, N_STATEMENTS};

struct result {
    char *text;
};
static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, result, text),
};
static const struct registry_rows kind = REGISTRY_ROWS(result, columns);

int registry_execution_read_result(struct registry *registry, struct registry_execution *row,
                                   struct err *err)
{
    struct result result;
    int r =
        registry_read_row(registry, REGISTRY_RESULTS, BY_ID,
                          REGISTRY_VALUES(registry_text(row->id), registry_text(row->tenant)),
                          &kind, &result, "read a result", err);

    if (r < 0)
        return r;
    free(row->result);
    row->result = steal_ptr(&result.text);
    return 0;
}
