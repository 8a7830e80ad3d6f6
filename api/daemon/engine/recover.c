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
    return registry_records_leave(registry, &process, "", err);
}

/* Rows that waited for whoever runs them, which nobody will. 0, -ENOENT after the last. */
static int end_next_waiting(struct registry *registry, const struct registry_process *process,
                            struct err *err)
{
    static const char reason[] = "it was left to the other nodes of a cluster, "
                                 "and this daemon is on its own now";
    struct record record;
    char id[RECORD_ID_SIZE];
    int r = registry_record_unfinished(registry, process, true, "", id, err);

    if (r < 0)
        return r;
    r = registry_record_other(registry, id, &record, err);
    if (r < 0)
        return r;
    log_warn("engine", "execution=%s lost=\"%s\"", id, reason);
    return lost_end(registry,
                    &(struct registry_execution){.id = record.id,
                                                 .skill_name = record.skill_name,
                                                 .skill_version = record.skill_version,
                                                 .skill_digest = record.skill_digest,
                                                 .accepted_ns = record.accepted_ns},
                    reason, false, err);
}

/* A daemon on its own has what it was told of as a node; of all it accepted it says an end. */
static void end_waiting(struct registry *registry)
{
    struct registry_process after = {0}, process = {0};
    struct err err = {0};

    while (registry_record_process(registry, &after, &process, &err) == 0) {
        int r;

        after = process;
        while ((r = end_next_waiting(registry, &process, &err)) == 0)
            ;
        if (r != -ENOENT) {
            log_error("engine", "waiting=\"not ended\" reason=\"%s\"", err.message);
            return;
        }
        err = (struct err){0};
    }
}

int recover_executions(struct registry *registry, const char *node, struct err *err)
{
    struct registry_execution row;
    int r = node ? leave_waiting(registry, node, err) : 0;

    if (r < 0)
        return r;
    if (!node)
        end_waiting(registry);
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
