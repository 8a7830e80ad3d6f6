/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the skill once: starts it, passes its output on as it comes, ends it at its deadline or
 * when told to, and reports how it ended. It must never wait for something the skill controls:
 * neither an open pipe nor a child left behind may hold up the end.
 */
#ifndef SKILLVM_GUEST_EXECUTE_H
#define SKILLVM_GUEST_EXECUTE_H

#include "base/err.h"
#include "guest-init/frame.h"
#include "guest-init/run.h"
#include "guest-init/sandbox.h"
#include "guest-init/zygote.h"

struct execute {
    struct sandbox *sandbox; /* all borrowed */
    struct zygote *zygote;
    const struct run *run;
    const char *input; /* NULL when too large for a variable */
    int conn;
    int signals; /* signalfd of SIGCHLD, which is blocked */
    struct frame_reader *reader;
    struct frame_writer *writer;
    bool is_warm; /* of execute_run: it ran in the zygote */
};

/* How a run ended: the fields of EXIT. */
struct execute_result {
    uint32_t exit_code;
    uint32_t signal;
    uint32_t flags; /* enum proto_exit_flag */
    uint32_t not_started;
    uint64_t user_us;
    uint64_t system_us;
    uint64_t peak_bytes;
    uint64_t wall_us;
};

/*
 * Runs it and leaves no process of the skill's behind that could still run. 0 with *ret_result;
 * -ECONNRESET when the host closed the connection; another -errno with err set when the skill
 * could not be started.
 */
int execute_run(struct execute *x, struct execute_result *ret_result, struct err *err);
/* Writes the payload of EXIT. */
void execute_encode(const struct execute_result *result, uint8_t out[PROTO_EXIT_SIZE]);

#endif
