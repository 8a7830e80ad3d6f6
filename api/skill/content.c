/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/content.h"

#include "api/skill/tar.h"
#include "base/fd.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

struct search {
    const char *path;
    struct buf *out;
    bool inside;
    bool found;
};

static int on_begin(void *user, const struct tar_header *header)
{
    struct search *s = user;

    s->inside = header->type == TAR_FILE && strcmp(header->path, s->path) == 0;
    return 0;
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct search *s = user;

    return s->inside ? buf_append(s->out, data, len) : 0;
}

static int on_end(void *user)
{
    struct search *s = user;

    s->found |= s->inside;
    s->inside = false;
    return 0;
}

static int search(int tar_fd, struct tar_reader *reader, struct search *s, struct err *err)
{
    uint8_t window[16 * 1024];
    uint64_t from = 0, at = 0;
    size_t have = 0;

    while (!s->found) {
        int r;

        if (at < from || at + TAR_BLOCK > from + have) {
            ssize_t n = fd_pread_full(tar_fd, window, sizeof(window), at);

            if (n < 0)
                return (int)n;
            if (n < (ssize_t)TAR_BLOCK)
                return tar_reader_complete(reader) ? 0 : -EINVAL;
            from = at;
            have = (size_t)n;
        }
        r = tar_reader_push(reader, window + (at - from), TAR_BLOCK, err);
        if (r < 0)
            return r;
        at += TAR_BLOCK;
        if (!s->inside)
            at += tar_reader_skip(reader);
    }
    return 0;
}

int skill_content_read(int tar_fd, const char *path, struct buf *out, struct err *err)
{
    static const struct tar_ops ops = {on_begin, on_data, on_end};
    struct search s = {.path = path, .out = out};
    struct tar_reader *reader = tar_reader_create(&ops, &s);
    int r = reader ? search(tar_fd, reader, &s, err) : -ENOMEM;

    tar_reader_destroy(reader);
    if (r == 0 && !s.found)
        return err_set(err, ENOENT, "there is no such file in the skill");
    if (r == -EPROTO)
        r = -EINVAL;
    return r < 0 ? err_set_errno(err, -r, "cannot read the stored skill") : 0;
}
