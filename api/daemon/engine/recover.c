/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/recover.h"

#include "api/daemon/engine/lost.h"
#include "base/log.h"

#include <errno.h>

int recover_executions(struct registry *registry, bool is_shared, struct err *err)
{
    struct registry_execution row;
    int r;

    while ((r = registry_execution_unfinished(registry, &row, err)) == 0) {
        struct err full = {0};

        r = lost_end(registry, &row, "the daemon stopped while this execution ran", is_shared,
                     &full);
        if (r < 0)
            /* A full disk is no reason not to start: what is there can be read and removed. */
            log_error("engine", "execution=%s lost=\"%s\"", row.id, full.message);
        else
            log_warn("engine", "execution=%s lost=\"the daemon stopped while it ran\"", row.id);
        registry_execution_finish(&row);
        if (r < 0)
            return 0;
    }
    return r == -ENOENT ? 0 : r;
}
