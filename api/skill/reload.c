/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/archive.h"

#include "api/skill/content.h"
#include "api/skill/frontmatter.h"
#include "api/skill/language.h"
#include "base/fd.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Far over what any limit on uploads allows: a stop for a damaged file only. */
#define ENTRIES_MAX 100000u

struct reload {
    struct content_walk walk;
    struct skill_archive *archive;
    int tar_fd;
};

static int add_entry(void *user, const struct tar_header *header)
{
    const struct reload *reload = user;
    struct skill_archive *archive = reload->archive;
    struct archive_entry_info entry = {
        .path = (char *)(uintptr_t)header->path,
        .type = (enum archive_entry_type)header->type,
        .size = header->size,
        .offset = reload->walk.at,
        .executable = header->type == TAR_FILE && (header->mode & 0111) != 0,
        .target = (char *)(uintptr_t)header->target,
    };
    size_t n = archive->n_entries, wanted;
    char text[ARCHIVE_BEGIN_MAX];
    ssize_t got;

    if (header->type != TAR_FILE && header->type != TAR_DIR && header->type != TAR_LINK)
        return -EINVAL;
    /* Sorted, or it is not ours and searching it would fail. */
    if (n > 0 && strcmp(archive->entries[n - 1].path, header->path) >= 0)
        return -EINVAL;
    if (n == ENTRIES_MAX)
        return -ENOMEM;
    wanted = skill_archive_begin_bytes(&entry);
    got = wanted > 0 ? fd_pread_full(reload->tar_fd, text, wanted, entry.offset) : 0;
    if (got < 0)
        return (int)got;
    entry.begins = language_of_text(text, (size_t)got);
    return skill_archive_add(archive, &entry);
}

/* skill_md's memory changes hands; it ends with a NUL. */
static int read_all(int tar_fd, struct skill_archive *archive, struct buf *skill_md,
                    struct skill *skill, struct err *err)
{
    struct reload reload = {
        .walk = {.path = "SKILL.md", .out = skill_md, .each = add_entry, .user = &reload},
        .archive = archive,
        .tar_fd = tar_fd};
    int result = content_walk(tar_fd, &reload.walk, err);

    if (result < 0)
        return result;
    if (!buf_cstr(skill_md))
        return -ENOMEM;
    archive->skill_md = (char *)skill_md->data;
    archive->skill_md_len = skill_md->len;
    *skill_md = buf_init(0);
    result = frontmatter_parse(archive->skill_md, archive->skill_md_len, skill, err);
    if (result < 0 || skill->name)
        return result;
    skill->name = strdup("unnamed-skill");
    if (!skill->name)
        skill_finish(skill);
    return skill->name ? 0 : -ENOMEM;
}

int skill_archive_reload(int tar_fd, const char *digest, struct skill_archive *ret_archive,
                         struct skill *ret_skill, struct err *err)
{
    struct skill_archive archive = {0};
    _cleanup_buf_ struct buf skill_md = buf_init(FRONTMATTER_FILE_MAX);
    int result = read_all(tar_fd, &archive, &skill_md, ret_skill, err);

    if (result == 0) {
        strncpy(archive.digest, digest, SHA256_HEX_SIZE - 1);
        *ret_archive = archive;
        return 0;
    }
    skill_archive_finish(&archive);
    if (result == -EPROTO || result == -EINVAL || result == -E2BIG)
        return err_set(err, EINVAL, "the stored skill is damaged");
    return err_set_errno(err, -result, "cannot read the stored skill");
}
