/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves a stopped machine to two files, `state` (vmm/state.h) and `memory`, and makes machines
 * from them, any number of times and in any process. Save changes nothing in the guest. What
 * the files say is checked as if the guest had written it.
 */
#ifndef SKILLVM_VMM_SNAPSHOT_H
#define SKILLVM_VMM_SNAPSHOT_H

#include <stddef.h>

#include "base/err.h"
#include "vmm/machine.h"
#include "vmm/state.h"

/* The sections of a state file. */
const struct state_schema *snapshot_schema(void);

/* What the machine section says. */
struct snapshot_machine {
    uint64_t memory_bytes;
    bool has_serial;
};
/* Reads the machine section. 0 or -EINVAL. */
int snapshot_get_machine(const struct state *state, struct snapshot_machine *ret_machine,
                         struct err *err);

/*
 * Writes the machine, whose vCPU thread is stopped and which has no guest connection, to
 * state_fd and memory_fd (both empty and open for reading and writing). Pages of zeros become
 * holes. 0 or -errno.
 */
int snapshot_save(struct machine *m, int state_fd, int memory_fd, struct err *err);

/*
 * Loads the sections of the devices into fresh ones. Needs no KVM and does not touch guest
 * memory. 0 or -errno with err naming the section.
 */
int snapshot_load_devices(struct machine *m, const struct state *state, struct err *err);

/* Descriptors are borrowed and must outlive the machine. */
struct snapshot_source {
    int state_fd;
    int memory_fd;
    int image_fd;
    int vsock_fd;
    int console_fd;     /* -1: no output */
    int working_set_fd; /* -1: none */
    bool log_dirty;     /* the working set will be recorded */
};

/*
 * Makes a machine from a snapshot, ready for vcpu_start. 0 or -errno; call machine_finish in
 * both cases.
 */
int snapshot_restore(struct machine *m, const struct snapshot_source *source, struct err *err);

#endif
