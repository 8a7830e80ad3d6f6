/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/intake.h"

#include "api/daemon/routes/failure.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/entry.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a skill without a version is registered as. */
#define VERSION_NONE "0.0.0"
/* How long an archive waits for its turn. */
#define GATE_NS 10000000000ull

static int check_names(struct skill *skill, struct err *err)
{
    if (!skill->name)
        return err_set(err, EINVAL, "SKILL.md gives the skill no name");
    if (!request_name_valid(skill->name, LIMIT_NAME_BYTES))
        return err_set(err, EINVAL, "\"%.64s\" cannot be the name of a skill", skill->name);
    if (!skill->version)
        skill->version = strdup(VERSION_NONE);
    if (!skill->version)
        return err_no_memory(err);
    if (!request_name_valid(skill->version, LIMIT_VERSION_BYTES) ||
        strcmp(skill->version, "latest") == 0)
        return err_set(err, EINVAL, "\"%.64s\" cannot be the version of a skill",
                       skill->version);
    return 0;
}

static int load(int fd, const struct archive_limits *limits, int tar_fd,
                struct skill_archive *ret_archive, struct skill *ret_skill, struct err *err)
{
    int r = skill_archive_load(fd, limits, tar_fd, ret_archive, ret_skill, err);

    return r < 0 ? r : check_names(ret_skill, err);
}

int intake_archive(struct fair_gate *gate, const char *tenant,
                   const struct archive_limits *limits, struct spool *upload, int tar_fd,
                   struct skill_archive *ret_archive, struct skill *ret_skill, struct err *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + GATE_NS;
    struct fair_entry entry;
    struct err late = {0};
    int fd = spool_to_fd(upload);
    int r;

    if (fd < 0)
        return err_set(err, EIO, "cannot keep the archive: %s", strerror(-fd));
    r = fair_gate_enter(gate, tenant, &entry, deadline_ns, &late);
    if (r == -EBUSY)
        return err_set(err, EBUSY, "too many archives are being checked already");
    if (r < 0)
        return err_set(err, -r, "%s", late.message);
    r = load(fd, limits, tar_fd, ret_archive, ret_skill, err);
    fair_gate_leave(gate, &entry);
    return r;
}

bool intake_reply_refused(struct http_reply *reply, int result, const struct err *err)
{
    if (result != -EINVAL)
        return failure_reply(reply, result, err);
    return http_reply_error(reply, 400, "invalid_skill", "%s",
                            err->code ? err->message : strerror(EINVAL));
}

/* How much of the body of SKILL.md fits an environment variable. */
static size_t instructions_len(const struct skill *skill)
{
    const uint8_t *text = (const uint8_t *)skill->instructions;
    size_t len = text ? skill->instructions_len : 0;

    if (len > LIMIT_INSTRUCTIONS) {
        len = LIMIT_INSTRUCTIONS;
        while (len > 0 && (text[len] & 0xc0) == 0x80)
            len--;
    }
    return len;
}

static int write_run(const struct skill *skill, const struct skill_entry *entry,
                     const struct request *request, struct execution *e)
{
    const struct job_orders orders = {
        .lang = entry->lang,
        .mode = entry->mode,
        .entry = entry->entry,
        .args = (const char *const *)request->args.items,
        .n_args = request->args.len,
        .env = (const char *const *)request->env.items,
        .n_env = request->env.len,
        .pids = request->pids && request->pids < LIMIT_PIDS ? request->pids : LIMIT_PIDS,
        .instructions = skill->instructions ? skill->instructions : "",
        .instructions_len = instructions_len(skill),
        .skill_name = e->skill_name};

    return job_encode(&e->job, &orders);
}

/* The lower of the daemon's ceiling and the tenant's, where that has one. */
static uint64_t ceiling(uint64_t of_daemon, uint64_t of_tenant)
{
    return of_tenant > 0 && of_tenant < of_daemon ? of_tenant : of_daemon;
}

static int choose_limits(const struct skill *skill, const struct request *request,
                         struct execution *e)
{
    struct job *job = &e->job;
    uint64_t timeout = request->timeout_ms ? request->timeout_ms : skill->timeout_ms;
    uint64_t memory = request->memory_bytes ? request->memory_bytes : skill->memory_bytes;
    uint64_t max_timeout = ceiling(LIMIT_TIMEOUT_MS, e->limits.max_timeout_ms);
    uint64_t max_memory = ceiling(LIMIT_MEMORY_MAX, e->limits.max_memory_bytes);
    int r = 0;

    job->timeout_ms = timeout ? timeout : DEFAULT_TIMEOUT_MS;
    job->memory_bytes = memory ? memory : DEFAULT_MEMORY_BYTES;
    if (job->timeout_ms > max_timeout) {
        job->timeout_ms = max_timeout;
        r = skill_strings_add(&e->warnings, "the timeout was cut to %g s",
                              (double)max_timeout / 1000);
    }
    if (r == 0 && job->memory_bytes > max_memory) {
        job->memory_bytes = max_memory;
        r = skill_strings_add(&e->warnings, "the memory limit was cut to %llu MiB",
                              (unsigned long long)(max_memory / LIMIT_MIB));
    }
    if (r == 0 && job->memory_bytes < LIMIT_MEMORY_MIN) {
        job->memory_bytes = LIMIT_MEMORY_MIN;
        r = skill_strings_add(&e->warnings, "the memory limit was raised to %llu MiB",
                              LIMIT_MEMORY_MIN / LIMIT_MIB);
    }
    return r;
}

static int write_orders(const struct skill *skill, const struct skill_entry *entry,
                        const struct request *request, struct execution *e)
{
    int r = choose_limits(skill, request, e);

    return r < 0 ? r : write_run(skill, entry, request, e);
}

int intake_plan(struct profiles *profiles, const struct skill *skill,
                const struct skill_archive *archive, const struct request *request,
                struct execution *e, struct err *err)
{
    struct skill_entry entry;
    int r = skill_entry_resolve(skill, archive, request->script, request->module, &entry, err);

    if (r < 0)
        return r;
    r = write_orders(skill, &entry, request, e);
    if (r == 0)
        profiles_look(profiles, e->skill_digest, e->job.skill.fd, archive, &entry, e->profile);
    skill_entry_finish(&entry);
    if (r < 0)
        return err_set_errno(err, -r, "cannot prepare the execution");
    return 0;
}
