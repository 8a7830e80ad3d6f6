/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result JSON of an execution (design.md section 5): fields in the documented order, made
 * from what the host measured and what the guest claimed. Guest bytes appear in it only as
 * escaped strings, as checked numbers, or as output that was checked to be one JSON value.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RESULT_H
#define SKILLVM_API_DAEMON_ENGINE_RESULT_H

#include "api/daemon/egress/records.h"
#include "api/daemon/engine/execution.h"
#include "api/daemon/machine/guest_decoder.h"
#include "api/json/json_write.h"
#include "api/skill/artifacts.h"
#include "base/buf.h"

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

/* What an execution does, one after the other. */
enum result_phase {
    RESULT_QUEUE,   /* it waits for its turn */
    RESULT_TAKE,    /* a machine is taken, or made, until its guest listens */
    RESULT_INJECT,  /* the guest gets the skill, and begins */
    RESULT_RUN,     /* the skill runs */
    RESULT_COLLECT, /* what it left is read and kept */
};
#define RESULT_PHASES (RESULT_COLLECT + 1)

/* The words for the phases, as the API and the metrics have them. */
extern const char *const result_phase_names[RESULT_PHASES];

/*
 * Which skill ran; digest "" where none was found, name and version "" for code without a
 * skill. Borrowed.
 */
struct result_skill {
    const char *name;
    const char *version;
    const char *digest;
    const char *packages; /* JSON; NULL: none */
};

/* What became of its session. Borrowed; id NULL: it had none. */
struct result_session {
    const char *id;
    bool committed;
    uint64_t bytes; /* of what the next execution finds there */
    uint64_t files;
    const char *reason; /* why it was not committed, or NULL */
};

/* All that a result is made of. Everything is borrowed. */
struct result {
    const char *execution_id;
    enum result_status status;
    const char *error; /* NULL on success and before the end */
    struct result_skill skill;
    struct result_session session;
    const char *snapshot; /* key, or NULL */
    const char *image;    /* its name, or NULL */
    const char *image_reason;
    const char *profile; /* modules that it held beside the image's own, or NULL */
    const char *machine; /* "fresh" or "reused", or NULL */
    bool exited;         /* exit is valid */
    struct guest_exit exit;
    uint64_t
        host_cpu_us; /* of its machine's process and its thread, as the host's kernel counted */
    const struct buf *output_file; /* output.json as it came, or NULL */
    const struct execution *log;   /* its streams, or NULL */
    const struct artifact *files;
    size_t n_files;
    bool truncated;
    const struct egress_records *network; /* or NULL */
    const struct skill_strings *warnings; /* or NULL */
    uint64_t duration_ns;
    uint64_t phase_ns[RESULT_PHASES]; /* 0 where it did not happen */
};

/* The member "skill" of an object. */
void result_write_skill(struct json_writer *w, const struct result_skill *skill);
/* Writes the JSON, one line, to a fresh *ret (caller's; empty on failure). 0, -E2BIG or
 * -ENOMEM. */
int result_write(const struct result *result, struct buf *ret);

/*
 * The status that an EXIT means, and its sentence in text ("" on success). timeout_ms and
 * memory_bytes are the limits it ran under.
 */
enum result_status result_of_exit(const struct guest_exit *how, uint64_t timeout_ms,
                                  uint64_t memory_bytes, char *text, size_t size);

#endif
