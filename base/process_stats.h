/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of a process, from /proc: nothing here fails, what cannot be read is 0.
 */
#ifndef SKILLVM_BASE_PROCESS_STATS_H
#define SKILLVM_BASE_PROCESS_STATS_H

#include <stdint.h>
#include <sys/types.h>

struct process_memory {
    uint64_t virtual_bytes;
    uint64_t resident_bytes;
    uint64_t private_bytes; /* resident, and shared with no file: what it costs by itself */
};

/* Of a process of ours that is not reaped yet; pid 0 is this one. */
struct process_memory process_memory(pid_t pid);
/* User and system time of this process, without its children. */
uint64_t process_cpu_us(void);
/* Descriptors of this process: open ones, and how many it may have. */
uint64_t process_open_fds(void);
uint64_t process_max_fds(void);

#endif
