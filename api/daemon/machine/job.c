/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/job.h"

#include "api/daemon/terms/limits.h"
#include "base/bytes.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct job_bytes no_bytes(void)
{
    return (struct job_bytes){.fd = -1, .memory = buf_init(0)};
}

struct job job_init(void)
{
    return (struct job){.run = buf_init(PROTO_PAYLOAD_MAX),
                        .packages = no_bytes(),
                        .skill = no_bytes(),
                        .disk = no_bytes(),
                        .input = no_bytes(),
                        .session = no_bytes()};
}

static void finish_bytes(struct job_bytes *bytes)
{
    fd_close(&bytes->fd);
    buf_finish(&bytes->memory);
}

void job_finish(struct job *job)
{
    buf_finish(&job->run);
    finish_bytes(&job->packages);
    finish_bytes(&job->skill);
    finish_bytes(&job->disk);
    finish_bytes(&job->input);
    input_files_finish(&job->files);
    finish_bytes(&job->session);
    free(job->network.declared);
    free(job->network.policy);
    free(job->network.asked);
    *job = job_init();
}

const struct job_bytes *job_input(const struct job *job)
{
    static uint8_t object[] = "{}";
    static const struct job_bytes empty = {
        .fd = -1, .memory = {.data = object, .len = 2}, .len = 2};

    return job->input.len > 0 ? &job->input : &empty;
}

int job_bytes_read(const struct job_bytes *bytes, uint64_t offset, void *data, size_t len)
{
    uint64_t at = bytes->at + offset;
    ssize_t n;

    if (offset > bytes->len || len > bytes->len - offset)
        return -EIO;
    if (bytes->fd >= 0) {
        n = fd_pread_full(bytes->fd, data, len, at);
        return n < 0 ? (int)n : (size_t)n == len ? 0 : -EIO;
    }
    if (at > bytes->memory.len || len > bytes->memory.len - at)
        return -EIO;
    if (len > 0)
        memcpy(data, bytes->memory.data + at, len);
    return 0;
}

static void put_bytes(struct buf *run, enum proto_field tag, const void *data, size_t len)
{
    uint8_t header[8];
    struct bytes_writer w = bytes_writer_init(header, sizeof(header));

    bytes_put_u16(&w, (uint16_t)tag);
    bytes_put_u16(&w, 0);
    bytes_put_u32(&w, (uint32_t)len);
    (void)buf_append(run, header, sizeof(header));
    (void)buf_append(run, data, len);
}

/* NULL is left out. */
static void put_text(struct buf *run, enum proto_field tag, const char *text)
{
    if (text)
        put_bytes(run, tag, text, strlen(text));
}

/* size: bytes of the number, as proto.h says for the tag. */
static void put_number(struct buf *run, enum proto_field tag, uint64_t value, size_t size)
{
    uint8_t raw[8];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u64(&w, value);
    put_bytes(run, tag, raw, size);
}

static void put_all(struct buf *run, enum proto_field tag, const char *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_text(run, tag, items[i]);
}

static void put_limits(struct buf *run, const struct job *job)
{
    const struct {
        enum proto_field tag;
        uint64_t value;
        size_t size;
    } limits[] = {
        {PROTO_F_TIMEOUT_MS, job->timeout_ms, 8},
        {PROTO_F_MEMORY_BYTES, job->memory_bytes, 8},
        {PROTO_F_PIDS_MAX, job->pids, 4},
        {PROTO_F_LOG_BYTES, LIMIT_LOG_BYTES, 8},
        {PROTO_F_FILES_MAX, LIMIT_FILES, 4},
        {PROTO_F_FILES_BYTES, LIMIT_FILES_BYTES, 8},
        {PROTO_F_OUTPUT_BYTES, LIMIT_OUTPUT_BYTES, 8},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        put_number(run, limits[i].tag, limits[i].value, limits[i].size);
    if (!job->has_session)
        return;
    put_number(run, PROTO_F_SESSION_FILES, LIMIT_SESSION_FILES, 4);
    put_number(run, PROTO_F_SESSION_BYTES, LIMIT_SESSION_BYTES, 8);
}

int job_encode(struct job *job, const struct job_orders *orders)
{
    struct buf *run = &job->run;

    put_text(run, PROTO_F_LANG, orders->lang);
    put_number(run, PROTO_F_MODE, orders->mode, 1);
    put_text(run, PROTO_F_ENTRY, orders->entry);
    put_all(run, PROTO_F_ARG, orders->args, orders->n_args);
    put_all(run, PROTO_F_ENV, orders->env, orders->n_env);
    put_limits(run, job);
    if (orders->instructions)
        put_bytes(run, PROTO_F_INSTRUCTIONS, orders->instructions, orders->instructions_len);
    put_text(run, PROTO_F_SKILL_NAME, orders->skill_name);
    if (job->network.declared)
        put_number(run, PROTO_F_NETWORK, 1, 1);
    if (job->packages.len > 0)
        put_number(run, PROTO_F_PACKAGES, 1, 1);
    if (job->disk.len > 0)
        put_number(run, PROTO_F_SKILL_DISK, 1, 1);
    return run->error;
}
