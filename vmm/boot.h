/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that boots a kernel, to make a snapshot of.
 */
#ifndef SKILLVM_VMM_BOOT_H
#define SKILLVM_VMM_BOOT_H

#include <stdint.h>

#include "base/err.h"
#include "vmm/machine.h"

/* Descriptors are borrowed and must outlive the machine, but for the first. */
struct boot_config {
    int kvm_fd; /* as struct machine_config has it */
    int kernel_fd;
    int image_fd;
    int vsock_fd;
    int console_fd; /* -1: a quiet kernel and no serial port */
    uint64_t memory_bytes;
};

/*
 * Makes the machine and puts its vCPU at the kernel's entry. 0 or -errno; call machine_finish
 * in both cases.
 */
int boot_machine(struct machine *m, const struct boot_config *config, struct err *err);

#endif
