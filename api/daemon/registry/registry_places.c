/* SPDX-License-Identifier: Apache-2.0 */
/* How far the executions of a cluster are followed. */
#include "api/daemon/registry/registry_records.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>

enum statement { GET_PLACE, PUT_PLACE, FORGET_PLACE, FORGET_OTHERS, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [GET_PLACE] = "SELECT bucket, revision, noted_ns FROM records_place",
    [PUT_PLACE] = "INSERT OR REPLACE INTO records_place(one, bucket, revision, noted_ns)"
                  " VALUES(1, ?1, ?2, ?3)",
    [FORGET_PLACE] = "DELETE FROM records_place",
    [FORGET_OTHERS] = "DELETE FROM executions WHERE finished_ns IS NULL"
                      " AND id IN (SELECT id FROM records WHERE node <> '')",
};

const struct registry_statements registry_record_place_statements = {text, N_STATEMENTS};

int registry_records_put_place(struct registry *registry, const struct change_place *place,
                               struct err *err)
{
    return registry_step(registry, REGISTRY_RECORD_PLACE, PUT_PLACE,
                         REGISTRY_VALUES(registry_text(place->bucket),
                                         registry_number(place->revision),
                                         registry_number(place->noted_ns)),
                         "note the place of executions", err);
}

int registry_records_place(struct registry *registry, struct change_place *ret, struct err *err)
{
    int r =
        registry_read_row(registry, REGISTRY_RECORD_PLACE, GET_PLACE, REGISTRY_VALUES({0}),
                          &registry_place_rows, ret, "look up the place of executions", err);

    if (r != -ENOENT)
        return r;
    *ret = (struct change_place){0};
    return 0;
}

int registry_records_forget(struct registry *registry, struct err *err)
{
    struct change_place there;
    int r = registry_records_place(registry, &there, err);

    if (r < 0 || !there.bucket[0])
        return r;
    r = registry_run(registry, REGISTRY_RECORD_PLACE, FORGET_OTHERS, REGISTRY_VALUES({0}),
                     "forget what others run", err);
    return r < 0 ? r
                 : registry_run(registry, REGISTRY_RECORD_PLACE, FORGET_PLACE,
                                REGISTRY_VALUES({0}), "forget the place of executions", err);
}
