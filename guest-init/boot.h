/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PID 1 does for the whole machine before any skill: kernel file systems, device nodes,
 * the loopback interface, no capability for what it starts. It must never make a device node
 * that a skill does not need.
 */
#ifndef SKILLVM_GUEST_BOOT_H
#define SKILLVM_GUEST_BOOT_H

#include "base/err.h"

/* Makes the machine ready for sandbox_open. 0, or -errno with err set. Needs to be PID 1. */
int boot_machine(struct err *err);

#endif
