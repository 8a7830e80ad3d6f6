/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/lost.h"

#include "api/daemon/engine/result.h"
#include "api/daemon/registry/registry_records.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What such an execution leaves. The text is the caller's. */
static int write_result(const char *id, const struct result_skill *skill, uint64_t accepted_ns,
                        uint64_t now_ns, const char *reason, struct buf *ret, struct err *err)
{
    const struct result result = {
        .execution_id = id,
        .status = RESULT_FAILED,
        .error = reason,
        .skill = *skill,
        .duration_ns = now_ns > accepted_ns ? now_ns - accepted_ns : 0,
    };
    int r = result_write(&result, ret);

    return r < 0 ? err_set_errno(err, -r, "cannot write a result") : 0;
}

int lost_end(struct registry *registry, const struct registry_execution *row,
             const char *reason, bool is_shared, struct err *err)
{
    const struct result_skill skill = {row->skill_name, row->skill_version, row->skill_digest,
                                       NULL};
    uint64_t now_ns = clock_realtime_ns();
    struct registry_ending ending;
    struct buf json;
    int r = write_result(row->id, &skill, row->accepted_ns, now_ns, reason, &json, err);

    if (r < 0)
        return r;
    ending = (struct registry_ending){.status = "failed",
                                      .result = (const char *)json.data,
                                      .result_len = json.len,
                                      .finished_ns = now_ns,
                                      .is_shared = is_shared};
    r = registry_execution_end(registry, row->id, &ending, err);
    buf_finish(&json);
    return r;
}

int lost_tell(struct registry *registry, struct cluster *cluster, const struct record *record,
              const char *reason, struct err *err)
{
    const struct result_skill skill = {record->skill_name, record->skill_version,
                                       record->skill_digest, NULL};
    struct record ended = *record;
    struct buf json;
    int r;

    ended.finished_ns = clock_realtime_ns();
    (void)snprintf(ended.status, sizeof(ended.status), "failed");
    r = write_result(record->id, &skill, record->accepted_ns, ended.finished_ns, reason, &json,
                     err);
    if (r < 0)
        return r;
    ended.result = (const char *)json.data;
    ended.result_bytes = json.len - 1; /* without the end of its line */
    r = cluster_record_lose(cluster, &ended, err);
    /* Nobody will ever say what became of it. */
    if (r == -ENOENT && registry)
        r = registry_record_adopt(registry, &ended, err);
    buf_finish(&json);
    return r;
}

/* The row of another's as a record. */
static int find(struct registry *registry, const struct registry_process *process,
                const char *id, struct record *ret, struct err *err)
{
    *ret = (struct record){0};
    (void)snprintf(ret->node, sizeof(ret->node), "%s", process->node);
    (void)snprintf(ret->instance, sizeof(ret->instance), "%s", process->instance);
    return registry_record_other(registry, id, ret, err);
}

/* False where it makes no sense to go on now. */
static bool end_one(struct registry *registry, struct cluster *cluster,
                    const struct registry_process *process, const char *id)
{
    struct record record;
    struct err err = {0};
    char reason[128];
    int r = find(registry, process, id, &record, &err);

    if (r < 0)
        return r == -ENOENT;
    (void)snprintf(reason, sizeof(reason), "the node %s was lost while this execution ran",
                   process->node);
    r = lost_tell(registry, cluster, &record, reason, &err);
    /* It has ended, or another node has begun it anew under its key. */
    if (r == -EEXIST || r == -EBUSY)
        return true;
    if (r < 0)
        log_warn("ledger", "execution=%s is=\"not ended\" reason=\"%s\"", id, err.message);
    else
        log_warn("ledger", "execution=%s lost=\"%s\"", id, reason);
    return r == 0;
}

static bool end_of(struct registry *registry, struct cluster *cluster,
                   const struct registry_process *process, unsigned *left)
{
    char id[RECORD_ID_SIZE] = "";
    struct err ignored = {0};

    for (; *left > 0; (*left)--) {
        if (registry_record_unfinished(registry, process, id, id, &ignored) < 0)
            return true;
        if (!end_one(registry, cluster, process, id))
            return false;
    }
    return false;
}

void lost_end_others(struct registry *registry, struct cluster *cluster, unsigned n)
{
    struct registry_process after = {0}, process = {0};
    struct err ignored = {0};
    bool goes_on = true, is_gone = false;

    while (goes_on && registry_record_process(registry, &after, &process, &ignored) == 0) {
        after = process;
        goes_on = cluster_process_is_gone(cluster, process.node, process.instance, &is_gone,
                                          &ignored) == 0;
        if (goes_on && is_gone)
            goes_on = end_of(registry, cluster, &process, &n);
    }
}
