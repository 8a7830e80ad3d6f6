/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QEMU's monitor (QMP), for one thing: that it stopped the machine, as a write to the data disk
 * found no room on this machine's, and goes on when it is told to. Nothing is lost by that.
 * It never asks for anything else, and never waits.
 */
#ifndef SKILLVM_API_HOST_MONITOR_H
#define SKILLVM_API_HOST_MONITOR_H

#include <stddef.h>

#define MONITOR_LINE_MAX 4096u

struct monitor {
    int fd; /* a stream, non-blocking; owned; -1: none, or it is over */
    size_t len;
    char line[MONITOR_LINE_MAX]; /* the beginning of one; what does not fit is left out */
};

#define MONITOR_NONE ((struct monitor){.fd = -1})

enum monitor_word { MONITOR_NOTHING, MONITOR_NO_ROOM, MONITOR_GOES_ON };

/* Reads what there is. The last word of it that says something. */
enum monitor_word monitor_run(struct monitor *m);
/* Has a machine that was stopped go on: what was to be written is tried again. */
void monitor_continue(struct monitor *m);
/* Safe on one that never began. */
void monitor_finish(struct monitor *m);

#endif
