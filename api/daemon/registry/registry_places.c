/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_places.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>

enum statement { GET, PUT, FORGET, N_OF_PLACE };

#define OF(table)                                                                              \
    "SELECT bucket, revision, noted_ns FROM " table,                                           \
        "INSERT OR REPLACE INTO " table "(one, bucket, revision, noted_ns)"                    \
        " VALUES(1, ?1, ?2, ?3)",                                                              \
        "DELETE FROM " table
#define OTHERS                                                                                 \
    "DELETE FROM executions WHERE finished_ns IS NULL"                                         \
    " AND id IN (SELECT id FROM records WHERE node <> '')"
#define FORGET_OTHERS (N_OF_PLACE * REGISTRY_PLACES)

static const char *const text[FORGET_OTHERS + 1] = {OF("replica"), OF("records_place"),
                                                    OF("audit_place"), OTHERS};
#undef OF

const struct registry_statements registry_place_statements = {text, FORGET_OTHERS + 1};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change_place, bucket),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change_place, revision),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change_place, noted_ns),
};
static const struct registry_rows kind = REGISTRY_ROWS(change_place, columns);

static unsigned statement_of(enum registry_place which, enum statement statement)
{
    return N_OF_PLACE * which + statement;
}

int registry_place_get(struct registry *registry, enum registry_place which,
                       struct change_place *ret, struct err *err)
{
    int r = registry_read_row(registry, REGISTRY_OF_PLACES, statement_of(which, GET),
                              REGISTRY_VALUES({0}), &kind, ret, "look up a place", err);

    if (r != -ENOENT)
        return r;
    *ret = (struct change_place){0};
    return 0;
}

int registry_place_put_step(struct registry *registry, enum registry_place which,
                            const struct change_place *place, struct err *err)
{
    return registry_put_row(registry, REGISTRY_OF_PLACES, statement_of(which, PUT), &kind,
                            place, "note a place", err);
}

int registry_place_put(struct registry *registry, enum registry_place which,
                       const struct change_place *place, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    return r < 0 ? r
                 : registry_transaction_end(
                       registry, registry_place_put_step(registry, which, place, err), err);
}

int registry_place_forget(struct registry *registry, enum registry_place which, struct err *err)
{
    struct change_place there;
    int r = registry_place_get(registry, which, &there, err);

    if (r < 0 || !there.bucket[0])
        return r;
    if (which == REGISTRY_PLACE_OF_RECORDS)
        r = registry_run(registry, REGISTRY_OF_PLACES, FORGET_OTHERS, REGISTRY_VALUES({0}),
                         "forget what others run", err);
    return r < 0 ? r
                 : registry_run(registry, REGISTRY_OF_PLACES, statement_of(which, FORGET),
                                REGISTRY_VALUES({0}), "forget a place", err);
}
