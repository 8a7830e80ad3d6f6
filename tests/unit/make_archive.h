/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives made for a test. Include it after cmocka.h, in one .c of a test program.
 */
#ifndef SKILLVM_TESTS_UNIT_MAKE_ARCHIVE_H
#define SKILLVM_TESTS_UNIT_MAKE_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/mman.h>

enum kind { ZIP, TAR, TAR_GZ, TAR_XZ, TAR_ZSTD };

struct member {
    const char *path;
    const char *content; /* NULL: an empty file */
    const char *link;    /* a symbolic link */
    const char *hard;    /* a hard link */
    unsigned type;       /* AE_IF…; 0 is AE_IFREG */
    unsigned mode;       /* 0: 0644 */
    size_t zeros;        /* content of that many zero bytes */
};

/* An anonymous file with an archive of the members up to one without a path. */
static int make_archive(enum kind kind, const struct member *members)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    static char zeros[65536];

    assert_true(fd >= 0);
    if (kind == ZIP)
        archive_write_set_format_zip(a);
    else
        archive_write_set_format_pax_restricted(a);
    if (kind == TAR_GZ)
        archive_write_add_filter_gzip(a);
    if (kind == TAR_XZ)
        archive_write_add_filter_xz(a);
    if (kind == TAR_ZSTD)
        assert_int_equal(archive_write_add_filter_zstd(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (; members->path; members++) {
        struct archive_entry *entry = archive_entry_new();
        size_t len = members->content ? strlen(members->content) : members->zeros;
        archive_entry_set_pathname(entry, members->path);
        archive_entry_set_filetype(entry, members->type ? members->type : AE_IFREG);
        archive_entry_set_perm(entry, members->mode ? (mode_t)members->mode : 0644);
        archive_entry_set_mtime(entry, 1700000000, 5);
        archive_entry_set_uid(entry, 1000);
        if (members->link) {
            archive_entry_set_filetype(entry, AE_IFLNK);
            archive_entry_set_symlink(entry, members->link);
            len = 0;
        }
        if (members->hard) {
            archive_entry_set_hardlink(entry, members->hard);
            len = 0;
        }
        archive_entry_set_size(entry, (la_int64_t)len);
        assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN);
        if (members->content)
            archive_write_data(a, members->content, len);
        for (size_t left = members->content ? 0 : len; left;) {
            size_t n = left < sizeof(zeros) ? left : sizeof(zeros);
            archive_write_data(a, zeros, n);
            left -= n;
        }
        archive_entry_free(entry);
    }
    archive_write_close(a);
    archive_write_free(a);
    return fd;
}

#endif
