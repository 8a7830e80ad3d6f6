/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the guest of one microVM, from READY to DONE: sends what the guest needs,
 * receives what it gives, watches the clock, the control socket and the wish to cancel. It
 * never waits for a guest without a deadline and never keeps more of its bytes than the sink
 * does. It ends with its job: whatever runs next in the machine has another one.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_GUEST_H
#define SKILLVM_API_DAEMON_MACHINE_GUEST_H

#include "api/daemon/machine/guest_decoder.h"
#include "api/daemon/machine/job.h"
#include "api/daemon/machine/vm.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct guest;

/* When things happened, CLOCK_MONOTONIC; 0: never. */
struct guest_times {
    uint64_t ready_ns;
    uint64_t started_ns;
    uint64_t cancelled_ns; /* while the skill ran */
    uint64_t exit_ns;
};

/* How a run went. */
struct guest_report {
    struct guest_times times;
    struct guest_exit exit; /* valid where times.exit_ns is not 0 */
    bool cancelled;         /* cancel_fd was readable before the end */
};

/*
 * Begins with the stream of a machine (borrowed) that was started or reset at start_ns.
 * grace_ms is how much later than the guest's own deadline the host gives up. NULL without
 * memory.
 */
struct guest *guest_open(struct vm *vm, uint64_t start_ns, uint64_t grace_ms);
/* Forgets all that it was told. NULL is fine. */
void guest_close(struct guest *guest);

/*
 * Waits until the guest is ready and the process has said that it is connected: nothing more is
 * to come of either then. 0 or as below.
 */
int guest_wait_ready(struct guest *guest, uint64_t deadline_ns, struct err *err);

/*
 * Has a guest that is ready import modules, dotted names joined by "+", and waits until it has.
 * Nothing of a user's may have come to it. 0 or as below; -EREMOTEIO where one cannot be.
 */
int guest_warm(struct guest *guest, const char *modules, uint64_t deadline_ns, struct err *err);
/*
 * Has it take the packages of a job, of which nothing else is looked at, and waits until they
 * are in their place and compiled, for which it has time on top of the deadline. As guest_warm,
 * after which it may come.
 */
int guest_hold(struct guest *guest, const struct job *job, uint64_t deadline_ns,
               struct err *err);
/* Says that the job's packages are those that it holds, so that they need not be sent. */
void guest_holds_packages(struct guest *guest);

/*
 * Runs a job to its end, READY included where it has not come yet. Once. Ends when cancel_fd
 * (or -1) becomes readable. *report is filled on failure too, with what is known. 0 when DONE
 * came; -ETIMEDOUT the host's deadline passed; -ECANCELED before the skill ran; -EPIPE the
 * machine ended; -EREMOTEIO it or the guest said FAIL; -EPROTO a breach; -errno.
 */
int guest_run(struct guest *guest, const struct job *job, const struct guest_sink *sink,
              int cancel_fd, struct guest_report *report, struct err *err);

#endif
