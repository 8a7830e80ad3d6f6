/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread's loop: commands and events of the control socket (vmm/control.h), the host's
 * end of the guest connection, and what the vCPU thread reports. It ends the process's work
 * when the control socket closes, so that no machine outlives its daemon.
 */
#ifndef SKILLVM_VMM_CONTROL_LOOP_H
#define SKILLVM_VMM_CONTROL_LOOP_H

#include "base/err.h"
#include "vmm/machine.h"

/*
 * Sends one event. Failures are ignored: a daemon that is gone is noticed by the loop.
 * message may be NULL.
 */
void control_send(int control_fd, uint32_t type, uint64_t time_ns, uint64_t value,
                  const char *message);

/*
 * Starts the vCPU and serves the machine until it ends. source_fd is the file of its memory, or
 * -1 for a machine that cannot be saved. All are borrowed. 0 when the guest ended or the daemon
 * wanted it to; -errno with err set for what a FAILED event must say.
 */
int control_run(struct machine *m, int control_fd, int vsock_fd, int source_fd,
                struct err *err);

#endif
