/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/result.h"

#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/json/json_write.h"

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

const char *const result_phase_names[RESULT_PHASES] = {"queue", "take", "inject", "run",
                                                       "collect"};

static void describe_bytes(uint64_t bytes, char *text, size_t size)
{
    if (bytes >= LIMIT_MIB)
        (void)snprintf(text, size, "%llu MiB", (unsigned long long)(bytes / LIMIT_MIB));
    else
        (void)snprintf(text, size, "%llu bytes", (unsigned long long)bytes);
}

static void describe_timeout(const struct guest_exit *how, uint64_t timeout_ms,
                             uint64_t memory_bytes, char *text, size_t size)
{
    const double seconds = (double)timeout_ms / 1000;
    char limit[32];

    if (!(how->flags & PROTO_EXIT_MEMORY_FULL)) {
        (void)snprintf(text, size, "timed out after %g s", seconds);
        return;
    }
    describe_bytes(memory_bytes, limit, sizeof(limit));
    (void)snprintf(text, size,
                   "timed out after %g s, its memory full: the limit is %s, and what it runs "
                   "gave way and was read again and again",
                   seconds, limit);
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
        describe_timeout(how, timeout_ms, memory_bytes, text, size);
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

static void write_stream(struct json_writer *w, const char *key, const struct execution *log,
                         enum guest_stream stream)
{
    _cleanup_buf_ struct buf bytes = buf_init(LIMIT_LOG_BYTES);

    if (log && w->out.error == 0)
        w->out.error = collect_stream(log, stream, &bytes);
    json_write_text(w, key, bytes.data, bytes.len);
}

/* output.json if it is JSON; else standard output if it is exactly one JSON value; else null.
 */
static void write_output(struct json_writer *w, const struct result *result)
{
    const struct buf *file = result->output_file;
    _cleanup_buf_ struct buf bytes = buf_init(LIMIT_LOG_BYTES);
    struct json_slice value = {"null", 4};

    if (file && file->len > 0 &&
        json_text_check((const char *)file->data, file->len, &value, NULL) == 0) {
        json_write_value(w, "output", value);
        return;
    }
    if (result->log && !result->log->log_clipped && w->out.error == 0)
        w->out.error = collect_stream(result->log, GUEST_STDOUT, &bytes);
    if (bytes.len > 0)
        (void)json_text_check((const char *)bytes.data, bytes.len, &value, NULL);
    json_write_value(w, "output", value);
}

static void write_files(struct json_writer *w, const struct result *result)
{
    char url[96];

    (void)snprintf(url, sizeof(url), "/v1/executions/%s/files", result->execution_id);
    json_write_string(w, "files_url", result->n_files > 0 ? url : NULL);
    json_write_open(w, "files_list", '[');
    for (size_t i = 0; i < result->n_files; i++)
        json_write_string(w, NULL, result->files[i].path);
    json_write_close(w, ']');
}

static void write_exit(struct json_writer *w, const struct result *result)
{
    const struct guest_exit *e = &result->exit;

    if (result->exited && e->signal == 0)
        json_write_number(w, "exit_code", e->code);
    else
        json_write_string(w, "exit_code", NULL);
    if (result->exited && e->signal != 0)
        json_write_number(w, "signal", e->signal);
    else
        json_write_string(w, "signal", NULL);
}

/*
 * The CPU time of the skill is the guest's claim, and a guest may lie. What its machine took,
 * and who read what it said, is the host's knowledge and what counts against quotas: no claim
 * is larger. Nor is one of memory than what a guest has, or it fits no number of some callers.
 */
static void write_usage(struct json_writer *w, const struct result *result)
{
    const uint64_t peak = result->exit.peak_memory_bytes, most = GUEST_MEMORY_MIB * LIMIT_MIB;
    uint64_t host_us = result->host_cpu_us, us;

    if (__builtin_add_overflow(result->exit.user_us, result->exit.system_us, &us) ||
        us > host_us)
        us = host_us;
    json_write_open(w, "usage", '{');
    json_write_ms(w, "cpu_ms", us * 1000);
    json_write_number(w, "peak_memory_bytes", peak < most ? peak : most);
    json_write_ms(w, "host_cpu_ms", host_us * 1000);
    json_write_close(w, '}');
}

static void write_phases(struct json_writer *w, const struct result *result)
{
    json_write_open(w, "phases_ms", '{');
    for (int i = 0; i < RESULT_PHASES; i++)
        json_write_ms(w, result_phase_names[i], result->phase_ns[i]);
    json_write_close(w, '}');
}

void result_write_skill(struct json_writer *w, const struct result_skill *skill)
{
    json_write_open(w, "skill", '{');
    json_write_string(w, "name", skill->name[0] ? skill->name : NULL);
    json_write_string(w, "version", skill->version[0] ? skill->version : NULL);
    json_write_string(w, "digest", skill->digest[0] ? skill->digest : NULL);
    json_write_close(w, '}');
}

static void write_packages(struct json_writer *w, const char *packages)
{
    json_write_value(w, "packages", (struct json_slice){packages, strlen(packages)});
}

static void write_session(struct json_writer *w, const struct result_session *session)
{
    if (!session->id) {
        json_write_string(w, "session", NULL);
        return;
    }
    json_write_open(w, "session", '{');
    json_write_string(w, "id", session->id);
    json_write_bool(w, "committed", session->committed);
    json_write_number(w, "bytes", session->bytes);
    json_write_number(w, "files", session->files);
    json_write_string(w, "reason", session->reason);
    json_write_close(w, '}');
}

static void write_network(struct json_writer *w, const struct egress_records *records)
{
    json_write_open(w, "network", '[');
    for (size_t i = 0; records && i < records->n; i++) {
        const struct egress_record *row = &records->rows[i];

        json_write_open(w, NULL, '{');
        json_write_string(w, "host", row->host);
        if (row->port)
            json_write_number(w, "port", row->port);
        else
            json_write_string(w, "port", NULL);
        json_write_number(w, "count", row->connections);
        json_write_number(w, "bytes_sent", row->bytes_sent);
        json_write_number(w, "bytes_received", row->bytes_received);
        json_write_string(w, "refused", row->refusal == EGRESS_REACHED ? NULL : row->refused);
        json_write_close(w, '}');
    }
    json_write_close(w, ']');
}

int result_write(const struct result *result, struct buf *ret)
{
    struct json_writer w = json_writer_init(RESULT_MAX);
    static const struct skill_strings none;
    const struct skill_strings *warnings = result->warnings ? result->warnings : &none;
    const struct execution *log = result->log;

    json_write_open(&w, NULL, '{');
    json_write_string(&w, "execution_id", result->execution_id);
    json_write_string(&w, "status", result_status_name(result->status));
    write_output(&w, result);
    write_files(&w, result);
    json_write_text(&w, "logs", log ? log->log.data : NULL, log ? log->log.len : 0);
    json_write_number(&w, "duration_ms", (result->duration_ns + 500000) / 1000000);
    json_write_string(&w, "error", result->error);
    write_exit(&w, result);
    write_stream(&w, "stdout", log, GUEST_STDOUT);
    write_stream(&w, "stderr", log, GUEST_STDERR);
    json_write_bool(&w, "truncated", result->truncated);
    write_usage(&w, result);
    write_phases(&w, result);
    result_write_skill(&w, &result->skill);
    write_packages(&w, result->skill.packages ? result->skill.packages : "[]");
    write_session(&w, &result->session);
    json_write_string(&w, "snapshot", result->snapshot);
    json_write_string(&w, "image", result->image);
    json_write_string(&w, "image_reason", result->image_reason);
    json_write_string(&w, "profile", result->profile);
    json_write_string(&w, "machine", result->machine);
    json_write_bool(&w, "warm", (result->exit.flags & PROTO_EXIT_WARM) != 0);
    write_network(&w, result->network);
    json_write_strings(&w, "warnings", warnings->items, warnings->len);
    json_write_close(&w, '}');
    return json_writer_end(&w, ret);
}
