/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/lookup.h"

#include "api/daemon/routes/failure.h"
#include "api/daemon/terms/ids.h"
#include "base/clock.h"

#include <errno.h>

bool lookup_row(struct daemon *d, const char *tenant, const char *id,
                struct registry_execution *ret, struct http_reply *reply)
{
    struct err err = {0};
    int r;

    /* What cannot be an id is no different from one that nobody has. */
    r = ids_valid(ID_EXECUTION, id) ? registry_execution_get(d->registry, tenant, id, ret, &err)
                                    : -ENOENT;
    return r == 0 || failure_of(reply, r, "execution", id, &err);
}

bool lookup_execution(struct daemon *d, const char *tenant, const char *id,
                      struct execution **ret_e, struct registry_execution *ret_row,
                      struct http_reply *reply)
{
    unsigned tries = 0;

    for (;;) {
        *ret_e = engine_find(d->engine, tenant, id);
        if (*ret_e)
            return true;
        if (!lookup_row(d, tenant, id, ret_row, reply))
            return false;
        /* Between its row and its place in the queue an execution is for microseconds. */
        if (ret_row->result || !clock_try_again(&tries))
            return true;
        registry_execution_finish(ret_row);
    }
}
