/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program of a machine from within the jail. */
#ifndef SKILLVM_VMM_JAIL_START_H
#define SKILLVM_VMM_JAIL_START_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "vmm/jail/jail.h"
#include "vmm/jail/limits.h"

struct start {
    int program_fd;
    int dev_fd;     /* of the folder /dev */
    int proc_fd;    /* of the folder /proc */
    int kvm_fd;     /* -1 until it could be opened */
    int *failure;   /* what a child says of itself, an errno; shared with it */
    bool own_users; /* a machine has the user id of its cell */
    pid_t first;    /* as of room_make */
    struct limits limits;
};

/*
 * Opens what machines are given, while there are names for it, and moves this process's own
 * descriptors away from the numbers that a machine's have. *ret_socket is socket_fd's new one.
 * 0 or -errno.
 */
int start_init(struct start *start, int program_fd, int socket_fd, int *ret_socket,
               struct err *err);

/*
 * Starts a machine with borrowed descriptors, as the child of this process's parent.
 * *ret_weight becomes its cgroup's cpu.weight, the caller's, where it has a cgroup.
 */
struct jail_reply start_machine(struct start *start, struct jail_request *request,
                                const int *fds, size_t n_fds, int *ret_weight);

#endif
