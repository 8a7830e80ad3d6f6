/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/recover.h"

#include "api/daemon/engine/result.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

static int end_lost(struct registry *registry, const struct registry_execution *row,
                    struct err *err)
{
    uint64_t now_ns = clock_realtime_ns();
    struct buf json;
    const struct result result = {
        .execution_id = row->id,
        .status = RESULT_FAILED,
        .error = "the daemon stopped while this execution ran",
        .skill = {row->skill_name, row->skill_version, row->skill_digest, NULL},
        .duration_ns = now_ns > row->accepted_ns ? now_ns - row->accepted_ns : 0,
    };
    struct registry_ending ending;
    int r = result_write(&result, &json);

    if (r < 0)
        return err_set_errno(err, -r, "cannot write a result");
    ending = (struct registry_ending){.status = "failed",
                                      .result = (const char *)json.data,
                                      .result_len = json.len,
                                      .finished_ns = now_ns};
    r = registry_execution_end(registry, row->id, &ending, err);
    buf_finish(&json);
    return r;
}

int recover_executions(struct registry *registry, struct err *err)
{
    struct registry_execution row;
    int r;

    while ((r = registry_execution_unfinished(registry, &row, err)) == 0) {
        struct err full = {0};

        r = end_lost(registry, &row, &full);
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
