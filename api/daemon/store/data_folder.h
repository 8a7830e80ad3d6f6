/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data folder: its lock, its subfolders, and what a daemon that died left in tmp.
 */
#ifndef SKILLVM_API_DAEMON_STORE_DATA_FOLDER_H
#define SKILLVM_API_DAEMON_STORE_DATA_FOLDER_H

#include "base/err.h"

/* Descriptors are owned; -1 where not open. */
struct data_folder {
    int dir_fd;
    int lock_fd;
    int tmp_fd;
    int objects_fd; /* the store's alone */
    int snapshots_fd;
};

/*
 * Creates what is missing of the folder, locks it and empties its tmp. 0; -EBUSY when another
 * daemon has it; -errno. The caller closes *ret on success.
 */
int data_folder_open(const char *path, struct data_folder *ret, struct err *err);
void data_folder_close(struct data_folder *folder);

#endif
