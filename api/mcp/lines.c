/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/lines.h"

#include <errno.h>
#include <string.h>

void lines_init(struct lines *l, size_t max,
                void (*on_line)(void *ctx, const char *line, size_t len), void *ctx)
{
    *l = (struct lines){.line = buf_init(max), .on_line = on_line, .ctx = ctx};
}

void lines_finish(struct lines *l)
{
    buf_finish(&l->line);
}

static void end_line(struct lines *l)
{
    const char *line = (const char *)l->line.data;
    size_t len = l->line.len;

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (!l->skipping && len > 0)
        l->on_line(l->ctx, line, len);
    l->skipping = false;
    buf_clear(&l->line);
}

int lines_push(struct lines *l, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        const char *feed = memchr(p, '\n', len);
        size_t part = feed ? (size_t)(feed - p) : len;
        int r = l->skipping ? 0 : buf_append(&l->line, p, part);

        if (r == -E2BIG) {
            l->skipping = true;
            buf_clear(&l->line);
            l->on_line(l->ctx, NULL, 0);
        } else if (r < 0) {
            return r;
        }
        if (feed) {
            end_line(l);
            part++;
        }
        p += part;
        len -= part;
    }
    return 0;
}
