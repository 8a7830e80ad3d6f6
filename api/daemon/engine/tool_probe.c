/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/tool_probe.h"

#include "api/daemon/engine/objects.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/content.h"
#include "api/skill/tar.h"
#include "api/tools/parser.h"
#include "api/tools/probe.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

CLEANUP_WITH(struct machine *, machine_release)

/* Where the probe lies beside the skill's files. */
#define PROBE_PATH    ".skillvm-describe.py"
#define TIMEOUT_MS    5000u
#define GRACE_MAX_MS  60000u /* lists wait so much longer */
#define MEMORY_BYTES  (128 * LIMIT_MIB)
#define PIDS          32u
#define SCRIPT_MAX    LIMIT_MIB
#define SKILL_TAR_MAX (1024 * LIMIT_MIB)

/* What comes back. */
struct reading {
    struct buf *output;
    bool too_large;
};

uint64_t tool_probe_timeout_ms(const struct tool_probe_env *env)
{
    return TIMEOUT_MS + (env->grace_ms < GRACE_MAX_MS ? env->grace_ms : GRACE_MAX_MS);
}

/* Typer's parsers are click's. */
static bool names_parser(const struct buf *text)
{
    static const char *const names[] = {"argparse", "click", "typer"};
    const size_t n = sizeof(names) / sizeof(names[0]);
    bool found = false;

    for (size_t i = 0; i < n && text->len > 0; i++)
        found |= memmem(text->data, text->len, names[i], strlen(names[i])) != NULL;
    return found;
}

int tool_probe_promises(int skill_fd, const char *path, bool *ret, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(SCRIPT_MAX);
    struct err ignored = {0};
    int r = skill_content_read(skill_fd, path, &text, &ignored);

    *ret = r == 0 && names_parser(&text);
    if (r == -E2BIG)
        return 0;
    return r < 0 ? err_set(err, -r, "%s", ignored.message) : 0;
}

/* The probe, and after it the skill as it is. */
static int write_tar(int skill_fd, int tar_fd, uint64_t *ret_bytes)
{
    _cleanup_buf_ struct buf head = buf_init(LIMIT_MIB);
    struct stat st;
    off_t at = 0;
    int r = fstat(skill_fd, &st) < 0
                ? -errno
                : tar_put_file(&head, PROBE_PATH, parser_probe, parser_probe_len);

    if (r < 0)
        return r;
    r = fd_write_full(tar_fd, head.data, head.len);
    if (r < 0)
        return r;
    if ((uint64_t)st.st_size > SKILL_TAR_MAX)
        return -EFBIG;
    while (at < st.st_size) {
        ssize_t n = sendfile(tar_fd, skill_fd, &at, (size_t)(st.st_size - at));

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    *ret_bytes = head.len + (uint64_t)at;
    return 0;
}

/* Makes the job, with the tar that it reads. */
static int prepare(const struct tool_probe_env *env, const struct tool_script *script,
                   struct job *job, struct err *err)
{
    const struct job_orders orders = {.lang = "python",
                                      .mode = script->mode,
                                      .entry = PROBE_PATH,
                                      .args = &script->path,
                                      .n_args = 1};
    _cleanup_fd_ int skill = objects_get(env->objects, script->digest, err);
    int r;

    if (skill < 0)
        return skill;
    job->timeout_ms = tool_probe_timeout_ms(env);
    job->memory_bytes = MEMORY_BYTES;
    job->pids = PIDS;
    job->skill.fd = store_temporary(env->store);
    if (job->skill.fd < 0)
        return err_set_errno(err, -job->skill.fd, "cannot prepare the skill");
    r = write_tar(skill, job->skill.fd, &job->skill.len);
    if (r < 0)
        return err_set_errno(err, -r, "cannot prepare the skill");
    if (script->packages) {
        r = objects_open(env->objects, script->packages, &job->packages, err);
        if (r < 0)
            return r;
    }
    r = job_encode(job, &orders);
    return r < 0 ? err_set_errno(err, -r, "cannot prepare the look at a script") : 0;
}

static int take_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct reading *reading = ctx;
    int r = reading->too_large ? 0 : buf_append(reading->output, data, len);

    reading->too_large |= r == -E2BIG;
    return r < 0 && r != -E2BIG ? err_set(err, -r, "out of memory") : 0;
}

/* The image of that name by now. */
static int find_image(struct image_tables *tables, const char *image, struct machine_wish *wish,
                      struct images **ret, struct err *err)
{
    unsigned place;

    *ret = image_tables_find(tables, image, "", &place);
    if (!*ret)
        return err_set(err, EBUSY, "there is no image %s any more", image);
    snapshot_name_image(&wish->snapshot, *ret, place);
    return 0;
}

/* Runs it and reads what it leaves. */
static int run_machine(const struct tool_probe_env *env, const char *tenant, const char *image,
                       const struct job *job, int cancel_fd, struct reading *reading,
                       struct machine_report *report, struct err *err)
{
    const struct guest_sink sink = {.ctx = reading, .output = take_output};
    struct machine_wish wish = {0};
    _cleanup_(machine_release) struct machine *machine = NULL;
    _cleanup_images_ struct images *images = NULL;
    int r = find_image(env->images, image, &wish, &images, err);

    if (r < 0)
        return r;
    (void)snprintf(wish.party, sizeof(wish.party), "%s", tenant);
    if (env->scope_tenant)
        (void)snprintf(wish.snapshot.scope, sizeof(wish.snapshot.scope), "%s", tenant);
    r = machine_take(env->pool, &wish, cancel_fd, &machine, err);
    return r < 0 ? r : machine_run(machine, job, &sink, cancel_fd, report, err);
}

/* What the end of the session means. */
static int judge(int r, const struct guest_report *report, struct reading *reading,
                 struct err *err)
{
    struct parser_script script;
    struct err why = {0};

    if (report->cancelled)
        return err->code ? -ECANCELED : err_set(err, ECANCELED, "the daemon stops");
    if (r < 0)
        return r;
    if (report->exit.flags & PROTO_EXIT_TIMED_OUT)
        return err_set(err, ETIME, "the script did not ask for its arguments in time");
    if (reading->too_large)
        return err_set(err, ENODATA, "the description of its arguments is too large");
    r = parser_read((const char *)reading->output->data, reading->output->len, &script, &why);
    if (r == -ENOMEM)
        return err_no_memory(err);
    if (r < 0)
        return err_set(err, ENODATA, "%s", why.message);
    parser_script_finish(&script);
    return 0;
}

int tool_probe_run(const struct tool_probe_env *env, const char *tenant,
                   const struct tool_script *script, int cancel_fd, uint64_t *ret_cpu_us,
                   struct buf *ret, struct err *err)
{
    _cleanup_buf_ struct buf output = buf_init(PARSER_BYTES_MAX);
    struct reading reading = {.output = &output};
    struct machine_report report = {0};
    _cleanup_job_ struct job job = job_init();
    int r = prepare(env, script, &job, err);

    *ret_cpu_us = 0;
    if (r < 0)
        return r;
    r = run_machine(env, tenant, script->image, &job, cancel_fd, &reading, &report, err);
    /* Its own meaning. */
    if (r == -EAGAIN || r == -ENOBUFS)
        r = -EBUSY;
    *ret_cpu_us = report.cpu_us;
    r = judge(r, &report.guest, &reading, err);
    return r < 0 ? r : buf_append(ret, output.data, output.len);
}
