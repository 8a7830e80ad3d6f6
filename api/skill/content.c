/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/content.h"

#include "base/fd.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static int on_begin(void *user, const struct tar_header *header)
{
    struct content_walk *walk = user;

    int r = walk->each ? walk->each(walk->user, header) : 0;

    walk->inside = header->type == TAR_FILE &&
                   (r > 0 || (walk->path && strcmp(header->path, walk->path) == 0));
    return r < 0 ? r : 0;
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct content_walk *walk = user;

    return walk->inside ? buf_append(walk->out, data, len) : 0;
}

static int on_end(void *user)
{
    struct content_walk *walk = user;

    walk->found |= walk->inside;
    walk->inside = false;
    return 0;
}

/* Headers and the file go through the reader block by block. */
static int read_blocks(int tar_fd, struct tar_reader *reader, struct content_walk *walk,
                       struct err *err)
{
    uint8_t window[16 * 1024];
    uint64_t from = 0, at = 0;
    size_t have = 0;

    while (!walk->found || walk->each) {
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
        walk->at = at + TAR_BLOCK;
        r = tar_reader_push(reader, window + (at - from), TAR_BLOCK, err);
        if (r < 0)
            return r;
        at += TAR_BLOCK;
        if (!walk->inside)
            at += tar_reader_skip(reader);
    }
    return 0;
}

int content_walk(int tar_fd, struct content_walk *walk, struct err *err)
{
    static const struct tar_ops ops = {on_begin, on_data, on_end};
    struct tar_reader *reader = tar_reader_create(&ops, walk);
    int r = reader ? read_blocks(tar_fd, reader, walk, err) : -ENOMEM;

    tar_reader_destroy(reader);
    return r;
}

int skill_content_read(int tar_fd, const char *path, struct buf *out, struct err *err)
{
    struct content_walk walk = {.path = path, .out = out};
    int r = content_walk(tar_fd, &walk, err);

    if (r == 0 && !walk.found)
        return err_set(err, ENOENT, "there is no such file in the skill");
    if (r == -EPROTO)
        r = -EINVAL;
    return r < 0 ? err_set_errno(err, -r, "cannot read the stored skill") : 0;
}

int skill_content_read_entry(int tar_fd, const struct archive_entry_info *entry,
                             struct buf *out, struct err *err)
{
    const size_t len = (size_t)entry->size;
    ssize_t n;
    int r;

    if (entry->type != ARCHIVE_ENTRY_FILE)
        return err_set(err, ENOENT, "there is no such file in the skill");
    r = buf_reserve(out, len);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the stored skill");
    n = fd_pread_full(tar_fd, out->data + out->len, len, entry->offset);
    if (n != (ssize_t)len)
        return err_set_errno(err, n < 0 ? (int)-n : EINVAL, "cannot read the stored skill");
    out->len += len;
    return 0;
}
