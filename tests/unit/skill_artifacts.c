/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a hostile guest: what is kept, what is left out, and that the rest stays good.
 */
#include "api/skill/artifacts.h"

#include "api/skill/tar.h"
#include "base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct artifacts_limits wide = {.files = 10000,
                                             .folders = 10000,
                                             .names_bytes = 4u << 20,
                                             .list_bytes = 1u << 20,
                                             .bytes = 100u << 20,
                                             .file_bytes = 100u << 20};

static void put(struct buf *out, enum tar_type type, const char *path, const char *content)
{
    static const char zero[TAR_BLOCK];
    struct tar_header header = {
        .path = path,
        .type = type,
        .target = type == TAR_LINK || type == TAR_HARD_LINK ? content : NULL,
        .mode = 0755,
        .mtime_s = 1700000000,
        .size = type == TAR_FILE ? strlen(content) : 0,
    };

    assert_int_equal(tar_put_header(out, &header), 0);
    if (type == TAR_FILE) {
        buf_append(out, content, header.size);
        buf_append(out, zero, tar_padding(header.size));
    }
}

/* "name=content;" of every member of a tar.gz, as libarchive reads it. */
static void read_back(int fd, struct buf *out)
{
    struct archive *a = archive_read_new();
    struct archive_entry *entry;
    char content[1024];

    lseek(fd, 0, SEEK_SET);
    archive_read_support_format_tar(a);
    archive_read_support_format_empty(a);
    archive_read_support_filter_gzip(a);
    assert_int_equal(archive_read_open_fd(a, fd, 4096), ARCHIVE_OK);
    while (archive_read_next_header(a, &entry) == ARCHIVE_OK) {
        assert_int_equal(archive_entry_filetype(entry), AE_IFREG);
        assert_int_equal(archive_entry_uid(entry), 0);
        assert_int_equal(archive_entry_mtime(entry), 1700000000);
        la_ssize_t n = archive_read_data(a, content, sizeof(content));
        assert_true(n >= 0);
        buf_printf(out, "%s=%.*s;", archive_entry_pathname(entry), (int)n, content);
    }
    archive_read_free(a);
}

struct outcome {
    struct buf files;
    size_t n;
    bool truncated;
    size_t n_warnings;
    int result;
};

static struct outcome process(const struct buf *tar, size_t piece,
                              const struct artifacts_limits *limits)
{
    int fd = memfd_create("out", MFD_CLOEXEC);
    struct outcome outcome = {.files = buf_init(1 << 20)};
    struct err err = {0};
    struct artifacts *a =
        artifacts_create(fd, memfd_create("spool", MFD_CLOEXEC), limits, &err);

    assert_non_null(a);
    for (size_t at = 0; at < tar->len && !outcome.result; at += piece) {
        size_t n = tar->len - at < piece ? tar->len - at : piece;
        outcome.result = artifacts_push(a, tar->data + at, n, &err);
    }
    assert_int_equal(artifacts_end(a, NULL), 0);
    const struct artifacts_kept *kept = artifacts_kept(a);
    for (size_t i = 0; i < kept->n; i++)
        assert_non_null(kept->list[i].path);
    outcome.n = kept->n;
    outcome.truncated = kept->truncated;
    outcome.n_warnings = kept->warnings.len;
    read_back(fd, &outcome.files);
    artifacts_destroy(a);
    close(fd);
    return outcome;
}

static void expect(const struct buf *tar, const struct artifacts_limits *limits,
                   const char *files, size_t n, bool truncated, size_t n_warnings, int result)
{
    static const size_t pieces[] = {1, 513, 65536};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct outcome o = process(tar, pieces[i], limits);
        assert_string_equal(buf_cstr(&o.files), files);
        assert_int_equal(o.n, n);
        assert_int_equal(o.truncated, truncated);
        assert_int_equal(o.n_warnings, n_warnings);
        assert_int_equal(o.result, result);
        buf_finish(&o.files);
    }
}

static void end(struct buf *tar)
{
    static const char zero[TAR_TRAILER];

    buf_append(tar, zero, sizeof(zero));
}

static void kept(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    put(&tar, TAR_FILE, "chart.svg", "<svg/>");
    put(&tar, TAR_DIR, "d", NULL);
    put(&tar, TAR_FILE, "d/\xc3\xa9t\xc3\xa9.txt", "x");
    put(&tar, TAR_FILE, "empty", "");
    end(&tar);
    expect(&tar, &wide, "chart.svg=<svg/>;d/\xc3\xa9t\xc3\xa9.txt=x;empty=;", 3, false, 0, 0);
    buf_finish(&tar);
}

static void nothing(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    end(&tar);
    expect(&tar, &wide, "", 0, false, 0, 0);
    tar.len = 0;
    expect(&tar, &wide, "", 0, false, 0, 0);
    buf_finish(&tar);
}

static void hostile(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    put(&tar, TAR_FILE, "good", "1");
    put(&tar, TAR_FILE, "../evil", "1");
    put(&tar, TAR_FILE, "/etc/evil", "1");
    put(&tar, TAR_FILE, "a\nb", "1");
    put(&tar, TAR_LINK, "link", "/etc/passwd");
    put(&tar, TAR_HARD_LINK, "hard", "/etc/shadow");
    put(&tar, TAR_FILE, "link/x", "2");
    put(&tar, TAR_FILE, "good", "again");
    put(&tar, TAR_FILE, "good/below", "1");
    put(&tar, TAR_FILE, "link", "a file over a folder");
    put(&tar, TAR_FILE, "last", "3");
    end(&tar);
    expect(&tar, &wide, "good=1;link/x=2;last=3;", 3, false, 8, 0);
    buf_finish(&tar);
}

static void limits(void **state)
{
    struct artifacts_limits tight = wide;
    struct buf tar = buf_init(1 << 20);
    (void)state;

    tight.files = 2;
    tight.bytes = 10;
    tight.file_bytes = 6;
    put(&tar, TAR_FILE, "a", "1234");
    put(&tar, TAR_FILE, "too-large", "1234567");
    put(&tar, TAR_FILE, "b", "123456");
    put(&tar, TAR_FILE, "c", "");
    end(&tar);
    expect(&tar, &tight, "a=1234;b=123456;", 2, true, 2, 0);
    tight.files = 10;
    tight.bytes = 9;
    expect(&tar, &tight, "a=1234;c=;", 2, true, 2, 0);
    buf_finish(&tar);
}

static void many_warnings(void **state)
{
    struct artifacts_limits one = wide;
    struct buf tar = buf_init(1 << 20);
    (void)state;

    one.files = 1;
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        put(&tar, TAR_FILE, name, "");
    }
    end(&tar);
    expect(&tar, &one, "f0=;", 1, true, 20, 0);
    buf_finish(&tar);
}

static void cut_short(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    put(&tar, TAR_FILE, "whole", "1");
    put(&tar, TAR_FILE, "part", "123456789");
    tar.len -= TAR_BLOCK - 4;
    expect(&tar, &wide, "whole=1;", 1, true, 1, 0);
    buf_finish(&tar);
}

static void damaged(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    put(&tar, TAR_FILE, "whole", "1");
    size_t bad = tar.len;
    put(&tar, TAR_FILE, "next", "2");
    tar.data[bad] ^= 1;
    expect(&tar, &wide, "whole=1;", 1, true, 1, -EPROTO);
    buf_finish(&tar);
}

/* A file that could not be written out is in no list. */
static void full_disk(void **state)
{
    char content[1 << 18];
    struct buf tar = buf_init(1 << 20);
    uint32_t random = 1;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct err err = {0};
    (void)state;

    for (size_t i = 0; i < sizeof(content) - 1; i++)
        content[i] = (char)(1 + ((random = random * 1664525u + 1013904223u) >> 25));
    content[sizeof(content) - 1] = '\0';
    put(&tar, TAR_FILE, "large", content);
    end(&tar);
    struct artifacts *a = artifacts_create(fd, memfd_create("spool", MFD_CLOEXEC), &wide, &err);
    assert_non_null(a);
    assert_int_equal(artifacts_push(a, tar.data, tar.len, &err), -ENOSPC);
    assert_non_null(strstr(err.message, "cannot write the artifacts"));
    assert_int_equal(artifacts_kept(a)->n, 0);
    artifacts_destroy(a);
    buf_finish(&tar);
    close(fd);
}

/* Of a large file the spool and the archive are not both on the disk for longer than it takes.
 */
static void large_files_leave_the_spool(void **state)
{
    char *content = malloc((2u << 20) + 1);
    struct buf tar = buf_init(4u << 20);
    int fd = memfd_create("out", MFD_CLOEXEC), spool = memfd_create("spool", MFD_CLOEXEC);
    struct err err = {0};
    struct stat st;
    (void)state;

    assert_non_null(content);
    memset(content, 'x', 2u << 20);
    content[2u << 20] = '\0';
    put(&tar, TAR_FILE, "large", content);
    struct artifacts *a = artifacts_create(fd, dup(spool), &wide, &err);
    assert_non_null(a);
    assert_int_equal(artifacts_push(a, tar.data, tar.len, &err), 0);
    assert_int_equal(artifacts_kept(a)->bytes, 2u << 20);
    assert_int_equal(fstat(spool, &st), 0);
    assert_int_equal(st.st_size, 0);
    artifacts_destroy(a);
    buf_finish(&tar);
    free(content);
    close(spool);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),
        cmocka_unit_test(nothing),
        cmocka_unit_test(hostile),
        cmocka_unit_test(limits),
        cmocka_unit_test(many_warnings),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(damaged),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(large_files_leave_the_spool),
    };

    /* For reading back alone: the code under test sets its own. */
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
