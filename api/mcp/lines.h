/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a stream into lines. A line over the limit is reported once and skipped, so that what
 * follows it is still understood.
 */
#ifndef SKILLVM_API_MCP_LINES_H
#define SKILLVM_API_MCP_LINES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct lines {
    struct buf line;
    bool skipping; /* the rest of a line that was too long */
    /* One line without its end; NULL with len 0 for one that was too long. */
    void (*on_line)(void *ctx, const char *line, size_t len);
    void *ctx;
};

/* max bounds a line, in bytes. */
void lines_init(struct lines *l, size_t max,
                void (*on_line)(void *ctx, const char *line, size_t len), void *ctx);
/* Takes the next bytes. 0 or -ENOMEM. */
int lines_push(struct lines *l, const void *data, size_t len);
void lines_finish(struct lines *l);

#endif
