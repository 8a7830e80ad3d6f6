/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/execution_run.h"

#include "api/daemon/engine/choices.h"
#include "api/daemon/engine/handover.h"
#include "api/daemon/engine/ledger.h"
#include "api/daemon/engine/left.h"
#include "api/daemon/engine/network.h"
#include "api/daemon/engine/result.h"
#include "api/daemon/engine/session_run.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/denied.h"
#include "api/skill/needs.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The end of the log, which is looked at for why a run failed. */
#define EXPLAINED_BYTES (64u * 1024)

struct execution_run {
    const struct execution_env *env;
    struct execution *e;
    struct machine *machine;
    struct egress *egress; /* NULL: it has no network */
    struct machine_report report;
    struct result result; /* borrows from all that is here */
    struct buf output;
    struct left files;
    struct session_run session;
    char error[ERR_MESSAGE_MAX + 64];
};

static int on_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                  struct err *err)
{
    struct execution_run *run = ctx;

    (void)err;
    execution_append_log(run->e, stream, data, len);
    return 0;
}

static int on_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct execution_run *run = ctx;

    if (buf_append(&run->output, data, len) < 0)
        return err_set(err, ENOMEM, "no memory for output.json");
    return 0;
}

static int on_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    static const struct artifacts_limits limits = {.files = LIMIT_FILES,
                                                   .folders = LIMIT_FOLDERS,
                                                   .names_bytes = LIMIT_NAMES_BYTES,
                                                   .list_bytes = LIMIT_LIST_BYTES,
                                                   .bytes = LIMIT_FILES_BYTES,
                                                   .file_bytes = LIMIT_FILES_BYTES};
    struct execution_run *run = ctx;

    return left_push(&run->files, run->env->store, &limits, data, len, err);
}

static int on_session(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct execution_run *run = ctx;

    return session_run_take(&run->session, data, len, err);
}

static void on_stage(void *ctx, enum guest_stage stage)
{
    struct execution_run *run = ctx;

    if (stage == GUEST_RUNNING)
        execution_set_state(run->e, EXECUTION_RUNNING);
    else if (stage == GUEST_OUTPUT)
        execution_set_state(run->e, EXECUTION_COLLECTING);
}

static void warn(struct execution_run *run, const char *text)
{
    (void)skill_strings_add(&run->e->warnings, "%s", text);
}

static void end_as(struct execution_run *run, enum result_status status, const char *error)
{
    run->result.status = status;
    (void)snprintf(run->error, sizeof(run->error), "%s", error);
}

/* What went wrong behind the skill: the reason why it failed where it had not failed itself. */
static void spoil(struct execution_run *run, const struct err *err)
{
    if (run->result.status == RESULT_SUCCESS)
        end_as(run, RESULT_FAILED, err->message);
    else
        warn(run, err->message);
}

/* Decides what the end of its machine's run means; r is its result. */
static void judge(struct execution_run *run, int r, const struct err *err)
{
    const struct job *job = &run->e->job;
    struct guest_report *report = &run->report.guest;

    end_as(run, RESULT_FAILED, err->message);
    /* Whether it was cancelled is ours to say. */
    if (!report->cancelled)
        report->exit.flags &= ~(uint32_t)PROTO_EXIT_CANCELLED;
    if (report->times.exit_ns != 0) {
        run->result.status = result_of_exit(&report->exit, job->timeout_ms, job->memory_bytes,
                                            run->error, sizeof(run->error));
        if (r == 0)
            return;
        if (report->cancelled && run->result.status == RESULT_SUCCESS)
            end_as(run, RESULT_CANCELLED, "cancelled");
        spoil(run, err);
    } else if (r == -ECANCELED || report->cancelled) {
        end_as(run, RESULT_CANCELLED, "cancelled");
    } else if (r == -ETIMEDOUT && report->times.started_ns != 0) {
        run->result.status = RESULT_TIMEOUT;
        (void)snprintf(run->error, sizeof(run->error), "timed out after %g s, and %s",
                       (double)job->timeout_ms / 1000, err->message);
    }
}

/* Tells the operator of a machine that did not do its work. */
static void log_fault(const struct execution_run *run, const struct err *err)
{
    char end[32];

    machine_describe(run->machine, end, sizeof(end));
    log_warn("engine", "execution=%s fault=\"%s\" vmm=\"%s\"", run->e->id, err->message, end);
}

/* What is said when the files of an execution cannot be kept. */
static void lose_artifacts(struct execution_run *run, const struct err *err)
{
    log_error("engine", "execution=%s artifacts=\"%s\"", run->e->id, err->message);
    /* Now: the result may need the room on disk. */
    left_finish(&run->files);
    spoil(run, err);
}

static void finish_artifacts(struct execution_run *run)
{
    struct err err = {0};

    if (!run->files.artifacts)
        return;
    if (left_complete(&run->files, &err) < 0) {
        /* A guest that is not believed its files is not believed anything. */
        machine_distrust(run->machine);
        lose_artifacts(run, &err);
        return;
    }
    (void)skill_strings_append(&run->e->warnings,
                               &artifacts_kept(run->files.artifacts)->warnings);
    /* Now: an answer means that nothing of the execution can be seen. */
    if (artifacts_kept(run->files.artifacts)->files == 0)
        fd_close(&run->files.fd);
}

/* True where there are files to store. */
static bool has_files(const struct execution_run *run)
{
    return run->files.artifacts && run->files.fd >= 0;
}

/* Why it did not end by itself, or NULL; r is the result of its machine's run. */
static const char *find_interruption(const struct execution_run *run, int r,
                                     const struct err *err)
{
    const struct guest_exit *exit = &run->report.guest.exit;

    if (r < 0)
        return err->message;
    if (exit->signal != 0 || (exit->flags & (PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED)))
        return run->error;
    return exit->flags & PROTO_EXIT_OUT_OF_MEMORY ? "a process of it went over its memory"
                                                  : NULL;
}

static void finish_session(struct execution_run *run, const char *interruption)
{
    if (!session_run_complete(&run->session, &run->report.guest.exit, interruption))
        machine_distrust(run->machine);
}

/* The length of a phase that began; one that did not end lasted until all of it was over. */
static uint64_t phase(uint64_t begin_ns, uint64_t end_ns, uint64_t over_ns)
{
    if (begin_ns == 0)
        return 0;
    if (end_ns == 0)
        end_ns = over_ns;
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* Once the machine is no longer needed, which was wanted at start_ns. */
static void fill_phases(struct execution_run *run, uint64_t start_ns)
{
    const struct guest_times *t = &run->report.guest.times;
    uint64_t over = clock_monotonic_ns();
    uint64_t *ns = run->result.phase_ns;

    ns[RESULT_QUEUE] = phase(run->e->queued_ns, start_ns, over);
    ns[RESULT_TAKE] = phase(start_ns, t->ready_ns, over);
    ns[RESULT_INJECT] = phase(t->ready_ns, t->started_ns, over);
    ns[RESULT_RUN] = phase(t->started_ns, t->exit_ns, over);
    ns[RESULT_COLLECT] = phase(t->exit_ns, over, over);
}

/*
 * Whose machines an execution may have, and leave its own to. No tenant's id has a slash in it,
 * so that no two owners are one.
 */
_Static_assert(TENANT_ID_SIZE <= SNAPSHOT_SCOPE_SIZE, "a tenant is a scope");

static void write_owner(const struct execution_run *run, char owner[POOL_OWNER_SIZE])
{
    const struct execution *e = run->e;
    enum tenant_reuse reuse = run->env->reuse;

    if (e->limits.reuse != TENANT_REUSE_UNSET && e->limits.reuse < reuse)
        reuse = e->limits.reuse;
    owner[0] = '\0';
    if (e->fresh || reuse == TENANT_REUSE_NEVER)
        return;
    (void)snprintf(owner, POOL_OWNER_SIZE, "%s/%s", e->tenant,
                   reuse == TENANT_REUSE_SKILL ? e->skill_digest : "");
}

/* What is known of a machine that did not do its work. */
static void note_fault(const struct execution_run *run, int r, const struct err *err)
{
    log_fault(run, err);
    metrics_count_fault(run->env->metrics, r);
}

/*
 * Its machine ended before it said that the skill begins: as one may that had waited, that was
 * started when the first process of its jail ended, or that chance stopped. What a skill does
 * comes after that word, on the same stream: so nobody has seen anything of it, if it had begun
 * at all. Another one, this time only.
 */
static int take_and_run_again(struct execution_run *run, const struct machine_wish *wish,
                              const struct guest_sink *sink, struct err *err)
{
    struct execution *e = run->e;
    const uint64_t cpu_us = run->report.cpu_us;
    int r;

    note_fault(run, -EPIPE, err);
    *err = (struct err){0};
    machine_release(run->machine);
    run->machine = NULL;
    r = machine_take(run->env->pool, wish, e->cancel_fd, &run->machine, err);
    if (r < 0)
        return r;
    r = machine_run(run->machine, &e->job, sink, e->cancel_fd, &run->report, err);
    run->report.cpu_us += cpu_us;
    return r;
}

static int take_and_run(struct execution_run *run, const struct machine_wish *wish,
                        struct err *err)
{
    struct guest_sink sink = {.ctx = run,
                              .log = on_log,
                              .output = on_output,
                              .files = on_files,
                              .session = on_session,
                              .stage = on_stage};
    struct execution *e = run->e;
    int r = session_run_open(&run->session, err);

    if (r < 0)
        return r;
    r = machine_take(run->env->pool, wish, e->cancel_fd, &run->machine, err);
    if (r < 0)
        return r;
    r = network_open(&run->env->egress, &e->job.network, &run->egress, err);
    if (r < 0)
        return r;
    sink.egress = run->egress;
    r = machine_run(run->machine, &e->job, &sink, e->cancel_fd, &run->report, err);
    return r == -EPIPE && run->report.guest.times.started_ns == 0
               ? take_and_run_again(run, wish, &sink, err)
               : r;
}

/* The machine's part. It is to be released when everything was said. */
static void run_machine(struct execution_run *run)
{
    struct execution *e = run->e;
    uint64_t start_ns = clock_monotonic_ns(), cpu_ns;
    struct machine_wish wish = {0};
    struct err err = {0};
    int r;

    write_owner(run, wish.owner);
    memcpy(wish.party, e->tenant, sizeof(e->tenant));
    execution_name_snapshot(run->env, e, &wish.snapshot);
    r = take_and_run(run, &wish, &err);
    judge(run, r, &err);
    if (run->machine && r < 0 && r != -ECANCELED)
        note_fault(run, r, &err);
    cpu_ns = clock_thread_cpu_ns();
    finish_artifacts(run);
    finish_session(run, find_interruption(run, r, &err));
    run->report.cpu_us += (clock_thread_cpu_ns() - cpu_ns) / 1000;
    fill_phases(run, start_ns);
}

static void warn_truncations(struct execution_run *run)
{
    uint32_t flags = run->report.guest.exit.flags;

    if ((flags & PROTO_EXIT_LOGS_TRUNCATED) || run->e->log_clipped)
        warn(run, "stdout and stderr were cut at 1 MiB");
    if (flags & PROTO_EXIT_OUTPUT_TOO_LARGE)
        warn(run, "output.json is larger than 4 MiB and was left out; a file in "
                  "SANDBOX_FILES_DIR may be larger");
    if (flags & PROTO_EXIT_FILES_TRUNCATED)
        warn(run, "there were more files than an execution may leave; the rest was left out");
}

/* What its limits did to processes that were not its last, and no status tells. */
static void warn_of_limits(struct execution_run *run)
{
    const struct guest_exit *exit = &run->report.guest.exit;
    const struct job *job = &run->e->job;
    struct skill_strings *warnings = &run->e->warnings;

    if ((exit->flags & PROTO_EXIT_OUT_OF_MEMORY) && run->result.status != RESULT_FAILED)
        (void)skill_strings_add(
            warnings, "a process of the skill was ended, out of memory: the limit is %llu MiB",
            (unsigned long long)job->memory_bytes / LIMIT_MIB);
    if (exit->not_started > 0)
        (void)skill_strings_add(
            warnings,
            "a process or thread could not be started (%u times): the limit "
            "is %u",
            exit->not_started, job->pids);
}

/*
 * Says it when what failed was an import or a program that the image does not have, or a write
 * to a folder that is read-only.
 */
static void warn_of_failure(struct execution_run *run)
{
    const struct skill_strings *warnings = &run->e->warnings;
    const struct image_list *images = run->e->images ? &run->e->images->known : NULL;
    const struct buf *log = &run->e->log;
    size_t len = log->len > EXPLAINED_BYTES ? EXPLAINED_BYTES : log->len;
    const char *end = (const char *)log->data + log->len - len;
    char text[ERR_MESSAGE_MAX];

    if (run->result.status != RESULT_FAILED || run->report.guest.times.exit_ns == 0 || len == 0)
        return;
    if (!(images && needs_explain(images, choices_allowed(images, &run->e->limits),
                                  run->e->image.place, end, len, text, sizeof(text))) &&
        !denied_explain(end, len, text, sizeof(text)))
        return;
    /* A skill that came with the request was read, and this may have been said. */
    for (size_t i = 0; i < warnings->len; i++)
        if (strstr(warnings->items[i], text))
            return;
    warn(run, text);
}

/* Writes the result and stores it. json is the caller's, and empty on failure. */
static int store_result(struct execution_run *run, const struct result *result,
                        struct buf *json, struct err *err)
{
    struct registry_ending ending;
    int r = result_write(result, json);

    if (r < 0)
        return err_set_errno(err, -r, "cannot write the result");
    ending = (struct registry_ending){.status = result_status_name(result->status),
                                      .result = (const char *)json->data,
                                      .result_len = json->len,
                                      .finished_ns = clock_realtime_ns(),
                                      .cpu_ms = (result->host_cpu_us + 999) / 1000,
                                      .is_shared = run->env->ledger != NULL};
    if (has_files(run)) {
        ending.artifact_digest = run->files.digest;
        ending.artifact_bytes = run->files.bytes;
    }
    ending.session = session_run_change(&run->session, ending.finished_ns);
    r = registry_execution_end(run->env->registry, run->e->id, &ending, err);
    if (r < 0) {
        buf_finish(json);
        *json = buf_init(0);
    }
    return r;
}

/* Fills in all that is known, of files and streams too. */
static void fill_result(struct execution_run *run)
{
    const struct execution *e = run->e;
    const uint32_t cut =
        PROTO_EXIT_LOGS_TRUNCATED | PROTO_EXIT_FILES_TRUNCATED | PROTO_EXIT_OUTPUT_TOO_LARGE;
    struct result *result = &run->result;

    result->execution_id = e->id;
    result->error = result->status == RESULT_SUCCESS ? NULL : run->error;
    result->skill =
        (struct result_skill){e->skill_name, e->skill_version, e->skill_digest, e->packages};
    if (execution_image(e)) {
        result->image = execution_image(e);
        result->image_reason = e->image.why;
    }
    if (run->report.snapshot[0]) {
        result->snapshot = run->report.snapshot;
        result->profile = run->report.profile;
        result->machine = run->report.kind == POOL_REUSED ? "reused" : "fresh";
    }
    result->exited = run->report.guest.times.exit_ns != 0;
    result->exit = run->report.guest.exit;
    /* Its guest may have gone on. */
    if (run->machine)
        run->report.cpu_us += machine_took_us(run->machine);
    result->host_cpu_us = run->report.cpu_us;
    result->output_file = &run->output;
    result->log = e;
    result->warnings = &e->warnings;
    if (e->session)
        result->session = session_run_tell(&run->session);
    result->network = run->egress ? egress_log(run->egress) : NULL;
    if (run->files.artifacts) {
        const struct artifacts_kept *kept = artifacts_kept(run->files.artifacts);

        result->files = kept->list;
        result->n_files = kept->n;
        result->truncated = kept->truncated;
        if (kept->files > kept->n) {
            result->truncated = true;
            warn(run, "files_list was cut at 1 MiB of names; the archive has all files");
        }
    }
    result->truncated |= e->log_clipped || (run->report.guest.exit.flags & cut) != 0;
    result->duration_ns = clock_monotonic_ns() - e->queued_ns;
}

/*
 * Stores the result, and the files before it, so that a row never names what is not there; the
 * lock keeps others from removing the files for want of a row. As of store_result.
 */
static int store_all(struct execution_run *run, struct buf *json, struct err *err)
{
    _cleanup_store_lock_ struct store *store =
        has_files(run) || run->session.left.digest[0] ? store_lock(run->env->store) : NULL;
    struct result *result = &run->result;
    struct err put_err = {0};
    int r;

    if (has_files(run) && store_put(store, run->files.fd, run->files.digest, &put_err) < 0)
        lose_artifacts(run, &put_err);
    session_run_store(&run->session, store);
    fill_result(run);
    r = store_result(run, result, json, err);
    if (r < 0 && r != -ENOENT) {
        struct err again = {0};

        /* Without everything that can be large it may fit where it did not. */
        log_error("engine", "execution=%s lost=\"%s\"", run->e->id, err->message);
        result->output_file = NULL;
        result->log = NULL;
        result->warnings = NULL;
        end_as(run, RESULT_FAILED, err->message);
        result->error = run->error;
        session_run_refuse(&run->session, err->message);
        if (run->e->session)
            result->session = session_run_tell(&run->session);
        r = store_result(run, result, json, &again);
    }
    if (r < 0 && has_files(run))
        (void)store_release(store, run->files.digest, NULL);
    session_run_settle(&run->session, store, r == 0);
    return r;
}

/*
 * Where the cluster says otherwise, as of a node that was taken for lost, that is the result.
 * 0; -ESTALE: another node runs it again.
 */
static int tell(const struct execution_run *run, struct buf *json)
{
    struct buf theirs = buf_init(SIZE_MAX / 2);
    int r = ledger_tell(run->env->ledger, run->e->id, &theirs);

    if (r == -EEXIST && theirs.len > 0) {
        buf_finish(json);
        *json = theirs;
    } else {
        buf_finish(&theirs);
    }
    return r == -ESTALE ? r : 0;
}

/* Its row tells, where there is one. */
static bool is_elsewhere(int stored)
{
    return stored == -ESTALE || stored == -ENOENT;
}

/* Writes the result to the registry and ends the execution with it. */
static void publish(struct execution_run *run)
{
    const struct result *result = &run->result;
    struct execution *e = run->e;
    struct err err = {0};
    struct buf json;
    int r;

    warn_truncations(run);
    warn_of_limits(run);
    warn_of_failure(run);
    if (run->egress)
        network_tell(run->env->registry, e, egress_log(run->egress));
    else if (run->result.status == RESULT_FAILED)
        network_explain(e);
    if (handover_resign(run->env->ledger, e, run->result.status == RESULT_CANCELLED))
        return;
    session_run_share(&run->session);
    r = store_all(run, &json, &err);
    if (r == 0 && run->env->ledger)
        r = tell(run, &json);
    metrics_count_execution(run->env->metrics, e->tenant, result);
    log_info("engine", "execution=%s skill=\"%s\" status=%s ms=%.1f", e->id, e->skill_name,
             result_status_name(result->status), (double)result->duration_ns / 1e6);
    execution_let_go(e);
    if (is_elsewhere(r)) {
        buf_finish(&json);
        execution_move(e);
        return;
    }
    if (r < 0)
        retention_end_later(run->env->retention, e->tenant, e->id, err.message);
    execution_end(e, run->env->store, &json, r < 0 ? err.message : NULL);
}

static struct execution_run execution_run_init(const struct execution_env *env,
                                               struct execution *e)
{
    return (struct execution_run){.env = env,
                                  .e = e,
                                  .output = buf_init(LIMIT_OUTPUT_BYTES),
                                  .files = left_init(),
                                  .session = session_run_init(env, e),
                                  .result = {.status = RESULT_FAILED}};
}

static void execution_run_finish(struct execution_run *run)
{
    egress_close(run->egress);
    left_finish(&run->files);
    session_run_finish(&run->session);
    buf_finish(&run->output);
}

void execution_run(const struct execution_env *env, struct execution *e)
{
    struct execution_run run = execution_run_init(env, e);

    run_machine(&run);
    publish(&run);
    execution_run_finish(&run);
    /* Behind the answer, which does not wait for it. */
    machine_release(run.machine);
}

void execution_run_none(const struct execution_env *env, struct execution *e,
                        enum result_status status, const char *reason)
{
    struct execution_run run = execution_run_init(env, e);

    end_as(&run, status, reason);
    session_run_look(&run.session);
    session_run_refuse(&run.session, reason);
    fill_phases(&run, clock_monotonic_ns());
    publish(&run);
    execution_run_finish(&run);
}
