/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/tool_probe.h"

#include "api/daemon/engine/guest_session.h"
#include "api/daemon/engine/run_payload.h"
#include "api/daemon/engine/vm.h"
#include "api/daemon/limits.h"
#include "api/daemon/store/objects.h"
#include "api/daemon/store/spool.h"
#include "api/skill/content.h"
#include "api/skill/tar.h"
#include "api/tools/parser.h"
#include "api/tools/probe.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* Where the probe lies beside the skill's files. */
#define PROBE_PATH    ".skillvm-describe.py"
#define TIMEOUT_MS    5000u
#define MEMORY_BYTES  (128 * LIMIT_MIB)
#define PIDS          32u
#define SCRIPT_MAX    LIMIT_MIB
#define FILES_MAX     (64 * LIMIT_MIB) /* of what it leaves, which is not looked at */
#define SKILL_TAR_MAX (1024 * LIMIT_MIB)

/* What comes back. */
struct reading {
    struct buf output;
    bool too_large;
};

uint64_t tool_probe_timeout_ms(const struct tool_probe_env *env)
{
    return TIMEOUT_MS + env->grace_ms / 3;
}

int tool_probe_promises(int skill_fd, const char *path, bool *ret, struct err *err)
{
    struct buf text = buf_init(SCRIPT_MAX);
    struct err ignored = {0};
    int r = skill_content_read(skill_fd, path, &text, &ignored);

    *ret = r == 0 && text.len > 0 && memmem(text.data, text.len, "argparse", 8);
    buf_finish(&text);
    if (r == -ENOENT || r == -E2BIG)
        return 0;
    return r < 0 ? err_set(err, -r, "%s", ignored.message) : 0;
}

/* The probe, and after it the skill as it is. */
static int write_tar(int skill_fd, int tar_fd, uint64_t *ret_bytes, struct err *err)
{
    static const char zeros[TAR_BLOCK];
    const struct tar_header header = {
        .path = PROBE_PATH, .type = TAR_FILE, .mode = 0644, .size = argparse_probe_len};
    struct buf head = buf_init(LIMIT_MIB);
    struct stat st;
    off_t at = 0;
    int r = fstat(skill_fd, &st) < 0 ? -errno : tar_put_header(&head, &header);

    if (r == 0)
        r = buf_append(&head, argparse_probe, argparse_probe_len);
    if (r == 0)
        r = buf_append(&head, zeros, tar_padding(argparse_probe_len));
    if (r == 0)
        r = fd_write_full(tar_fd, head.data, head.len);
    if (r == 0 && (uint64_t)st.st_size > SKILL_TAR_MAX)
        r = -EFBIG;
    while (r == 0 && at < st.st_size) {
        ssize_t n = sendfile(tar_fd, skill_fd, &at, (size_t)(st.st_size - at));

        if (n <= 0)
            r = n < 0 ? -errno : -EIO;
    }
    *ret_bytes = head.len + (uint64_t)at;
    buf_finish(&head);
    return r < 0 ? err_set_errno(err, -r, "cannot prepare the skill") : 0;
}

static int write_run(const struct tool_probe_env *env, const struct tool_script *script,
                     struct buf *run)
{
    const struct run_limits limits = {
        .timeout_ms = tool_probe_timeout_ms(env), .memory_bytes = MEMORY_BYTES, .pids = PIDS};
    int r = run_payload_text(run, PROTO_F_LANG, "python");

    if (r == 0)
        r = run_payload_number(run, PROTO_F_MODE, script->mode, 1);
    if (r == 0)
        r = run_payload_text(run, PROTO_F_ENTRY, PROBE_PATH);
    if (r == 0)
        r = run_payload_text(run, PROTO_F_ARG, script->path);
    if (r == 0)
        r = run_payload_limits(run, &limits);
    return r;
}

static int ignore_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                      struct err *err)
{
    (void)ctx;
    (void)stream;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int ignore_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    (void)ctx;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int take_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct reading *reading = ctx;
    int r = reading->too_large ? 0 : buf_append(&reading->output, data, len);

    reading->too_large |= r == -E2BIG;
    return r < 0 && r != -E2BIG ? err_set(err, -r, "out of memory") : 0;
}

static bool is_cancelled(void *ctx)
{
    struct pollfd p = {.fd = *(const int *)ctx, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* Runs it and reads what it leaves. */
static int run_machine(const struct tool_probe_env *env, const struct guest_session_plan *plan,
                       struct reading *reading, struct guest_session_report *report,
                       uint64_t *ret_cpu_us, struct err *err)
{
    static const struct guest_session_events events = {
        .log = ignore_log, .output = take_output, .files = ignore_files};
    uint64_t start_ns = clock_monotonic_ns();
    struct snapshot_view snapshot;
    struct vm_restore how = {.program = env->vmm_program, .record_fd = -1};
    struct vm vm = vm_init();
    int cancel_fd = plan->cancel_fd;
    int r = snapshots_wait(env->snapshots, is_cancelled, &cancel_fd, &snapshot, err);

    if (r < 0)
        return r;
    how.image_fd = snapshot.image_fd;
    how.state_fd = snapshot.state_fd;
    how.memory_fd = snapshot.memory_fd;
    how.working_set_fd = snapshot.working_set_fd;
    r = vm_start_restore(&how, &vm, err);
    if (r < 0)
        return r;
    r = guest_session_run(&vm, plan, &events, reading, start_ns, report, err);
    vm_finish(&vm);
    metrics_count_death(env->metrics, vm_death(&vm));
    *ret_cpu_us = vm.cpu_us;
    return r;
}

/* What the end of the session means. */
static int judge(int r, const struct guest_session_report *report, struct reading *reading,
                 struct err *err)
{
    struct parser_script script;
    struct err why = {0};

    if (report->cancelled)
        return err->code ? -ECANCELED : err_set(err, ECANCELED, "the daemon stops");
    if (r == 0 && (report->exit.flags & PROTO_EXIT_TIMED_OUT))
        return err_set(err, ETIME, "the script did not ask for its arguments in time");
    if (r < 0)
        return r;
    if (reading->too_large)
        return err_set(err, ENODATA, "the description of its arguments is too large");
    r = parser_read((const char *)reading->output.data, reading->output.len, &script, &why);
    if (r == -ENOMEM)
        return err_set(err, ENOMEM, "out of memory");
    if (r < 0)
        return err_set(err, ENODATA, "%s", why.message);
    parser_script_finish(&script);
    return 0;
}

int tool_probe_run(const struct tool_probe_env *env, const struct tool_script *script,
                   int cancel_fd, uint64_t *ret_cpu_us, struct buf *ret, struct err *err)
{
    _cleanup_fd_ int skill = objects_open(env->objects_fd, script->digest, err);
    _cleanup_fd_ int tar = spool_open_nameless(env->tmp_fd);
    struct reading reading = {.output = buf_init(PARSER_BYTES_MAX)};
    struct guest_session_report report = {0};
    struct buf run = buf_init(PROTO_PAYLOAD_MAX);
    struct guest_session_plan plan = {
        .run = &run,
        .skill_fd = tar,
        .input_text = "{}",
        .input_bytes = 2,
        .timeout_ms = tool_probe_timeout_ms(env),
        .grace_ms = env->grace_ms,
        .limits = {.output_bytes = LIMIT_OUTPUT_BYTES, .files_bytes = FILES_MAX},
        .cancel_fd = cancel_fd,
    };
    int r = skill < 0 ? skill : tar < 0 ? tar : 0;

    *ret_cpu_us = 0;
    if (r == 0)
        r = write_tar(skill, tar, &plan.skill_bytes, err);
    if (r == 0)
        r = write_run(env, script, &run);
    if (r < 0)
        (void)err_set_errno(err, -r, "cannot prepare the look at a script");
    else
        r = judge(run_machine(env, &plan, &reading, &report, ret_cpu_us, err), &report,
                  &reading, err);
    if (r == 0)
        r = buf_append(ret, reading.output.data, reading.output.len);
    buf_finish(&reading.output);
    buf_finish(&run);
    return r;
}
