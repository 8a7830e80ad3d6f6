/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution inside one microVM, from its start to DONE: sends what the guest needs,
 * receives what it gives, watches the clock, the control socket and the wish to cancel. It
 * never waits for a guest without a deadline and never keeps more of its bytes than the
 * handlers do.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_GUEST_SESSION_H
#define SKILLVM_API_DAEMON_ENGINE_GUEST_SESSION_H

#include "api/daemon/engine/guest_decoder.h"
#include "api/daemon/engine/input_files.h"
#include "api/daemon/engine/vm.h"
#include "api/daemon/store/spool.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* What to run. Everything is borrowed for the session. */
struct guest_session_plan {
    const struct buf *run; /* the RUN payload */
    int skill_fd;          /* the canonical tar, read by pread */
    uint64_t skill_bytes;
    const struct spool *input;
    uint64_t input_at; /* the input JSON is input_bytes from here */
    uint64_t input_bytes;
    const char *input_text;          /* used instead of the spool where it is not NULL */
    const struct input_files *files; /* or NULL */
    uint64_t timeout_ms;
    uint64_t grace_ms; /* how much later than the guest's own deadline the host gives up */
    struct guest_decoder_limits limits;
    int cancel_fd; /* readable: end it */
};

/* When things happened, CLOCK_MONOTONIC; 0: never. */
struct guest_session_times {
    uint64_t start_ns;
    uint64_t resumed_ns;
    uint64_t ready_ns;
    uint64_t started_ns;
    uint64_t exit_ns;
    uint64_t done_ns;
};

struct guest_session_report {
    struct guest_session_times times;
    struct guest_exit exit; /* valid where times.exit_ns is not 0 */
    bool cancelled;         /* cancel_fd was readable before the end */
};

/* stage is the session's own affair; the other handlers as in the decoder. May be NULL. */
struct guest_session_events {
    int (*log)(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
               struct err *err);
    int (*output)(void *ctx, const uint8_t *data, size_t len, struct err *err);
    int (*files)(void *ctx, const uint8_t *data, size_t len, struct err *err);
    /* The skill runs; the skill has ended. */
    void (*started)(void *ctx);
    void (*ended)(void *ctx);
};

/*
 * Runs a session over a machine that was started at start_ns. *report is filled on failure too,
 * with what is known. 0 when DONE came; -ETIMEDOUT the host's deadline passed; -ECANCELED
 * before the skill ran; -EPIPE the machine ended; -EREMOTEIO it or the guest said FAIL; -EPROTO
 * a breach; -errno.
 */
int guest_session_run(struct vm *vm, const struct guest_session_plan *plan,
                      const struct guest_session_events *events, void *ctx, uint64_t start_ns,
                      struct guest_session_report *report, struct err *err);

/* Waits for READY only: what making a snapshot needs. 0 or as above. */
int guest_session_wait_ready(struct vm *vm, uint64_t deadline_ns, struct err *err);

#endif
