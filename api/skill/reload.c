/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/archive.h"

#include "api/skill/frontmatter.h"
#include "api/skill/tar.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far over what any limit on uploads allows: a stop for a damaged file only. */
#define ENTRIES_MAX 100000u

struct reload {
    struct skill_archive archive;
    size_t cap;
    struct buf skill_md;
    bool in_skill_md;
};

static int on_begin(void *user, const struct tar_header *header)
{
    struct reload *load = user;
    struct skill_archive *archive = &load->archive;
    struct archive_entry_info entry = {
        .size = header->size,
        .executable = header->type == TAR_FILE && (header->mode & 0111) != 0,
    };

    switch (header->type) {
    case TAR_FILE:
        entry.type = ARCHIVE_ENTRY_FILE;
        break;
    case TAR_DIR:
        entry.type = ARCHIVE_ENTRY_DIR;
        break;
    case TAR_LINK:
        entry.type = ARCHIVE_ENTRY_LINK;
        break;
    default:
        return -EINVAL;
    }
    /* Sorted, or it is not ours and searching it would fail. */
    if (archive->n_entries > 0 &&
        strcmp(archive->entries[archive->n_entries - 1].path, header->path) >= 0)
        return -EINVAL;
    if (archive->n_entries == load->cap) {
        size_t cap = load->cap ? 2 * load->cap : 16;
        struct archive_entry_info *entries =
            cap > ENTRIES_MAX ? NULL : reallocarray(archive->entries, cap, sizeof(*entries));
        if (!entries)
            return -ENOMEM;
        archive->entries = entries;
        load->cap = cap;
    }
    entry.path = strdup(header->path);
    entry.target = header->target ? strdup(header->target) : NULL;
    archive->entries[archive->n_entries++] = entry;
    load->in_skill_md =
        entry.type == ARCHIVE_ENTRY_FILE && strcmp(header->path, "SKILL.md") == 0;
    return entry.path && (!header->target || entry.target) ? 0 : -ENOMEM;
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct reload *load = user;

    return load->in_skill_md ? buf_append(&load->skill_md, data, len) : 0;
}

static int on_end(void *user)
{
    struct reload *load = user;

    load->in_skill_md = false;
    return 0;
}

static const struct tar_ops ops = {on_begin, on_data, on_end};

/* Headers and SKILL.md go through the reader block by block, other content is passed over. */
static int read_blocks(int tar_fd, struct tar_reader *reader, const struct reload *load,
                       struct err *err)
{
    uint8_t window[16 * 1024];
    uint64_t from = 0, at = 0;
    size_t have = 0;

    for (;;) {
        if (at < from || at + TAR_BLOCK > from + have) {
            ssize_t n = fd_pread_full(tar_fd, window, sizeof(window), at);
            if (n < 0)
                return (int)n;
            if (n < (ssize_t)TAR_BLOCK)
                return tar_reader_complete(reader) ? 0 : -EINVAL;
            from = at;
            have = (size_t)n;
        }
        int result = tar_reader_push(reader, window + (at - from), TAR_BLOCK, err);
        if (result < 0)
            return result;
        at += TAR_BLOCK;
        if (!load->in_skill_md)
            at += tar_reader_skip(reader);
    }
}

static int finish(struct reload *load, const char *digest, struct skill *skill, struct err *err)
{
    const char *text = buf_cstr(&load->skill_md);

    if (!text)
        return -ENOMEM;
    int result = frontmatter_parse(text, load->skill_md.len, skill, err);
    if (result < 0)
        return result;
    if (!skill->name)
        skill->name = strdup("unnamed-skill");
    if (!skill->name) {
        skill_finish(skill);
        return -ENOMEM;
    }
    /* The buffer's memory changes hands; it ends with a NUL. */
    load->archive.skill_md = (char *)load->skill_md.data;
    load->archive.skill_md_len = load->skill_md.len;
    load->skill_md = buf_init(0);
    strncpy(load->archive.digest, digest, SHA256_HEX_SIZE - 1);
    return 0;
}

static int read_all(int tar_fd, struct tar_reader *reader, struct reload *load,
                    const char *digest, struct skill *skill, struct err *err)
{
    int result = read_blocks(tar_fd, reader, load, err);

    return result < 0 ? result : finish(load, digest, skill, err);
}

int skill_archive_reload(int tar_fd, const char *digest, struct skill_archive *ret_archive,
                         struct skill *ret_skill, struct err *err)
{
    struct reload load = {.skill_md = buf_init(FRONTMATTER_FILE_MAX)};
    struct tar_reader *reader = tar_reader_create(&ops, &load);
    int result = reader ? read_all(tar_fd, reader, &load, digest, ret_skill, err) : -ENOMEM;

    if (result < 0)
        skill_archive_finish(&load.archive);
    else
        *ret_archive = load.archive;
    tar_reader_destroy(reader);
    buf_finish(&load.skill_md);
    if (result == -EPROTO || result == -EINVAL || result == -E2BIG)
        return err_set(err, EINVAL, "the stored skill is damaged");
    return result ? err_set_errno(err, -result, "cannot read the stored skill") : 0;
}
