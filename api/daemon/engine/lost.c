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
              const char *reason, struct record_copy *ret_left, struct err *err)
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
    r = cluster_record_lose(cluster, &ended, ret_left, err);
    /* Nobody will ever say what became of it. */
    if (r == -ENOENT && registry)
        r = registry_record_adopt(registry, &ended, err);
    buf_finish(&json);
    return r;
}

/* Who sees to what processes left, and to how many more of each kind. */
struct heir {
    struct registry *registry;
    struct cluster *cluster;
    const struct lost_taker *taker;
    unsigned to_end, to_take;
};

/* Another process has it; or others may begin it, and this node did not hear of that. */
static int leave(const struct heir *heir, struct record_copy *left, struct err *err)
{
    int r = left->text ? registry_record_pass(heir->registry, &left->record, false, err) : 0;

    record_copy_finish(left);
    return r;
}

static int end_one(const struct heir *heir, const struct record *record)
{
    struct record_copy left = {0};
    struct err err = {0};
    char reason[128];
    int r;

    (void)snprintf(reason, sizeof(reason), "the node %s was lost while this execution ran",
                   record->node);
    r = lost_tell(heir->registry, heir->cluster, record, reason, &left, &err);
    if (r == -EBUSY)
        return leave(heir, &left, &err);
    /* It has ended. */
    if (r == -EEXIST)
        return 0;
    if (r < 0)
        log_warn("ledger", "execution=%s is=\"not ended\" reason=\"%s\"", record->id,
                 err.message);
    else
        log_warn("ledger", "execution=%s lost=\"%s\"", record->id, reason);
    return r;
}

static int end_of(const struct heir *heir, const char *id)
{
    struct record record;
    struct err ignored = {0};
    int r = registry_record_other(heir->registry, id, &record, &ignored);

    return r < 0 ? r : end_one(heir, &record);
}

/* What ran there. False where it makes no sense to go on now. */
static bool end_all(struct heir *heir, const struct registry_process *process)
{
    char id[RECORD_ID_SIZE] = "";

    for (; heir->to_end > 0; heir->to_end--) {
        struct err ignored = {0};
        int r;

        if (registry_record_unfinished(heir->registry, process, false, id, id, &ignored) < 0)
            return true;
        r = end_of(heir, id);
        if (r < 0 && r != -ENOENT)
            return false;
    }
    return true;
}

/* What waited there, as far as somebody runs it now. */
static void take_all(struct heir *heir, const struct registry_process *process)
{
    char id[RECORD_ID_SIZE] = "";

    while (heir->to_take > 0) {
        struct err ignored = {0};
        int r;

        if (registry_record_unfinished(heir->registry, process, true, id, id, &ignored) < 0)
            return;
        r = heir->taker->take(heir->taker->ctx, id, process, &ignored);
        if (r == -ENOTSUP)
            continue;
        heir->to_take = r == 0 || r == -ENOENT ? heir->to_take - 1 : 0;
    }
}

void lost_see_to(struct registry *registry, struct cluster *cluster,
                 const struct lost_taker *taker, unsigned n)
{
    struct heir heir = {registry, cluster, taker, n, n};
    struct registry_process after = {0}, process = {0};
    struct err ignored = {0};
    bool goes_on = true, is_gone = false;

    while (goes_on && registry_record_process(registry, &after, &process, &ignored) == 0) {
        after = process;
        goes_on = cluster_process_is_gone(cluster, process.node, process.instance, &is_gone,
                                          &ignored) == 0;
        if (!goes_on || !is_gone)
            continue;
        goes_on = end_all(&heir, &process);
        take_all(&heir, &process);
    }
}
