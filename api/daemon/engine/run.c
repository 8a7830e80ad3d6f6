/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/run.h"

#include "api/daemon/engine/guest_session.h"
#include "api/daemon/engine/result.h"
#include "api/daemon/engine/vm.h"
#include "api/daemon/limits.h"
#include "api/daemon/store/objects.h"
#include "api/skill/artifacts.h"
#include "api/skill/sha256.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    const struct run_env *env;
    struct execution *e;
    struct buf output;
    struct objects_draft draft;
    struct artifacts *artifacts;
    char artifact_digest[SHA256_HEX_SIZE]; /* "" where there are no files */
    uint64_t artifact_bytes;
    struct guest_session_report report;
    enum result_status status;
    char error[ERR_MESSAGE_MAX + 64];
    uint64_t collected_ns;
    uint64_t reaped_ns;
    bool started;    /* there was a machine */
    uint64_t cpu_us; /* of its process */
};

static int on_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                  struct err *err)
{
    struct run *run = ctx;

    (void)err;
    execution_append_log(run->e, stream, data, len);
    return 0;
}

static int on_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct run *run = ctx;

    if (buf_append(&run->output, data, len) < 0)
        return err_set(err, ENOMEM, "no memory for output.json");
    return 0;
}

static int on_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    const struct artifacts_limits limits = {
        .files = LIMIT_FILES, .bytes = LIMIT_FILES_BYTES, .file_bytes = LIMIT_FILES_BYTES};
    struct run *run = ctx;
    int r = 0;

    if (!run->artifacts) {
        r = objects_draft_open(run->env->tmp_fd, &run->draft, err);
        if (r == 0) {
            run->artifacts = artifacts_create(run->draft.fd, &limits, err);
            r = run->artifacts ? 0 : -ENOMEM;
        }
    }
    return r < 0 ? r : artifacts_push(run->artifacts, data, len, err);
}

static void on_started(void *ctx)
{
    struct run *run = ctx;

    execution_set_state(run->e, EXECUTION_RUNNING);
}

static void on_ended(void *ctx)
{
    struct run *run = ctx;

    execution_set_state(run->e, EXECUTION_COLLECTING);
}

static const struct guest_session_events events = {
    .log = on_log,
    .output = on_output,
    .files = on_files,
    .started = on_started,
    .ended = on_ended,
};

static bool is_cancelled(void *ctx)
{
    struct execution *e = ctx;
    struct pollfd p = {.fd = e->cancel_fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static void warn(struct run *run, const char *text)
{
    (void)skill_strings_add(&run->e->plan.warnings, "%s", text);
}

/* Decides what the end of the session means; r is its result. */
static void judge(struct run *run, int r, const struct err *err)
{
    const struct run_plan *plan = &run->e->plan;
    struct guest_session_report *report = &run->report;

    /* Whether it was cancelled is ours to say. */
    if (!report->cancelled)
        report->exit.flags &= ~(uint32_t)PROTO_EXIT_CANCELLED;
    if (report->times.exit_ns != 0) {
        run->status = result_of_exit(&report->exit, plan->timeout_ms, plan->memory_bytes,
                                     run->error, sizeof(run->error));
        if (r < 0 && run->status == RESULT_SUCCESS) {
            run->status = RESULT_FAILED;
            (void)snprintf(run->error, sizeof(run->error), "%s", err->message);
        } else if (r < 0) {
            warn(run, err->message);
        }
    } else if (r == -ECANCELED || report->cancelled) {
        run->status = RESULT_CANCELLED;
        (void)snprintf(run->error, sizeof(run->error), "cancelled");
    } else if (r == -ETIMEDOUT && report->times.started_ns != 0) {
        run->status = RESULT_TIMEOUT;
        (void)snprintf(run->error, sizeof(run->error), "timed out after %g s, and %s",
                       (double)plan->timeout_ms / 1000, err->message);
    } else {
        run->status = RESULT_FAILED;
        (void)snprintf(run->error, sizeof(run->error), "%s", err->message);
    }
}

/* Tells the operator of a machine that did not do its work. */
static void log_fault(const struct run *run, const struct vm *vm, const struct err *err)
{
    char end[32];

    vm_describe_end(vm, end, sizeof(end));
    log_warn("engine", "execution=%s fault=\"%s\" vmm=\"%s\"", run->e->id, err->message, end);
}

/* Completes the archive of files: on disk, its digest known, but not yet in the store. */
static int complete_artifacts(struct run *run, struct err *err)
{
    struct stat st;
    size_t n = 0;
    int r = artifacts_end(run->artifacts, err);

    if (r == 0)
        (void)artifacts_list(run->artifacts, &n);
    if (r < 0)
        return r;
    if (n == 0) {
        /* Now: an answer means that nothing of the execution is left. */
        objects_draft_discard(&run->draft);
        return 0;
    }
    /* Before the store lock is taken: under it, where it is due, it then takes no time. */
    if (fsync(run->draft.fd) < 0 || fstat(run->draft.fd, &st) < 0)
        return err_set_errno(err, errno, "cannot write the files to disk");
    r = sha256_of_fd(run->draft.fd, run->artifact_digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the files back");
    run->artifact_bytes = (uint64_t)st.st_size;
    return 0;
}

/* What is said when the files of an execution cannot be kept. */
static void lose_artifacts(struct run *run, const struct err *err)
{
    log_error("engine", "execution=%s artifacts=\"%s\"", run->e->id, err->message);
    artifacts_destroy(run->artifacts);
    run->artifacts = NULL;
    run->artifact_digest[0] = '\0';
    /* Now: the result may need the room on disk. */
    objects_draft_discard(&run->draft);
    if (run->status == RESULT_SUCCESS) {
        run->status = RESULT_FAILED;
        (void)snprintf(run->error, sizeof(run->error), "%s", err->message);
    } else {
        warn(run, err->message);
    }
}

static void finish_artifacts(struct run *run)
{
    struct err err = {0};
    const struct skill_strings *warnings;

    if (!run->artifacts)
        return;
    if (complete_artifacts(run, &err) < 0) {
        lose_artifacts(run, &err);
        return;
    }
    warnings = artifacts_warnings(run->artifacts);
    for (size_t i = 0; i < warnings->len; i++)
        warn(run, warnings->items[i]);
}

/* The machine's part: from its start to its death. */
static void run_machine(struct run *run, const struct snapshot_view *snapshot)
{
    struct run_plan *plan = &run->e->plan;
    const struct vm_restore how = {.program = run->env->vmm_program,
                                   .image_fd = snapshot->image_fd,
                                   .state_fd = snapshot->state_fd,
                                   .memory_fd = snapshot->memory_fd,
                                   .working_set_fd = snapshot->working_set_fd,
                                   .record_fd = -1};
    const struct guest_session_plan session = {
        .run = &plan->run,
        .skill_fd = plan->skill_fd,
        .skill_bytes = plan->skill_bytes,
        .input = &plan->input,
        .input_at = plan->input_at,
        .input_bytes = plan->has_input ? plan->input_bytes : 2,
        .input_text = plan->has_input ? NULL : "{}",
        .files = &plan->files,
        .timeout_ms = plan->timeout_ms,
        .grace_ms = run->env->grace_ms,
        .limits = {.output_bytes = LIMIT_OUTPUT_BYTES, .files_bytes = LIMIT_FILES_STREAM},
        .cancel_fd = run->e->cancel_fd,
    };
    uint64_t start_ns = clock_monotonic_ns();
    struct vm vm = vm_init();
    struct err err = {0};
    int r;

    run->report.times.start_ns = start_ns;
    r = vm_start_restore(&how, &vm, &err);
    run->started = r == 0;
    if (r == 0)
        execution_set_machine(run->e, vm.pid);
    if (r == 0)
        r = guest_session_run(&vm, &session, &events, run, start_ns, &run->report, &err);
    if (run->report.times.ready_ns != 0 || (r < 0 && r != -ECANCELED))
        starts_note(run->env->starts, clock_monotonic_ns(),
                    run->report.times.ready_ns != 0 ? NULL : &err);
    /* It dies while its files are looked at. */
    vm_kill(&vm);
    judge(run, r, &err);
    finish_artifacts(run);
    run->collected_ns = clock_monotonic_ns();
    execution_set_machine(run->e, 0);
    vm_finish(&vm);
    run->reaped_ns = clock_monotonic_ns();
    run->cpu_us = vm.cpu_us;
    if (run->started)
        metrics_count_death(run->env->metrics, vm_death(&vm));
    if (r < 0 && r != -ECANCELED) {
        log_fault(run, &vm, &err);
        metrics_count_fault(run->env->metrics, r);
    }
}

static void warn_truncations(struct run *run)
{
    uint32_t flags = run->report.exit.flags;

    if ((flags & PROTO_EXIT_LOGS_TRUNCATED) || run->e->log_clipped)
        warn(run, "stdout and stderr were cut at 1 MiB");
    if (flags & PROTO_EXIT_OUTPUT_TOO_LARGE)
        warn(run, "output.json is larger than 4 MiB and was left out");
    if (flags & PROTO_EXIT_FILES_TRUNCATED)
        warn(run, "there were more files than an execution may leave; the rest was left out");
}

/* The length of a phase that began; one that did not end lasted until the machine was killed.
 */
static uint64_t phase(uint64_t begin_ns, uint64_t end_ns, uint64_t killed_ns)
{
    if (begin_ns == 0)
        return 0;
    if (end_ns == 0)
        end_ns = killed_ns;
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static void fill_phases(const struct run *run, struct result *result)
{
    const struct guest_session_times *t = &run->report.times;
    uint64_t now = clock_monotonic_ns();
    uint64_t killed = run->collected_ns;

    result->queue_ns = phase(run->e->queued_ns, t->start_ns, now);
    result->restore_ns = phase(t->start_ns, t->resumed_ns, killed);
    result->connect_ns = phase(t->resumed_ns, t->ready_ns, killed);
    result->inject_ns = phase(t->ready_ns, t->started_ns, killed);
    result->run_ns = phase(t->started_ns, t->exit_ns, killed);
    result->collect_ns = phase(t->exit_ns, run->collected_ns, killed);
    result->teardown_ns = phase(run->collected_ns, run->reaped_ns, now);
    result->duration_ns = now - run->e->queued_ns;
}

/* Keeps files_list to LIMIT_NAMES_BYTES: a result stays small whatever a skill leaves. */
static void clip_names(struct run *run, struct result *result)
{
    size_t bytes = 0;

    for (size_t i = 0; i < result->n_files; i++) {
        bytes += strlen(result->files[i].path);
        if (bytes > LIMIT_NAMES_BYTES) {
            result->n_files = i;
            result->truncated = true;
            warn(run, "files_list was cut at 1 MiB of names; the archive has all files");
        }
    }
}

/* Writes the result and stores it. json is the caller's, and empty on failure. */
static int store_result(struct run *run, const struct result *result, struct buf *json,
                        struct err *err)
{
    struct registry_ending ending;
    int r = result_write(result, json);

    if (r < 0) {
        *json = buf_init(0);
        return err_set_errno(err, -r, "cannot write the result");
    }
    ending = (struct registry_ending){.status = result_status_name(result->status),
                                      .result = (const char *)json->data,
                                      .result_len = json->len,
                                      .finished_ns = clock_realtime_ns(),
                                      .cpu_ms = (result->host_cpu_us + 999) / 1000};
    if (run->artifact_digest[0]) {
        ending.artifact_digest = run->artifact_digest;
        ending.artifact_bytes = run->artifact_bytes;
    }
    r = registry_execution_end(run->env->registry, run->e->id, &ending, err);
    if (r < 0) {
        buf_finish(json);
        *json = buf_init(0);
    }
    return r;
}

/* Fills in all that is known, of files and streams too. */
static void fill_result(struct run *run, const struct snapshot_view *snapshot,
                        struct result *ret)
{
    const struct run_plan *plan = &run->e->plan;
    const uint32_t cut =
        PROTO_EXIT_LOGS_TRUNCATED | PROTO_EXIT_FILES_TRUNCATED | PROTO_EXIT_OUTPUT_TOO_LARGE;

    *ret = (struct result){
        .execution_id = run->e->id,
        .status = run->status,
        .error = run->status == RESULT_SUCCESS ? NULL : run->error,
        .skill = {plan->skill_name, plan->skill_version, plan->skill_digest},
        .snapshot = snapshot->key,
        .exited = run->report.times.exit_ns != 0,
        .exit = run->report.exit,
        .host_cpu_us = run->cpu_us,
        .output_file = &run->output,
        .log = run->e,
        .warnings = &plan->warnings,
    };
    if (run->artifacts) {
        ret->files = artifacts_list(run->artifacts, &ret->n_files);
        ret->truncated = artifacts_truncated(run->artifacts);
        clip_names(run, ret);
    }
    ret->truncated |= run->e->log_clipped || (run->report.exit.flags & cut) != 0;
    fill_phases(run, ret);
}

/*
 * Stores the result, and the files before it, so that a row never names what is not there; the
 * lock keeps others from removing the files for want of a row. As of store_result.
 */
static int store_all(struct run *run, const struct snapshot_view *snapshot,
                     struct result *result, struct buf *json, struct err *err)
{
    const bool has_files = run->artifact_digest[0] != '\0';
    bool new_object = false;
    struct err put_err = {0};
    int r;

    if (has_files) {
        (void)pthread_mutex_lock(run->env->store_lock);
        if (objects_put(run->env->objects_fd, &run->draft, run->artifact_digest, &new_object,
                        &put_err) < 0)
            lose_artifacts(run, &put_err);
    }
    fill_result(run, snapshot, result);
    r = store_result(run, result, json, err);
    if (r < 0) {
        struct err again = {0};

        /* Without everything that can be large it may fit where it did not. */
        log_error("engine", "execution=%s lost=\"%s\"", run->e->id, err->message);
        result->output_file = NULL;
        result->log = NULL;
        result->status = RESULT_FAILED;
        result->error = err->message;
        r = store_result(run, result, json, &again);
    }
    if (r < 0 && new_object)
        objects_remove(run->env->objects_fd, run->artifact_digest);
    if (has_files)
        (void)pthread_mutex_unlock(run->env->store_lock);
    return r;
}

/* Writes the result to the registry and ends the execution with it. */
static void publish(struct run *run, const struct snapshot_view *snapshot)
{
    struct execution *e = run->e;
    struct result result;
    struct err err = {0};
    struct buf json;
    int r;

    warn_truncations(run);
    r = store_all(run, snapshot, &result, &json, &err);
    metrics_count_execution(run->env->metrics, e->tenant, &result);
    log_info("engine", "execution=%s skill=\"%s\" status=%s ms=%.1f", e->id, e->plan.skill_name,
             result_status_name(result.status), (double)result.duration_ns / 1e6);
    run_plan_finish(&e->plan);
    execution_end(e, run->env->tmp_fd, &json, r < 0 ? err.message : NULL);
}

static void run_init(struct run *run, const struct run_env *env, struct execution *e)
{
    *run = (struct run){.env = env,
                        .e = e,
                        .output = buf_init(LIMIT_OUTPUT_BYTES),
                        .draft = {.fd = -1},
                        .status = RESULT_FAILED};
}

static void run_finish(struct run *run)
{
    artifacts_destroy(run->artifacts);
    objects_draft_discard(&run->draft);
    buf_finish(&run->output);
}

void run_execution(const struct run_env *env, struct execution *e)
{
    struct snapshot_view snapshot = {0};
    struct err err = {0};
    struct run run;
    int r;

    run_init(&run, env, e);
    r = is_cancelled(e) ? -ECANCELED
                        : snapshots_wait(env->snapshots, is_cancelled, e, &snapshot, &err);
    if (r == 0)
        run_machine(&run, &snapshot);
    else
        judge(&run, r, &err);
    publish(&run, &snapshot);
    run_finish(&run);
}

static void end_unrun(const struct run_env *env, struct execution *e, enum result_status status,
                      const char *reason)
{
    const struct snapshot_view none = {0};
    struct run run;

    run_init(&run, env, e);
    run.status = status;
    (void)snprintf(run.error, sizeof(run.error), "%s", reason);
    publish(&run, &none);
    run_finish(&run);
}

void run_cancel(const struct run_env *env, struct execution *e)
{
    end_unrun(env, e, RESULT_CANCELLED, "cancelled");
}

void run_refuse(const struct run_env *env, struct execution *e, const char *reason)
{
    end_unrun(env, e, RESULT_FAILED, reason);
}
