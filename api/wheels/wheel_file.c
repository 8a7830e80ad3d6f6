/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/wheel_file.h"

#include "api/skill/file_names.h"
#include "api/skill/zip_directory.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

CLEANUP_WITH(struct archive *, archive_read_free)

/* The work of what is done for a wheel, for one entry, and for unpacking a byte of METADATA. */
#define OPEN_WORK     1024u
#define ENTRY_WORK    64u
#define BYTES_OF_WORK 4u

/* NAME-VERSION.dist-info/METADATA in the root. */
static bool is_metadata(const char *path)
{
    static const char end[] = ".dist-info/METADATA";
    const char *slash = path ? strchr(path, '/') : NULL;

    return slash && strlen(path) > sizeof(end) &&
           strcmp(path + strlen(path) - (sizeof(end) - 1), end) == 0 &&
           strcmp(slash, "/METADATA") == 0;
}

/* Its header, which is all that is looked at. */
static int read_header(struct archive *a, struct metadata *ret, uint64_t *work, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(METADATA_BYTES_MAX);
    char chunk[16 * 1024];
    la_ssize_t n;

    do {
        n = archive_read_data(a, chunk, sizeof(chunk));
        if (n > 0)
            (void)buf_append_clipped(&text, chunk, (size_t)n);
    } while ((n > 0 || n == ARCHIVE_RETRY) && text.len < METADATA_BYTES_MAX &&
             !memmem(text.data, text.len, "\n\n", 2));
    *work += text.len / BYTES_OF_WORK;
    if (text.error)
        return err_no_memory(err);
    if (n < 0 || text.len == 0)
        return err_set(err, EINVAL, "is damaged: its METADATA cannot be read");
    return metadata_parse((const char *)text.data, text.len, ret, err);
}

/* Before libarchive takes all of its directory into memory. */
static int check_directory(int fd, uint32_t max, uint64_t *work, struct err *err)
{
    struct err ignored = {0};
    struct stat st;
    uint32_t n = 0;
    int r = fstat(fd, &st) < 0
                ? -errno
                : zip_directory_check(fd, (uint64_t)st.st_size, max, &n, &ignored);

    *work += (uint64_t)n * ENTRY_WORK;
    if (r == -EFBIG)
        return err_set(err, EINVAL, "has more than %u entries (limits.packages_entries)", max);
    if (r == -EINVAL || r == -ENOENT)
        return err_set(err, EINVAL, "is no zip archive, or a damaged one");
    return r < 0 ? err_set_errno(err, -r, "cannot read the wheel") : 0;
}

static int find(struct archive *a, int fd, struct metadata *ret, uint64_t *work,
                struct err *err)
{
    struct archive_entry *entry;
    int status;

    if (archive_read_support_format_zip_seekable(a) != ARCHIVE_OK)
        return err_no_memory(err);
    if (archive_read_open_fd(a, fd, 16 * 1024) != ARCHIVE_OK)
        return err_set(err, EINVAL, "is no zip archive");
    while ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
           status == ARCHIVE_RETRY || status == ARCHIVE_WARN) {
        if (status != ARCHIVE_RETRY && is_metadata(archive_entry_pathname(entry))) {
            int r = zip_method_check(a, archive_entry_pathname(entry), err);

            return r < 0 ? r : read_header(a, ret, work, err);
        }
    }
    if (status != ARCHIVE_EOF)
        return err_set(err, EINVAL, "is no zip archive, or a damaged one");
    return err_set(err, EINVAL, "is no wheel: it has no NAME-VERSION.dist-info/METADATA");
}

int wheel_file_metadata(int fd, uint32_t entries_max, struct metadata *ret, uint64_t *ret_work,
                        struct err *err)
{
    _cleanup_(archive_read_free) struct archive *a = archive_read_new();
    locale_t before;
    int r;

    *ret_work = OPEN_WORK;
    r = a ? check_directory(fd, entries_max, ret_work, err) : err_no_memory(err);
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_set_errno(err, errno, "cannot read the wheel");
    before = uselocale(names_locale());
    r = find(a, fd, ret, ret_work, err);
    uselocale(before);
    return r;
}
