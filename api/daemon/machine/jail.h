/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of skillvm-jail (vmm/jail/jail.h), by which all machines are started. Where
 * that process ends, the machines in its namespaces do too, and the next start makes another,
 * unless the daemon has given up what that takes.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_JAIL_H
#define SKILLVM_API_DAEMON_MACHINE_JAIL_H

#include "base/err.h"
#include "vmm/jail/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jail;

/* Texts are borrowed for the call. */
struct jail_config {
    const char *program; /* skillvm-jail */
    const char *machine; /* skillvm-vmm */
    uint32_t layers;     /* wanted, a bit for each of enum jail_layer; JAIL_ALL but for tests */
    bool strict;         /* jail_open fails where one of them is missing */
};

/* A machine's process and the cell that it has. */
struct jailed {
    pid_t pid;
    uint32_t cell;
    int weight_fd; /* owned by the caller: cpu.weight of its cgroup, which says 100; or -1 */
};

/*
 * Starts the process. 0 or -errno, where strict with the layers that are missing and why. From
 * then on the caller, unless it is root, has no CAP_SETUID and no CAP_SETGID, which only the
 * jail has a use for: it is the only thread of its process.
 */
int jail_open(const struct jail_config *config, struct jail **ret, struct err *err);

/*
 * Starts a machine. request has its arguments, fds are borrowed: standard error, then those
 * from JAIL_FD_FIRST on. 0, with a child of the daemon's that is reaped, and
 * whose weight is what it was, before jail_release_cell; -errno; -EAGAIN where all cells have
 * machines.
 */
int jail_start(struct jail *jail, struct jail_request *request, const int *fds, size_t n_fds,
               struct jailed *ret, struct err *err);
/*
 * Whether memory ended the machine of a cell, which was reaped and has its cell yet; told once.
 * JAIL_MEMORY_ENOUGH also where there are no limits, or the process has gone.
 */
enum jail_memory jail_look(struct jail *jail, uint32_t cell);
/* The cell's machine was reaped. Never waits. */
void jail_release_cell(struct jail *jail, uint32_t cell);

/*
 * -ECHILD where no machine starts any more: the process has ended, and another would need what
 * jail_open gave up. The daemon was sent a SIGTERM then, and is to be started again. 0: one
 * may.
 */
int jail_check(const struct jail *jail, struct err *err);

/* Why a layer is missing, as of the first process; NULL: it is there. Text of the jail's. */
const char *jail_missing(const struct jail *jail, enum jail_layer layer);

/*
 * Ends the process, and has what was made for it removed. No machine is left, or all end. NULL
 * is nothing.
 */
void jail_close(struct jail *jail);

#endif
