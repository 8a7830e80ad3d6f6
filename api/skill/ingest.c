/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/ingest.h"

#include "api/skill/file_names.h"
#include "api/skill/source.h"
#include "api/skill/zip_directory.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tar_block.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

CLEANUP_WITH(struct source *, source_destroy)
CLEANUP_WITH(struct archive *, archive_read_free)

#define TARGET_MAX NAMES_PATH_MAX
/* Items in an entry's lists of access, for which nobody asks: what they cost grows by their
 * square. */
#define ACCESS_MAX 64

int ingest_add(struct ingest *in, const struct archive_entry_info *entry, struct err *err)
{
    if (in->archive.n_entries >= in->limits->entries)
        return err_set(err, EFBIG, "the archive has more than %u entries", in->limits->entries);
    return skill_archive_add(&in->archive, entry);
}

int ingest_grow(const struct ingest *in, uint64_t bytes, struct err *err)
{
    return in->spool ? in->spool->grow(in->spool->ctx, bytes, err) : 0;
}

int ingest_read_content(const struct ingest *in, uint64_t offset, void *data, size_t len,
                        struct err *err)
{
    ssize_t n = fd_pread_full(in->spool_fd, data, len, offset);

    if (n == (ssize_t)len)
        return 0;
    return err_set_errno(err, n < 0 ? (int)-n : EIO, "cannot read spooled content");
}

/* What a failed libarchive call means to the one who sent the archive. */
static int explain(struct archive *a, const struct source *source, const char *what,
                   struct err *err)
{
    const char *text = archive_error_string(a);
    int result = source_failure(source, err);

    if (result < 0)
        return result;
    if (archive_errno(a) == ENOMEM)
        return -ENOMEM;
    if (archive_errno(a) == EIO)
        return err_set_errno(err, EIO, "cannot read the archive");
    if (archive_format(a) == 0 && source_is_zip(source))
        return err_set(err, EINVAL, "the zip archive is damaged or cut short");
    if (archive_format(a) == 0 && source_is_packed(source))
        return err_set(err, EINVAL,
                       "what is compressed must be a tar archive, compressed once");
    if (archive_format(a) == 0)
        return err_set(err, EINVAL, "this is neither a zip nor a tar archive");
    return err_set(err, EINVAL, "%s: %s", what, text ? text : "damaged");
}

/* Adds to the spool what may be added. */
static int keep(struct ingest *in, const char *data, size_t len, struct err *err)
{
    uint64_t at = in->archive.expanded_bytes;
    int result;

    in->archive.expanded_bytes += len;
    result = source_check_growth(in->limits, in->archive_bytes, at + len, err);
    if (result < 0)
        return result;
    result = ingest_grow(in, len, err);
    if (result < 0)
        return result;
    result = fd_pwrite_full(in->spool_fd, data, len, at);
    return result < 0 ? err_set_errno(err, -result, "cannot spool the archive") : 0;
}

int ingest_add_file(struct ingest *in, const struct archive_entry_info *entry, const void *data,
                    struct err *err)
{
    struct archive_entry_info placed = *entry;
    int result;

    placed.offset = in->archive.expanded_bytes;
    result = keep(in, data, (size_t)entry->size, err);
    return result < 0 ? result : ingest_add(in, &placed, err);
}

static int read_content(struct ingest *in, struct archive *a, const struct source *source,
                        struct archive_entry_info *entry, struct err *err)
{
    char chunk[32 * 1024];

    entry->offset = in->archive.expanded_bytes;
    for (;;) {
        la_ssize_t n = archive_read_data(a, chunk, sizeof(chunk));
        if (n == 0)
            break;
        if (n == ARCHIVE_RETRY)
            continue;
        if (n < 0) {
            int result = explain(a, source, "the archive is damaged", err);
            err_prefix(err, "entry \"%s\"", names_shown(entry->path).text);
            return result;
        }
        int result = keep(in, chunk, (size_t)n, err);
        if (result < 0)
            return result;
    }
    entry->size = in->archive.expanded_bytes - entry->offset;
    return 0;
}

static int check_target(const char *raw, const char *path, struct err *err)
{
    if (!raw || !raw[0] || strlen(raw) > TARGET_MAX || !utf8_valid(raw, strlen(raw)))
        return names_refuse(err, EINVAL, path,
                            "the link's target is empty, too long or not UTF-8");
    if (raw[0] == '/')
        return names_refuse(err, EINVAL, path, "the link to \"%s\" leaves the skill",
                            names_shown(raw).text);
    return 0;
}

/* Finder's leavings in zips are no part of any skill. */
static bool is_litter(const char *path)
{
    return strcmp(path, "__MACOSX") == 0 || strncmp(path, "__MACOSX/", 9) == 0 ||
           strcmp(basename(path), ".DS_Store") == 0;
}

static int read_file(struct ingest *in, struct archive *a, const struct source *source,
                     struct archive_entry *raw, struct archive_entry_info *entry,
                     struct err *err)
{
    entry->executable = (archive_entry_perm(raw) & 0111) != 0;
    /* A header may lie, but one that admits too much need not be read. */
    if (archive_entry_size_is_set(raw) &&
        (uint64_t)archive_entry_size(raw) > in->limits->expanded_bytes)
        return names_refuse(err, EFBIG, entry->path,
                            "the archive expands to more than %llu bytes",
                            (unsigned long long)in->limits->expanded_bytes);
    return read_content(in, a, source, entry, err);
}

static int read_entry(struct ingest *in, struct archive *a, const struct source *source,
                      struct archive_entry *raw, struct err *err)
{
    char path[NAMES_PATH_MAX + 1], target[NAMES_PATH_MAX + 1];
    const char *name = archive_entry_pathname(raw);
    const char *hard_link = archive_entry_hardlink(raw);
    struct archive_entry_info entry = {.path = path, .type = ARCHIVE_ENTRY_FILE};
    int result;

    if (!name)
        return err_set(err, EINVAL, "an entry's name is not UTF-8");
    result = names_clean(name, path, err);
    if (result < 0)
        return result;
    if (!path[0] || is_litter(path))
        return 0;
    if (archive_entry_is_encrypted(raw))
        return names_refuse(err, EINVAL, path, "encrypted archives are refused");
    result = zip_method_check(a, path, err);
    if (result < 0)
        return result;
    if (hard_link) {
        entry.target = target;
        entry.hard_link = true;
        result = names_clean(hard_link, target, err);
    } else if (archive_entry_filetype(raw) == AE_IFDIR) {
        entry.type = ARCHIVE_ENTRY_DIR;
    } else if (archive_entry_filetype(raw) == AE_IFREG) {
        result = read_file(in, a, source, raw, &entry, err);
    } else if (archive_entry_filetype(raw) == AE_IFLNK) {
        entry.type = ARCHIVE_ENTRY_LINK;
        entry.target = (char *)(uintptr_t)archive_entry_symlink(raw);
        result = check_target(entry.target, path, err);
    } else {
        result = names_refuse(err, EINVAL, path, "devices, pipes and sockets are refused");
    }
    return result < 0 ? result : ingest_add(in, &entry, err);
}

static int check_access(struct archive_entry *raw, struct err *err)
{
    return archive_entry_acl_count(raw, ARCHIVE_ENTRY_ACL_TYPE_POSIX1E |
                                            ARCHIVE_ENTRY_ACL_TYPE_NFS4) > ACCESS_MAX
               ? err_set(err, EFBIG, "an entry has more than %d items of access control",
                         ACCESS_MAX)
               : 0;
}

/* The next header, before which what is left of an entry is passed over. */
static int next_header(struct archive *a, struct source *source, bool has_entry,
                       struct archive_entry **ret)
{
    int status = has_entry ? archive_read_data_skip(a) : ARCHIVE_OK;

    if (status < ARCHIVE_WARN)
        return status;
    source_expect_header(source, true);
    status = archive_read_next_header(a, ret);
    source_expect_header(source, false);
    return status;
}

/*
 * Reads one, and counts what it takes of what is left of the archive's bytes: no two entries of
 * a zip are read from the same ones, or few of them would be work without end.
 */
static int read_counted(struct ingest *in, struct archive *a, const struct source *source,
                        struct archive_entry *raw, uint64_t *left, struct err *err)
{
    const la_int64_t before = archive_filter_bytes(a, 0);
    int result = read_entry(in, a, source, raw, err);
    const uint64_t taken = (uint64_t)(archive_filter_bytes(a, 0) - before);

    if (result < 0)
        return result;
    if (taken > *left)
        return err_set(err, EINVAL, "entries of the zip archive lie over each other");
    *left -= taken;
    return 0;
}

/* left: how many bytes of the archive its entries may take. */
static int read_entries(struct ingest *in, struct archive *a, struct source *source,
                        uint64_t left, struct err *err)
{
    uint64_t seen = 0;
    bool has_entry = false;

    for (;;) {
        struct archive_entry *raw;
        int status = next_header(a, source, has_entry, &raw);

        has_entry = status == ARCHIVE_OK || status == ARCHIVE_WARN;
        if (status == ARCHIVE_EOF)
            return source_failure(source, err);
        if (status < ARCHIVE_WARN)
            return explain(a, source, "the archive is damaged", err);
        int result = check_access(raw, err);
        if (result < 0)
            return result;
        if (status == ARCHIVE_RETRY)
            continue;
        source_count_entry(source);
        if (++seen > in->limits->entries)
            return err_set(err, EFBIG, "the archive has more than %u entries",
                           in->limits->entries);
        result = read_counted(in, a, source, raw, &left, err);
        if (result < 0)
            return result;
    }
}

/*
 * The one format that it has. No filters: the source has unpacked what there was. Zips by their
 * central directory only, which was looked at before: without one, a reader unpacks what it
 * skips to find its end.
 */
static int choose_format(const struct ingest *in, int in_fd, uint64_t size, struct archive *a,
                         const struct source *source, struct err *err)
{
    uint32_t n;
    int result;

    /* What does not begin with a tar's header is a zip or nothing. */
    if (source_is_packed(source) || source_is_tar(source))
        return archive_read_support_format_tar(a) == ARCHIVE_OK ? 0 : -ENOMEM;
    result = zip_directory_check(in_fd, size, in->limits->entries, &n, err);
    if (result == -ENOENT)
        return explain(a, source, "the archive cannot be read", err);
    if (result < 0)
        return result;
    return archive_read_support_format_zip_seekable(a) == ARCHIVE_OK ? 0 : -ENOMEM;
}

static int read_all(struct ingest *in, int in_fd, uint64_t size, struct archive *a,
                    struct source *source, struct err *err)
{
    int result = choose_format(in, in_fd, size, a, source, err);

    if (result < 0)
        return result;
    if (source_open(source, a) != ARCHIVE_OK)
        return explain(a, source, "the archive cannot be read", err);
    /* A tar's are read from its start to its end. */
    return read_entries(in, a, source,
                        source_is_packed(source) || source_is_tar(source) ? UINT64_MAX : size,
                        err);
}

static int read_archive(struct ingest *in, int in_fd, uint64_t size, struct err *err)
{
    _cleanup_(source_destroy) struct source *source = NULL;
    _cleanup_(archive_read_free) struct archive *a = NULL;
    int result;

    if (in->spool_fd < 0)
        in->spool_fd = in->spool ? in->spool->fd : memfd_create("skill-spool", MFD_CLOEXEC);
    if (in->spool_fd < 0)
        return err_set_errno(err, errno, "cannot make a spool file");
    result = source_create(in_fd, size, in->limits, &source, err);
    if (result < 0)
        return result;
    a = archive_read_new();
    return a ? read_all(in, in_fd, size, a, source, err) : -ENOMEM;
}

void ingest_close_spool(struct ingest *in)
{
    if (!in->spool)
        fd_close(&in->spool_fd);
}

int ingest_read_more(struct ingest *in, int in_fd, struct err *err)
{
    struct stat st;

    if (fstat(in_fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read the archive");
    if (st.st_size == 0)
        return err_set(err, EINVAL, "the archive is empty");
    in->archive_bytes += (uint64_t)st.st_size;
    if (in->archive_bytes > in->limits->archive_bytes)
        return err_set(err, EFBIG, "the archive is over %llu bytes (limits.archive_bytes)",
                       (unsigned long long)in->limits->archive_bytes);

    /* Names are UTF-8 whatever locale the process has: libarchive converts by the thread's. */
    locale_t before = uselocale(names_locale());
    int result = read_archive(in, in_fd, (uint64_t)st.st_size, err);

    uselocale(before);
    return result;
}

int ingest_read(int in_fd, const struct archive_limits *limits,
                const struct archive_spool *spool, struct ingest *ret, struct err *err)
{
    struct ingest in = {.limits = limits, .spool = spool, .spool_fd = -1};
    int result = ingest_read_more(&in, in_fd, err);

    if (result < 0) {
        skill_archive_finish(&in.archive);
        ingest_close_spool(&in);
    } else {
        *ret = in;
    }
    return result == -ENOMEM ? err_no_memory(err) : result;
}
