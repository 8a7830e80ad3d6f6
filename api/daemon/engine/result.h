/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result JSON of an execution (design.md section 5): fields in the documented order, made
 * from what the host measured and what the guest claimed. Guest bytes appear in it only as
 * escaped strings, as checked numbers, or as output that was checked to be one JSON value.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RESULT_H
#define SKILLVM_API_DAEMON_ENGINE_RESULT_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/guest_session.h"
#include "api/skill/artifacts.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum result_status {
    RESULT_SUCCESS,
    RESULT_FAILED,
    RESULT_TIMEOUT,
    RESULT_CANCELLED,
    /* not ended yet */
    RESULT_ACCEPTED,
    RESULT_RUNNING,
};

/* The word for the status, as the API has it. */
const char *result_status_name(enum result_status status);

/* Which skill ran; digest "" where none was found. Borrowed. */
struct result_skill {
    const char *name;
    const char *version;
    const char *digest;
};

/* All that a result is made of. Everything is borrowed. */
struct result {
    const char *execution_id;
    enum result_status status;
    const char *error; /* NULL on success and before the end */
    struct result_skill skill;
    const char *snapshot; /* key, or NULL */
    bool exited;          /* exit is valid */
    struct guest_exit exit;
    uint64_t host_cpu_us; /* what the machine's process took, as the host's kernel counted */
    const struct buf *output_file; /* output.json as it came, or NULL */
    const struct execution *log;   /* its streams, or NULL */
    const struct artifact *files;
    size_t n_files;
    bool truncated;
    const struct skill_strings *warnings; /* or NULL */
    uint64_t duration_ns;
    /* nanoseconds; 0 where the phase did not happen */
    uint64_t queue_ns, restore_ns, connect_ns, inject_ns, run_ns, collect_ns, teardown_ns;
};

/* Writes the JSON, one line, to a fresh *ret (caller's). 0, -E2BIG or -ENOMEM. */
int result_write(const struct result *result, struct buf *ret);

/*
 * The status that an EXIT means, and its sentence in text ("" on success). timeout_ms and
 * memory_bytes are the limits it ran under.
 */
enum result_status result_of_exit(const struct guest_exit *how, uint64_t timeout_ms,
                                  uint64_t memory_bytes, char *text, size_t size);

#endif
