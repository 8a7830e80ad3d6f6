/* SPDX-License-Identifier: Apache-2.0 */
/* Where this process's program is, and the ends of its children. */
#ifndef SKILLVM_BASE_PROCESS_H
#define SKILLVM_BASE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* The folder of the program that runs. 0 or -errno. */
int process_folder(char *ret, size_t size);
/* Waits for the end of a child, whatever interrupts it. How it ended, as of waitpid(2). */
int process_reap(pid_t pid);

#endif
