/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/recover.h"

#include "api/daemon/engine/lost.h"
#include "api/daemon/registry/registry_records.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What waited here others may run, or have: this process is another than the one that had it.
 */
static int leave_waiting(struct registry *registry, const char *node, struct err *err)
{
    struct registry_process process = {0};

    (void)snprintf(process.node, sizeof(process.node), "%s", node);
    memset(process.instance, '0', sizeof(process.instance) - 1);
    return registry_records_leave(registry, &process, err);
}

int recover_executions(struct registry *registry, const char *node, struct err *err)
{
    struct registry_execution row;
    int r = node ? leave_waiting(registry, node, err) : 0;

    if (r < 0)
        return r;
    while ((r = registry_execution_unfinished(registry, &row, err)) == 0) {
        struct err full = {0};

        r = lost_end(registry, &row, "the daemon stopped while this execution ran",
                     node != NULL, &full);
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
