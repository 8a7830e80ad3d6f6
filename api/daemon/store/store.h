/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data folder: its lock, its subfolders, and what a daemon that died left in it.
 */
#ifndef SKILLVM_API_DAEMON_STORE_STORE_H
#define SKILLVM_API_DAEMON_STORE_STORE_H

#include "api/daemon/registry/registry.h"
#include "base/err.h"

/* Descriptors are owned; -1 where not open. */
struct store {
    int dir_fd;
    int lock_fd;
    int tmp_fd;
    int objects_fd;
    int snapshots_fd;
};

/*
 * Creates what is missing of the folder, locks it and empties its tmp. 0; -EBUSY when another
 * daemon has it; -errno. The caller closes *ret on success.
 */
int store_open(const char *path, struct store *ret, struct err *err);
void store_close(struct store *store);

/*
 * Removes objects that nothing names: a daemon that died between an object and its row left
 * them. Before anything is stored. 0 or -errno.
 */
int store_sweep(struct store *store, struct registry *registry, struct err *err);

#endif
