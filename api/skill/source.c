/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/source.h"

#include "base/fd.h"
#include "base/tar_block.h"

#include <archive.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What any archive may expand to whatever its ratio: a page of text compresses well. */
#define RATIO_FROM_BYTES (1u << 20)
/* Of a tar, beside content: headers with long names and attributes, and what fills blocks. */
#define TAR_BYTES_PER_ENTRY 4096u
#define CHUNK               (64u * 1024u)
/*
 * Of what a reader takes in of a tar before it tells of an entry, with the rest of a chunk that
 * it had: it may hold twelve times as much, and walks a list of access for each item in it.
 */
#define HEADER_MAX CHUNK

struct source {
    int fd;                              /* borrowed */
    uint64_t size;                       /* of its file */
    const struct archive_limits *limits; /* borrowed */
    struct archive *unpacker;            /* NULL: the file is not compressed */
    uint64_t unpacked;
    uint64_t entries;     /* so far */
    uint64_t header_left; /* bytes that may come while a header is read */
    bool in_header;
    bool is_tar;        /* as it is */
    struct err failure; /* of the unpacker, or a limit's */
    char chunk[CHUNK];
};

int source_check_growth(const struct archive_limits *limits, uint64_t archive_bytes,
                        uint64_t expanded, struct err *err)
{
    if (expanded > limits->expanded_bytes)
        return err_set(err, EFBIG, "the archive expands to more than %llu bytes",
                       (unsigned long long)limits->expanded_bytes);
    if (expanded > RATIO_FROM_BYTES && expanded / limits->ratio > archive_bytes)
        return err_set(err, EFBIG, "the archive expands to more than %u times its own size",
                       limits->ratio);
    return 0;
}

/* Reads the file by itself, with seeking, so that zip's central directory can be read. */
static int open_file(const struct source *source, struct archive *a)
{
    if (lseek(source->fd, 0, SEEK_SET) < 0)
        return ARCHIVE_FATAL;
    return archive_read_open_fd(a, source->fd, CHUNK);
}

static int explain_unpacker(const struct source *source, struct err *err)
{
    const char *text = archive_error_string(source->unpacker);

    if (archive_errno(source->unpacker) == EIO)
        return err_set_errno(err, EIO, "cannot read the archive");
    if (archive_errno(source->unpacker) == ENOMEM)
        return err_no_memory(err);
    return err_set(err, EINVAL, "the archive is damaged: %s", text ? text : "compression");
}

/* Whether so many bytes more may come now. */
static bool take_header(struct source *source, size_t n)
{
    if (source->in_header && n > source->header_left) {
        (void)err_set(&source->failure, EFBIG, "what stands before an entry is over %u KiB",
                      HEADER_MAX >> 10);
        return false;
    }
    source->header_left -= source->in_header ? n : 0;
    return true;
}

static la_ssize_t fail(struct archive *a, const struct source *source)
{
    archive_set_error(a, source->failure.code, "%s", source->failure.message);
    return -1;
}

/* Of a tar as it is: libarchive's own reader has no place to count. */
static la_ssize_t file_read(struct archive *a, void *data, const void **ret_chunk)
{
    struct source *source = data;
    ssize_t n;

    do
        n = read(source->fd, source->chunk, sizeof(source->chunk));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        (void)err_set_errno(&source->failure, EIO, "cannot read the archive");
    if (n < 0 || !take_header(source, (size_t)n))
        return fail(a, source);
    *ret_chunk = source->chunk;
    return n;
}

static la_ssize_t unpacked_read(struct archive *a, void *data, const void **ret_chunk)
{
    struct source *source = data;
    /* What a reader has before it tells of an entry is a chunk at most. */
    uint64_t overhead = TAR_BYTES_PER_ENTRY * (source->entries + 1) + sizeof(source->chunk);
    la_ssize_t n;

    do
        n = archive_read_data(source->unpacker, source->chunk, sizeof(source->chunk));
    while (n == ARCHIVE_RETRY);
    if (n < 0) {
        explain_unpacker(source, &source->failure);
        return fail(a, source);
    }
    source->unpacked += (uint64_t)n;
    if ((source->unpacked > overhead &&
         source_check_growth(source->limits, source->size, source->unpacked - overhead,
                             &source->failure)) ||
        !take_header(source, (size_t)n))
        return fail(a, source);
    *ret_chunk = source->chunk;
    return n;
}

/* The filter by the first bytes, or ARCHIVE_FILTER_NONE. */
static int find_filter(const struct source *source)
{
    static const struct {
        int filter;
        size_t len;
        char magic[7];
    } filters[] = {
        {ARCHIVE_FILTER_GZIP, 3, "\x1f\x8b\x08"},
        {ARCHIVE_FILTER_BZIP2, 3, "BZh"},
        {ARCHIVE_FILTER_XZ, 6, "\xfd\x37zXZ\0"},
        {ARCHIVE_FILTER_ZSTD, 4, "\x28\xb5\x2f\xfd"},
    };
    char head[6];
    ssize_t n = fd_pread_full(source->fd, head, sizeof(head), 0);

    for (size_t i = 0; n > 0 && i < sizeof(filters) / sizeof(filters[0]); i++) {
        if ((size_t)n >= filters[i].len && memcmp(head, filters[i].magic, filters[i].len) == 0)
            return filters[i].filter;
    }
    return ARCHIVE_FILTER_NONE;
}

static int open_unpacker(struct source *source, int filter, struct err *err)
{
    struct archive *a = archive_read_new();
    struct archive_entry *entry;

    source->unpacker = a;
    if (!a || archive_read_support_format_raw(a) != ARCHIVE_OK)
        return -ENOMEM;
    /*
     * This one alone: libarchive would look for more of them in what the first one gives. A
     * warning means that it would run a program.
     */
    if (archive_read_append_filter(a, filter) != ARCHIVE_OK)
        return err_set(err, EINVAL, "the archive's compression is not supported here");
    if (open_file(source, a) != ARCHIVE_OK ||
        archive_read_next_header(a, &entry) != ARCHIVE_OK) {
        if (archive_errno(a) == EIO || archive_errno(a) == ENOMEM)
            return explain_unpacker(source, err);
        return err_set(err, EINVAL, "this is neither a zip nor a tar archive");
    }
    return 0;
}

static bool begins_as_tar(const struct source *source)
{
    struct tar_block block;
    struct tar_numbers ignored;

    return fd_pread_full(source->fd, &block, sizeof(block), 0) == (ssize_t)sizeof(block) &&
           (memcmp(block.magic, "ustar", 5) == 0 ||
            tar_block_read(&block, &ignored) != -EBADMSG);
}

int source_create(int in_fd, uint64_t size, const struct archive_limits *limits,
                  struct source **ret, struct err *err)
{
    struct source *source = malloc(sizeof(*source));

    if (!source)
        return -ENOMEM;
    memset(source, 0, offsetof(struct source, chunk));
    source->fd = in_fd;
    source->size = size;
    source->limits = limits;
    /* The name that a tar begins with may be what a compressed file begins with: "BZhang.py".
     */
    source->is_tar = begins_as_tar(source);
    int filter = source->is_tar ? ARCHIVE_FILTER_NONE : find_filter(source);
    int result = filter == ARCHIVE_FILTER_NONE ? 0 : open_unpacker(source, filter, err);
    if (result < 0)
        source_destroy(source);
    else
        *ret = source;
    return result;
}

int source_open(struct source *source, struct archive *reader)
{
    if (!source->unpacker && !source->is_tar)
        return open_file(source, reader);
    if (!source->unpacker && lseek(source->fd, 0, SEEK_SET) < 0)
        return ARCHIVE_FATAL;
    if (archive_read_set_read_callback(reader, source->unpacker ? unpacked_read : file_read) !=
            ARCHIVE_OK ||
        archive_read_set_callback_data(reader, source) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    return archive_read_open1(reader);
}

bool source_is_tar(const struct source *source)
{
    return source->is_tar;
}

bool source_is_zip(const struct source *source)
{
    char head[4];

    return fd_pread_full(source->fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
           memcmp(head, "PK\3\4", sizeof(head)) == 0;
}

bool source_is_packed(const struct source *source)
{
    return source->unpacker != NULL;
}

void source_expect_header(struct source *source, bool is_expected)
{
    source->in_header = is_expected;
    source->header_left = HEADER_MAX;
}

void source_count_entry(struct source *source)
{
    source->entries++;
}

int source_failure(const struct source *source, struct err *err)
{
    if (source->failure.code)
        return err_set(err, source->failure.code, "%s", source->failure.message);
    return 0;
}

void source_destroy(struct source *source)
{
    if (!source)
        return;
    archive_read_free(source->unpacker);
    free(source);
}
