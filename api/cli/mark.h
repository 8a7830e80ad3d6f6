/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that name a process by its number and its start time. A number alone is given to
 * another process some day: what reads a mark must never take that one for the one it names.
 */
#ifndef SKILLVM_API_CLI_MARK_H
#define SKILLVM_API_CLI_MARK_H

#include <sys/types.h>

/*
 * When a process started, in clock ticks since the machine did; 0 when it does not run, or only
 * waits for wait().
 */
unsigned long long mark_start_time(pid_t pid);
/*
 * Writes a mark for pid. 0; -EEXIST when the file names another process that runs; -ESRCH when
 * pid does not run; -errno.
 */
int mark_write(const char *path, pid_t pid);
/* The process that the file names, if it still runs; else 0. */
pid_t mark_read(const char *path);
/* Removes the file unless the process that it names runs. */
void mark_remove_stale(const char *path);

#endif
