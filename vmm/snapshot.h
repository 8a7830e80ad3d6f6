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
#include "vmm/private_pages.h"
#include "vmm/state.h"

/* The sections of a state file. */
const struct state_schema *snapshot_schema(void);

/* Reads the machine section: how much memory the guest has. 0 or -EINVAL. */
int snapshot_get_memory_bytes(const struct state *state, uint64_t *ret_bytes, struct err *err);

/*
 * Writes the machine, whose vCPU is paused and which has no guest connection, to
 * state_fd and memory_fd (both empty and open for reading and writing). Pages of zeros become
 * holes. 0 or -errno.
 */
int snapshot_save(struct machine *m, int state_fd, int memory_fd, struct err *err);

/*
 * The state file alone, in a writer that was zeroed and that the caller finishes. 0 or -errno.
 */
int snapshot_save_state(struct machine *m, struct state_writer *w, struct err *err);

/*
 * Loads the sections of the devices into fresh ones. Needs no KVM and does not touch guest
 * memory. 0 or -errno with err naming the section.
 */
int snapshot_load_devices(struct machine *m, const struct state *state, struct err *err);

/* Descriptors are borrowed and must outlive the machine. */
struct snapshot_source {
    int kvm_fd; /* as struct machine_config has it */
    int state_fd;
    int memory_fd;
    int image_fd;
    int vsock_fd;
    int console_fd;     /* -1: no serial port; else one that is as new */
    int working_set_fd; /* -1: none */
    int pagemap_fd;     /* private_pages_open_map, where the machine will be reset; or -1 */
    bool log_dirty;     /* the working set will be recorded */
};

/* A snapshot that stays at hand, so that the machine made from it can be put back to it. */
struct snapshot_origin {
    uint8_t *data; /* the state file; owned until the process ends */
    size_t len;
    struct state state;
    struct private_pages pages;
};

/*
 * Makes a machine from a snapshot, ready for vcpu_start. *origin, zeroed and at a fixed place,
 * is what snapshot_reset needs if source has a pagemap_fd. 0 or -errno; call machine_finish in
 * both cases.
 */
int snapshot_restore(struct machine *m, const struct snapshot_source *source,
                     struct snapshot_origin *origin, struct err *err);

/*
 * Puts a machine whose vCPU is paused back to its snapshot: memory, vCPU, interrupt chips,
 * clock and devices, with a new generation ID and vsock_fd (borrowed) as the new end of its
 * stream. It is then ready for vcpu_start. Allocates nothing. *ret_pages: pages put back.
 * 0; -errno, after which the guest must not run again.
 */
int snapshot_reset(struct machine *m, struct snapshot_origin *origin, int vsock_fd,
                   uint64_t *ret_pages, struct err *err);

#endif
