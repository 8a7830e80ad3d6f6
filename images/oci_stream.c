/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two readers of libarchive: one takes the compression off, the other reads the tar, so that
 * the bytes between them can be counted and digested.
 */
#include "images/oci_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define PIECE (64u * 1024u)

struct oci_stream {
    struct archive *outer, *inner;
    EVP_MD_CTX *digest, *packed_digest;
    int fd; /* borrowed */
    uint64_t at;
    const char *what;
    struct oci_room *room;
    uint64_t unpacked;
    struct err why; /* what the reading of the outer one failed of */
    char data[PIECE], packed[PIECE];
};

CLEANUP_WITH(struct oci_stream *, oci_stream_close)
CLEANUP_WITH(EVP_MD_CTX *, EVP_MD_CTX_free)

void oci_stream_close(struct oci_stream *stream)
{
    if (!stream)
        return;
    archive_free(stream->inner);
    archive_free(stream->outer);
    EVP_MD_CTX_free(stream->digest);
    EVP_MD_CTX_free(stream->packed_digest);
    free(stream);
}

static int write_hex(const unsigned char *bytes, unsigned n, char ret_hex[OCI_HEX_SIZE])
{
    if (2 * n + 1 != OCI_HEX_SIZE)
        return -EIO;
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(ret_hex + (size_t)2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int finish_digest(EVP_MD_CTX *digest, char ret_hex[OCI_HEX_SIZE])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n;

    return EVP_DigestFinal_ex(digest, bytes, &n) == 1 ? write_hex(bytes, n, ret_hex) : -EIO;
}

int oci_digest_file(int fd, char ret_hex[OCI_HEX_SIZE])
{
    _cleanup_(EVP_MD_CTX_free) EVP_MD_CTX *digest = EVP_MD_CTX_new();
    _cleanup_free_ char *data = malloc(PIECE);
    uint64_t at = 0;
    ssize_t n;

    if (!digest || !data || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
        return -ENOMEM;
    while ((n = fd_pread_full(fd, data, PIECE, at)) > 0) {
        if (EVP_DigestUpdate(digest, data, (size_t)n) != 1)
            return -EIO;
        at += (uint64_t)n;
    }
    return n < 0 ? (int)n : finish_digest(digest, ret_hex);
}

int oci_digest(const void *data, size_t len, char ret_hex[OCI_HEX_SIZE])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n;

    return EVP_Digest(data, len, bytes, &n, EVP_sha256(), NULL) == 1
               ? write_hex(bytes, n, ret_hex)
               : -EIO;
}

/* Whether there is room for n more bytes. */
static int charge(struct oci_stream *s, uint64_t n)
{
    uint64_t packed = (uint64_t)archive_filter_bytes(s->outer, -1);

    s->unpacked += n;
    if (n > s->room->bytes)
        return err_set(&s->why, E2BIG, "%s unpacks to more bytes than an image may have",
                       s->what);
    if (s->unpacked > OCI_RATIO_SPARE && s->unpacked / OCI_RATIO_MAX > packed)
        return err_set(&s->why, E2BIG, "%s unpacks to more than %u times its size", s->what,
                       OCI_RATIO_MAX);
    s->room->bytes -= n;
    return 0;
}

static la_ssize_t pull_packed(struct archive *outer, void *context, const void **ret_data)
{
    struct oci_stream *s = context;
    ssize_t n = fd_pread_full(s->fd, s->packed, PIECE, s->at);

    if (n < 0 || EVP_DigestUpdate(s->packed_digest, s->packed, (size_t)n) != 1) {
        archive_set_error(outer, n < 0 ? (int)-n : EIO, "it cannot be read");
        return -1;
    }
    s->at += (uint64_t)n;
    *ret_data = s->packed;
    return n;
}

static la_ssize_t pull(struct archive *inner, void *context, const void **ret_data)
{
    struct oci_stream *s = context;
    la_ssize_t n = archive_read_data(s->outer, s->data, sizeof(s->data));

    if (n < 0)
        (void)err_set(&s->why, EINVAL, "%s: %s", s->what,
                      archive_error_string(s->outer) ? archive_error_string(s->outer)
                                                     : "it cannot be read");
    if (n < 0 || charge(s, (uint64_t)n) < 0 ||
        EVP_DigestUpdate(s->digest, s->data, (size_t)n) != 1) {
        archive_set_error(inner, EIO, "no more");
        return -1;
    }
    *ret_data = s->data;
    return n;
}

static int failed(struct oci_stream *s, struct archive *a, struct err *err)
{
    const char *text = archive_error_string(a);

    if (s->why.code)
        return err_set(err, s->why.code, "%s", s->why.message);
    return err_set(err, EINVAL, "%s: %s", s->what, text ? text : "it is no tar");
}

static int begin(struct oci_stream *s, struct err *err)
{
    struct archive_entry *whole;

    /* None of those that run a program, and no other format than these. */
    archive_read_support_filter_gzip(s->outer);
    archive_read_support_filter_zstd(s->outer);
    archive_read_support_format_raw(s->outer);
    archive_read_support_format_empty(s->outer);
    archive_read_support_format_tar(s->inner);
    if (archive_read_open(s->outer, s, NULL, pull_packed, NULL) != ARCHIVE_OK)
        return failed(s, s->outer, err);
    if (archive_read_next_header(s->outer, &whole) != ARCHIVE_OK)
        return err_set(err, EINVAL, "%s is empty or cannot be unpacked", s->what);
    if (archive_read_open(s->inner, s, NULL, pull, NULL) != ARCHIVE_OK)
        return failed(s, s->inner, err);
    return 0;
}

int oci_stream_open(int fd, const char *what, struct oci_room *room, struct oci_stream **ret,
                    struct err *err)
{
    _cleanup_(oci_stream_close) struct oci_stream *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_no_memory(err);
    s->what = what;
    s->room = room;
    s->fd = fd;
    s->outer = archive_read_new();
    s->inner = archive_read_new();
    s->digest = EVP_MD_CTX_new();
    s->packed_digest = EVP_MD_CTX_new();
    if (!s->outer || !s->inner || !s->digest || !s->packed_digest ||
        EVP_DigestInit_ex(s->digest, EVP_sha256(), NULL) != 1 ||
        EVP_DigestInit_ex(s->packed_digest, EVP_sha256(), NULL) != 1)
        return err_no_memory(err);
    r = begin(s, err);
    if (r == 0)
        *ret = steal_ptr(&s);
    return r;
}

int oci_stream_next(struct oci_stream *s, struct archive_entry **ret, struct err *err)
{
    const int next = archive_read_next_header(s->inner, ret);

    if (next == ARCHIVE_EOF)
        return 0;
    if (next < ARCHIVE_WARN)
        return failed(s, s->inner, err);
    if (s->room->entries == 0)
        return err_set(err, E2BIG, "%s holds more entries than may be", s->what);
    s->room->entries--;
    return 1;
}

int oci_stream_charge(struct oci_stream *s, uint64_t size, struct err *err)
{
    if (size > s->room->content)
        return err_set(err, E2BIG, "%s holds files of more bytes than may be", s->what);
    s->room->content -= size;
    return 0;
}

int oci_stream_copy(struct oci_stream *s, uint64_t size, int fd, struct err *err)
{
    for (;;) {
        const void *data;
        size_t len;
        la_int64_t offset;
        const int status = archive_read_data_block(s->inner, &data, &len, &offset);
        int r;

        if (status == ARCHIVE_EOF)
            return ftruncate(fd, (off_t)size) < 0 ? err_set_errno(err, errno, "%s", s->what)
                                                  : 0;
        if (status < ARCHIVE_WARN)
            return failed(s, s->inner, err);
        if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
            return err_set(err, EINVAL, "%s: more data than its header says", s->what);
        r = fd_pwrite_full(fd, data, len, (uint64_t)offset);
        if (r < 0)
            return err_set_errno(err, -r, "cannot unpack %s", s->what);
    }
}

/* Reads what is left of an archive, and ends the digest that its callback makes. */
static int drain(struct oci_stream *s, struct archive *a, archive_read_callback *more,
                 EVP_MD_CTX *digest, char ret_hex[OCI_HEX_SIZE], struct err *err)
{
    const void *data;
    la_ssize_t n;

    do {
        n = more(a, s, &data);
        if (n < 0)
            return failed(s, a, err);
    } while (n > 0);
    return finish_digest(digest, ret_hex) < 0 ? err_no_memory(err) : 0;
}

int oci_stream_digest(struct oci_stream *s, char ret_hex[OCI_HEX_SIZE], struct err *err)
{
    return drain(s, s->inner, pull, s->digest, ret_hex, err);
}

/* What compressors are not asked for: it comes behind the end of what they packed. */
int oci_stream_digest_packed(struct oci_stream *s, char ret_hex[OCI_HEX_SIZE], struct err *err)
{
    return drain(s, s->outer, pull_packed, s->packed_digest, ret_hex, err);
}
