/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive from any bytes: what is taken has clean names, is its own canonical form, and
 * makes a disk.
 */
#include "api/skill/archive.h"
#include "api/skill/disk.h"
#include "api/skill/file_names.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct skill_archive *archive, int tar_fd)
{
    struct archive_limits limits = archive_limits_default;
    struct skill_archive again;
    char name[NAMES_PATH_MAX + 1];

    for (size_t i = 0; i < archive->n_entries; i++) {
        const char *path = archive->entries[i].path;
        if (names_clean(path, name, NULL) || strcmp(path, name) != 0)
            abort();
        if (skill_archive_find(archive, path) != &archive->entries[i])
            abort();
    }
    limits.ratio = 1u << 20;
    if (skill_archive_ingest(tar_fd, &limits, NULL, -1, &again, NULL))
        abort();
    if (strcmp(again.digest, archive->digest) != 0 || again.n_entries != archive->n_entries)
        abort();
    skill_archive_finish(&again);
}

static void check_disk(const struct skill_archive *archive, int tar_fd)
{
    _cleanup_skill_archive_ struct skill_archive again = {0};
    _cleanup_buf_ struct buf head = buf_init(1u << 20);
    struct skill skill;
    int r;

    if (skill_archive_reload(tar_fd, archive->digest, &again, &skill, NULL) < 0)
        return;
    skill_finish(&skill);
    r = skill_disk_put_head(&again, archive->tar_bytes, 0, &head);
    if (r < 0 ? r != -EINVAL : head.len % TAR_BLOCK != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct archive_limits limits = {
        .archive_bytes = 1u << 20,
        .expanded_bytes = 1u << 20,
        .entries = 50,
        .ratio = 100,
    };
    _cleanup_fd_ int in_fd = memfd_create("in", MFD_CLOEXEC);
    _cleanup_fd_ int tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive;
    struct err err = {0};

    if (in_fd < 0 || tar_fd < 0 || fd_write_full(in_fd, data, size))
        abort();
    if (skill_archive_ingest(in_fd, &limits, NULL, tar_fd, &archive, &err)) {
        if (!err.code || !err.message[0])
            abort();
        return 0;
    }
    check(&archive, tar_fd);
    check_disk(&archive, tar_fd);
    skill_archive_finish(&archive);
    return 0;
}
