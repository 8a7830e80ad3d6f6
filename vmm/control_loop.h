/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread's loop: commands and events of the control socket (vmm/control.h), the host's
 * end of the guest connection, and what the vCPU thread reports. It ends the process's work
 * when the control socket closes, so that no machine outlives its daemon.
 */
#ifndef SKILLVM_VMM_CONTROL_LOOP_H
#define SKILLVM_VMM_CONTROL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "vmm/machine.h"
#include "vmm/snapshot.h"

/*
 * Sends one event. Failures are ignored: a daemon that is gone is noticed by the loop.
 * message may be NULL.
 */
void control_send(int control_fd, uint32_t type, uint64_t time_ns, uint64_t value,
                  const char *message);

/* What the loop serves. The descriptors are borrowed; a RESET puts another
   stream under the number of vsock_fd. */
struct control_machine {
    struct machine *machine;
    int control_fd;
    int vsock_fd;
    bool can_save;                  /* allows the SNAPSHOT command */
    struct snapshot_origin *origin; /* allows the RESET command; or NULL */
};

/*
 * Starts the vCPU thread, which exists, and serves the machine until it ends. 0 when the guest
 * ended or the daemon wanted it to; -errno with err set for what a FAILED event must say.
 */
int control_run(const struct control_machine *machine, struct err *err);

#endif
