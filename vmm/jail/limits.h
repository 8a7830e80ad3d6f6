/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine may take of the host: a cgroup for each cell, in one that is the daemon's.
 *
 *   BASE                       the daemon's, and nobody else's, when it starts
 *   BASE/skillvm-daemon        where it is from then on
 *   BASE/skillvm-machines/jail what starts machines
 *   BASE/skillvm-machines/N    the machine of cell N
 *
 * A cell's stays for the next machine. All go when the daemon ends; those of one that could not
 * remove them go when the next one begins in the same place.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst.
 */
#ifndef SKILLVM_VMM_JAIL_LIMITS_H
#define SKILLVM_VMM_JAIL_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/jail/jail.h"

struct limits {
    int base_fd;                 /* of the folder BASE */
    int machines_fd;             /* of BASE/skillvm-machines; -1: there are no limits */
    uint64_t memory[JAIL_CELLS]; /* what a cell's cgroup has, bytes; 0: it was not looked at */
};

/*
 * Looks whether the daemon, this process's parent, may have limits, and changes nothing. NULL;
 * or what is missing, with errno or with 0 in it.
 */
const char *limits_find(struct limits *limits);

/* Moves the daemon and this process to where they belong, before there are namespaces. The
 * same.
 */
const char *limits_enter(struct limits *limits);

/* The same, when there are, or cannot be. */
const char *limits_begin(struct limits *limits);

/*
 * The folder of the cgroup of a cell in which no machine is, for one that may take memory_max
 * bytes: what the last one has left running there is ended. 0, with a descriptor of the
 * caller's, or -errno; -EBUSY where somebody does not go.
 */
int limits_open_cell(struct limits *limits, uint32_t cell, uint64_t memory_max, int *ret);

/*
 * Whether the last machine of a cell, in which nobody is any more, was ended for memory. It is
 * told once: the next one has a cgroup that counts from 0.
 */
enum jail_memory limits_look(struct limits *limits, uint32_t cell);

/* Its cpu.weight, for writing: a descriptor of the caller's, or -errno. */
int limits_open_weight(int cell_fd);

/* Moves this process into one. 0; -1 with errno. */
int limits_join(int cell_fd);

/*
 * Takes back what was made for the daemon, this process's parent, which starts no machine any
 * more: ends those that are left, removes all cgroups, and moves both to BASE. Where others
 * have a cgroup in BASE the daemon stays in its own. NULL; or what could not be done, with
 * errno or with 0 in it.
 */
const char *limits_leave(void);

#endif
