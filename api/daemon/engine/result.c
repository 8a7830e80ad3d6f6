/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/result.h"

#include "api/daemon/limits.h"
#include "api/json/json_text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The log twice with every byte escaped, the output, and the names of files. */
#define RESULT_MAX                                                                             \
    (2 * 6 * LIMIT_LOG_BYTES + LIMIT_OUTPUT_BYTES + 6 * LIMIT_LIST_BYTES + LIMIT_MIB)

const char *result_status_name(enum result_status status)
{
    static const char *const names[] = {"success",   "failed",   "timeout",
                                        "cancelled", "accepted", "running"};

    return names[status];
}

const char *result_phase_name(enum result_phase phase)
{
    static const char *const names[RESULT_PHASES] = {"queue", "take", "inject", "run",
                                                     "collect"};

    return names[phase];
}

static void describe_bytes(uint64_t bytes, char *text, size_t size)
{
    if (bytes >= LIMIT_MIB)
        (void)snprintf(text, size, "%llu MiB", (unsigned long long)(bytes / LIMIT_MIB));
    else
        (void)snprintf(text, size, "%llu bytes", (unsigned long long)bytes);
}

enum result_status result_of_exit(const struct guest_exit *how, uint64_t timeout_ms,
                                  uint64_t memory_bytes, char *text, size_t size)
{
    text[0] = '\0';
    if (how->flags & PROTO_EXIT_CANCELLED) {
        (void)snprintf(text, size, "cancelled");
        return RESULT_CANCELLED;
    }
    if (how->flags & PROTO_EXIT_TIMED_OUT) {
        (void)snprintf(text, size, "timed out after %g s", (double)timeout_ms / 1000);
        return RESULT_TIMEOUT;
    }
    if (how->code == 0 && how->signal == 0)
        return RESULT_SUCCESS;
    if (how->flags & PROTO_EXIT_OUT_OF_MEMORY) {
        char limit[32];

        describe_bytes(memory_bytes, limit, sizeof(limit));
        (void)snprintf(text, size, "out of memory: the limit is %s", limit);
    } else if (how->signal != 0) {
        const char *name = sigabbrev_np((int)how->signal);

        (void)snprintf(text, size, name ? "killed by signal %u (SIG%s)" : "killed by signal %u",
                       how->signal, name);
    } else {
        (void)snprintf(text, size, "the skill exited with code %u", how->code);
    }
    return RESULT_FAILED;
}

/* Copies the bytes of one stream out of the log. */
static int collect_stream(const struct execution *log, enum guest_stream stream,
                          struct buf *ret)
{
    size_t log_at = 0;
    int r = 0;

    for (size_t at = 0; r == 0 && at < log->segments.len; at += sizeof(uint32_t)) {
        uint32_t segment;
        size_t len;

        memcpy(&segment, log->segments.data + at, sizeof(segment));
        len = segment & EXECUTION_SEGMENT_LENGTH;
        if ((segment & EXECUTION_SEGMENT_STDERR) ==
            (stream == GUEST_STDERR ? EXECUTION_SEGMENT_STDERR : 0))
            r = buf_append(ret, log->log.data + log_at, len);
        log_at += len;
    }
    return r;
}

/* One stream of the log as a JSON string. */
static int append_stream(struct buf *out, const struct execution *log, enum guest_stream stream)
{
    struct buf bytes = buf_init(LIMIT_LOG_BYTES);
    int r = log ? collect_stream(log, stream, &bytes) : 0;

    if (r == 0)
        r = json_append_string(out, bytes.data, bytes.len);
    buf_finish(&bytes);
    return r;
}

/* output.json if it is JSON; else standard output if it is exactly one JSON value; else null.
 */
static int append_output(struct buf *out, const struct result *result)
{
    const struct buf *file = result->output_file;
    struct buf bytes = buf_init(LIMIT_LOG_BYTES);
    struct json_slice value;
    int r = 0;

    if (file && file->len > 0 &&
        json_text_check((const char *)file->data, file->len, &value, NULL) == 0)
        return json_append_compact(out, value);
    if (result->log && !result->log->log_clipped)
        r = collect_stream(result->log, GUEST_STDOUT, &bytes);
    if (r == 0 && bytes.len > 0 &&
        json_text_check((const char *)bytes.data, bytes.len, &value, NULL) == 0)
        r = json_append_compact(out, value);
    else if (r == 0)
        r = buf_append(out, "null", 4);
    buf_finish(&bytes);
    return r;
}

static int append_files(struct buf *out, const struct result *result)
{
    int r = buf_append(out, "[", 1);

    for (size_t i = 0; r == 0 && i < result->n_files; i++) {
        if (i > 0)
            r = buf_append(out, ",", 1);
        if (r == 0)
            r = json_append_cstr(out, result->files[i].path);
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

static int append_warnings(struct buf *out, const struct skill_strings *warnings)
{
    int r = buf_append(out, "[", 1);

    for (size_t i = 0; r == 0 && warnings && i < warnings->len; i++) {
        if (i > 0)
            r = buf_append(out, ",", 1);
        if (r == 0)
            r = json_append_cstr(out, warnings->items[i]);
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

static int append_phases(struct buf *out, const struct result *result)
{
    int r = 0;

    for (int i = 0; r == 0 && i < RESULT_PHASES; i++)
        r = buf_printf(out, "%s\"%s\":%.3f", i > 0 ? "," : ",\"phases_ms\":{",
                       result_phase_name((enum result_phase)i),
                       (double)result->phase_ns[i] / 1e6);
    return r;
}

static int append_head(struct buf *out, const struct result *result)
{
    int r = buf_printf(out, "{\"execution_id\":\"%s\",\"status\":\"%s\",\"output\":",
                       result->execution_id, result_status_name(result->status));

    if (r == 0)
        r = append_output(out, result);
    if (r == 0 && result->n_files > 0)
        r = buf_printf(out, ",\"files_url\":\"/v1/executions/%s/files\",\"files_list\":",
                       result->execution_id);
    else if (r == 0)
        r = buf_printf(out, ",\"files_url\":null,\"files_list\":");
    if (r == 0)
        r = append_files(out, result);
    if (r == 0)
        r = buf_printf(out, ",\"logs\":");
    if (r == 0)
        r = result->log ? json_append_string(out, result->log->log.data, result->log->log.len)
                        : json_append_cstr(out, "");
    if (r == 0)
        r = buf_printf(out, ",\"duration_ms\":%llu,\"error\":",
                       (unsigned long long)((result->duration_ns + 500000) / 1000000));
    return r < 0 ? r : json_append_cstr(out, result->error);
}

/*
 * The CPU time of the skill is the guest's claim, and a guest may lie. What its machine took,
 * and who read what it said, is the host's knowledge and what counts against quotas: no claim
 * is larger.
 */
static int append_usage(struct buf *out, const struct result *result)
{
    double host_us = (double)result->host_cpu_us;
    double us = (double)result->exit.user_us + (double)result->exit.system_us;

    return buf_printf(out,
                      ",\"usage\":{\"cpu_ms\":%.3f,\"peak_memory_bytes\":%llu,"
                      "\"host_cpu_ms\":%.3f}",
                      (us < host_us ? us : host_us) / 1e3,
                      (unsigned long long)result->exit.peak_memory_bytes, host_us / 1e3);
}

static int append_exit(struct buf *out, const struct result *result)
{
    const struct guest_exit *e = &result->exit;
    int r;

    if (!result->exited)
        r = buf_printf(out, ",\"exit_code\":null,\"signal\":null");
    else if (e->signal != 0)
        r = buf_printf(out, ",\"exit_code\":null,\"signal\":%u", e->signal);
    else
        r = buf_printf(out, ",\"exit_code\":%u,\"signal\":null", e->code);
    if (r == 0)
        r = buf_printf(out, ",\"stdout\":");
    if (r == 0)
        r = append_stream(out, result->log, GUEST_STDOUT);
    if (r == 0)
        r = buf_printf(out, ",\"stderr\":");
    if (r == 0)
        r = append_stream(out, result->log, GUEST_STDERR);
    if (r == 0)
        r = buf_printf(out, ",\"truncated\":%s", result->truncated ? "true" : "false");
    return r < 0 ? r : append_usage(out, result);
}

static int append_tail(struct buf *out, const struct result *result)
{
    int r = append_phases(out, result);

    if (r == 0)
        r = buf_printf(out, "},\"skill\":{\"name\":");
    if (r == 0)
        r = json_append_cstr(out, result->skill.name);
    if (r == 0)
        r = buf_printf(out, ",\"version\":");
    if (r == 0)
        r = json_append_cstr(out, result->skill.version);
    if (r == 0)
        r = buf_printf(out, ",\"digest\":");
    if (r == 0)
        r = json_append_cstr(out, result->skill.digest[0] ? result->skill.digest : NULL);
    if (r == 0)
        r = buf_printf(out, "},\"snapshot\":");
    if (r == 0)
        r = json_append_cstr(out, result->snapshot);
    if (r == 0)
        r = buf_printf(out, ",\"profile\":");
    if (r == 0)
        r = json_append_cstr(out, result->profile);
    if (r == 0)
        r = buf_printf(out, ",\"machine\":");
    if (r == 0)
        r = json_append_cstr(out, result->machine);
    if (r == 0)
        r = buf_printf(out, ",\"warnings\":");
    if (r == 0)
        r = append_warnings(out, result->warnings);
    return r < 0 ? r : buf_append(out, "}\n", 2);
}

int result_write(const struct result *result, struct buf *ret)
{
    struct buf out = buf_init(RESULT_MAX);
    int r = append_head(&out, result);

    if (r == 0)
        r = append_exit(&out, result);
    if (r == 0)
        r = append_tail(&out, result);
    if (r == 0 && !buf_cstr(&out))
        r = -ENOMEM;
    if (r < 0) {
        buf_finish(&out);
        return r;
    }
    *ret = out;
    return 0;
}
