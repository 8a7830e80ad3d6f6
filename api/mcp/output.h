/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes lines to a descriptor whose reader may be slow: it waits for room, but no longer than
 * until it is told to stop. It never changes the descriptor's flags, which others may share.
 */
#ifndef SKILLVM_API_MCP_OUTPUT_H
#define SKILLVM_API_MCP_OUTPUT_H

#include <stdatomic.h>
#include <stddef.h>

struct output {
    int fd;
    int stop_fd; /* readable: no waiting any more */
    atomic_bool
        broken; /* nobody reads, or a line was left unfinished: nothing more is written */
};

/* Writes all of it. From one thread at a time. */
void output_write(struct output *out, const char *data, size_t len);

#endif
