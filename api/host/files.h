/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of one software host below <data directory>/softhost. A supervisor holds the lock
 * for as long as it lives; everything else here belongs to whoever holds it.
 */
#ifndef SKILLVM_API_HOST_FILES_H
#define SKILLVM_API_HOST_FILES_H

#include "api/host/host.h"
#include "api/host/wire.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILES_PATH_MAX 4096u

/* Makes <data_dir>/softhost (0700) and what is missing above it. 0 or -errno. */
int files_make_dir(const char *data_dir, struct err *err);

/*
 * Writes "<data_dir>/softhost/<name>" to out (FILES_PATH_MAX bytes). 0, or -ENAMETOOLONG with
 * out untouched.
 */
int files_path(const char *data_dir, const char *name, char *out, struct err *err);

/*
 * Opens one of the files (O_CLOEXEC; a new one is 0600), and writes its path to path as
 * files_path() does. The descriptor or -errno.
 */
int files_open(const char *data_dir, const char *name, int flags, char *path, struct err *err);

/*
 * Takes the lock. 0 with the descriptor (owned, O_CLOEXEC; closing it releases) in *ret_fd;
 * -EALREADY when another process holds it.
 */
int files_lock(const char *data_dir, int *ret_fd, struct err *err);

/* The process that holds the lock, 0 when none does, -errno when it cannot be asked. */
pid_t files_lock_holder(const char *data_dir);

/*
 * Makes the sparse data disk when there is none. It never shrinks or empties one. -ENOSPC where
 * the file system has no room for what a start writes to it.
 */
int files_make_disk(const char *data_dir, uint64_t size_bytes, struct err *err);

/*
 * Whether a disk of which used bytes are there can grow as a start needs it. One that cannot
 * stops the machine in the middle, without a word.
 */
int files_check_space(const char *data_dir, uint64_t used, uint64_t available, struct err *err);

/*
 * Whether this user has room for what a machine that found none goes on with, and whether there
 * is next to none. True and false where it cannot be told.
 */
bool files_has_room(const char *data_dir);
bool files_is_full(const char *data_dir);

/* Draws a new token and writes it (0600). */
int files_make_token(const char *data_dir, uint8_t *ret_token, struct err *err);

/* Writes the status for others to read, whole or not at all. log_path and state are derived. */
int files_write_status(const char *data_dir, const struct host_status *status);

/*
 * Opens the log for appending (O_CLOEXEC), after moving one of more than max_bytes to log.old.
 * The descriptor or -errno.
 */
int files_open_log(const char *data_dir, uint64_t max_bytes);

#endif
