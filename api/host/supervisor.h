/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process outside a software host: owns the public socket, starts QEMU, relays, watches,
 * restarts, and ends it cleanly.
 */
#ifndef SKILLVM_API_HOST_SUPERVISOR_H
#define SKILLVM_API_HOST_SUPERVISOR_H

#include "api/host/host.h"
#include "base/err.h"

/*
 * Runs until SIGTERM or SIGINT. Lines "progress TEXT", "ready" and "error TEXT" go to ready_fd
 * (-1: nowhere), which is closed after "ready". Standard error is the log. 0 after a clean end;
 * -errno when it could not start, or the host never came up.
 */
int supervisor_run(const struct host_options *options, int ready_fd, struct err *err);

#endif
