/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/warmup.h"

#include "api/daemon/engine/guest_session.h"
#include "api/daemon/engine/run_payload.h"
#include "api/daemon/limits.h"
#include "api/daemon/store/spool.h"
#include "api/skill/tar.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>

#define BLOCK      512u
#define TIMEOUT_MS 30000u

/* What nearly every skill does: reads its input, prints, writes output.json and a file. */
static const char script[] = "import json, os, sys\n"
                             "data = json.loads(os.environ.get('SANDBOX_INPUT', '{}'))\n"
                             "files = os.environ['SANDBOX_FILES_DIR']\n"
                             "os.makedirs(files, exist_ok=True)\n"
                             "with open(os.path.join(files, 'warmup.txt'), 'w') as f:\n"
                             "    f.write('warm')\n"
                             "with open(os.environ['SANDBOX_OUTPUT'], 'w') as f:\n"
                             "    json.dump({'input': data}, f)\n"
                             "print('warm')\n"
                             "print('warm', file=sys.stderr)\n";

/* A tar of one file. 0, -E2BIG or -ENOMEM. */
static int make_tar(struct buf *tar)
{
    static const uint8_t zeros[2 * BLOCK] = {0};
    const size_t len = strlen(script);
    const struct tar_header header = {
        .path = "main.py", .type = TAR_FILE, .mode = 0644, .size = len};
    int r = tar_put_header(tar, &header);

    if (r == 0)
        r = buf_append(tar, script, len);
    if (r == 0)
        r = buf_append(tar, zeros, tar_padding(len));
    return r < 0 ? r : buf_append(tar, zeros, sizeof(zeros));
}

static int make_run(struct buf *run)
{
    const struct run_limits limits = {
        .timeout_ms = TIMEOUT_MS, .memory_bytes = DEFAULT_MEMORY_BYTES, .pids = LIMIT_PIDS};
    int r = run_payload_text(run, PROTO_F_LANG, "python");

    if (r == 0)
        r = run_payload_number(run, PROTO_F_MODE, PROTO_MODE_ENTRY, 1);
    if (r == 0)
        r = run_payload_text(run, PROTO_F_ENTRY, "main.py");
    if (r == 0)
        r = run_payload_limits(run, &limits);
    if (r == 0)
        r = run_payload_text(run, PROTO_F_INSTRUCTIONS, "");
    if (r == 0)
        r = run_payload_text(run, PROTO_F_SKILL_NAME, "warmup");
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

static int ignore(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    (void)ctx;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int run_session(struct vm *vm, const struct guest_session_plan *plan, struct err *err)
{
    static const struct guest_session_events events = {
        .log = ignore_log, .output = ignore, .files = ignore};
    struct guest_session_report report;
    int r = guest_session_run(vm, plan, &events, NULL, clock_monotonic_ns(), &report, err);

    if (r == 0 && (report.exit.code != 0 || report.exit.signal != 0))
        return err_set(err, EREMOTEIO, "the warm-up ended with code %u, signal %u",
                       report.exit.code, report.exit.signal);
    return r;
}

int warmup_run(struct vm *vm, int tmp_fd, uint64_t grace_ms, struct err *err)
{
    _cleanup_fd_ int skill = spool_open_nameless(tmp_fd);
    struct buf run = buf_init(PROTO_PAYLOAD_MAX);
    struct buf tar = buf_init(8 * BLOCK);
    int r = skill < 0 ? skill : make_tar(&tar);
    struct guest_session_plan plan = {
        .run = &run,
        .skill_fd = skill,
        .skill_bytes = tar.len,
        .input_text = "{}",
        .input_bytes = 2,
        .timeout_ms = TIMEOUT_MS,
        .grace_ms = grace_ms,
        .limits = {.output_bytes = LIMIT_OUTPUT_BYTES, .files_bytes = LIMIT_MIB},
        .cancel_fd = -1,
    };

    if (r == 0)
        r = fd_pwrite_full(skill, tar.data, tar.len, 0);
    if (r == 0)
        r = make_run(&run);
    if (r < 0)
        (void)err_set_errno(err, -r, "cannot prepare the warm-up");
    else
        r = run_session(vm, &plan, err);
    if (r == 0)
        r = vm_quit(vm, clock_monotonic_ns() + 6 * grace_ms * 1000000u, err);
    buf_finish(&run);
    buf_finish(&tar);
    return r;
}
