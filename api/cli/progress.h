/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress with elapsed time on standard error for what takes over two seconds: one line that
 * changes on a terminal, a line now and then elsewhere.
 */
#ifndef SKILLVM_API_CLI_PROGRESS_H
#define SKILLVM_API_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    uint64_t began_ns;
    uint64_t shown_ns; /* 0: nothing yet */
    bool terminal;
};

void progress_begin(struct progress *p);
/* Call often. Shows "skillvm: <text>, N s" when it is due. */
void progress_tick(struct progress *p, const char *text);
/* Takes an open line off the terminal. */
void progress_end(struct progress *p);

#endif
