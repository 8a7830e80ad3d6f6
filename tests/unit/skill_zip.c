/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of zips: what libarchive would take into memory is walked before, in the very
 * place where it reads it.
 */
#include "api/skill/archive.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/make_archive.h"

#define SKILL_MD "---\nname: trial\ndescription: d\n---\nbody\n"
#define ENTRY    46u
#define END      22u

/* A small zip in pieces, to be put together otherwise. */
struct pieces {
    char content[4096], directory[4096], end[END];
    size_t content_len, directory_len;
};

static struct pieces take_apart(const char *name)
{
    const struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD}, {.path = name, .content = "x"}, {0}};
    _cleanup_fd_ int fd = make_archive(ZIP, members);
    struct pieces p;
    char bytes[4096];
    ssize_t n = fd_pread_full(fd, bytes, sizeof(bytes), 0);
    const char *directory, *end;

    assert_true(n > (ssize_t)END && n < (ssize_t)sizeof(bytes));
    directory = memmem(bytes, (size_t)n, "PK\1\2", 4);
    end = bytes + n - END;
    assert_memory_equal(end, "PK\5\6", 4);
    p.content_len = (size_t)(directory - bytes);
    p.directory_len = (size_t)(end - directory);
    memcpy(p.content, bytes, p.content_len);
    memcpy(p.directory, directory, p.directory_len);
    memcpy(p.end, end, END);
    return p;
}

/* The same with something before it, n more entries, and something behind its directory. */
static int put_together(const struct pieces *p, size_t before, size_t n, const void *behind,
                        size_t behind_len)
{
    int fd = memfd_create("zip", MFD_CLOEXEC);
    static char junk[64 * 1024];
    char end[END], *more = calloc(n + 1, ENTRY);
    struct bytes_writer w = bytes_writer_init(end + 12, 4); /* how long the directory is */

    assert_true(fd >= 0 && more && before <= sizeof(junk));
    for (size_t i = 0; i < n; i++)
        memcpy(more + i * ENTRY, "PK\1\2", 4);
    memcpy(end, p->end, END);
    bytes_put_u32(&w, (uint32_t)(p->directory_len + n * ENTRY));
    assert_int_equal(fd_write_full(fd, junk, before), 0);
    assert_int_equal(fd_write_full(fd, p->content, p->content_len), 0);
    assert_int_equal(fd_write_full(fd, p->directory, p->directory_len), 0);
    assert_int_equal(fd_write_full(fd, more, n * ENTRY), 0);
    assert_int_equal(fd_write_full(fd, behind, behind_len), 0);
    assert_int_equal(fd_write_full(fd, end, END), 0);
    free(more);
    return fd;
}

/* The same with so many bytes at its end that it says are a comment. */
static int add_comment(int fd, uint16_t len)
{
    static const char zeros[UINT16_MAX];
    off_t end = lseek(fd, 0, SEEK_END);
    uint8_t number[2] = {(uint8_t)len, (uint8_t)(len >> 8)};

    assert_int_equal(pwrite(fd, number, 2, end - 2), 2);
    assert_int_equal(pwrite(fd, zeros, len, end), len);
    return fd;
}

static void expect(int fd, int code, const char *said)
{
    struct skill_archive archive = {0};
    struct err err = {0};
    int r = skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, &err);

    if (r != code || !strstr(err.message, said))
        fail_msg("%d \"%s\" and not %d \"%s\"", r, err.message, code, said);
    skill_archive_finish(&archive);
    close(fd);
}

static long peak_kib(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* A million entries in 44 MiB: libarchive would hold more than three times as much for them. */
static void entries_are_counted_before_they_are_held(void **state)
{
    const struct pieces p = take_apart("a");
    int fd = put_together(&p, 0, 1000000, NULL, 0);
    long before = peak_kib();

    (void)state;
    expect(fd, -EFBIG, "more than 20000 entries");
    assert_in_range(peak_kib() - before, 0, 16 * 1024);
    expect(put_together(&p, 0, 19999, NULL, 0), -EFBIG, "more than 20000 entries");
}

static void what_stands_before_it_hides_nothing(void **state)
{
    const struct pieces p = take_apart("a");
    struct pieces nul = take_apart("main.py+.txt");
    char *plus = memchr(nul.directory, '+', nul.directory_len);

    (void)state;
    expect(put_together(&p, 5000, 0, NULL, 0), 0, "");
    assert_non_null(plus);
    *plus = '\0';
    expect(put_together(&nul, 0, 0, NULL, 0), -EINVAL, "its name holds a NUL");
    expect(put_together(&nul, 5000, 0, NULL, 0), -EINVAL, "its name holds a NUL");
}

/* A directory that would have to be searched for could be any other. */
static void it_is_where_it_should_be(void **state)
{
    const struct pieces p = take_apart("a");

    (void)state;
    expect(put_together(&p, 0, 0, "gap", 3), -EINVAL, "damaged or cut short");
}

/* As large zips have it: the place of the directory is in a record of its own. */
static void large_ones_are_read(void **state)
{
    const struct pieces p = take_apart("a");
    char records[76];
    static const struct {
        uint64_t moved;
        uint32_t disks;
        int code;
        const char *said;
    } cases[] = {{0, 1, 0, ""}, {3, 1, -EINVAL, "damaged"}, {0, 2, -EINVAL, "damaged"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bytes_writer w = bytes_writer_init(records, sizeof(records));

        bytes_put_u32(&w, 0x06064b50);
        bytes_put_u64(&w, 44);
        bytes_put_u32(&w, 45 | 45 << 16);
        bytes_put_u64(&w, 0);
        bytes_put_u64(&w, 2);
        bytes_put_u64(&w, 2);
        bytes_put_u64(&w, p.directory_len);
        bytes_put_u64(&w, p.content_len + cases[i].moved);
        bytes_put_u32(&w, 0x07064b50);
        bytes_put_u32(&w, 0);
        bytes_put_u64(&w, p.content_len + p.directory_len);
        bytes_put_u32(&w, cases[i].disks);
        expect(put_together(&p, 0, 0, records, sizeof(records)), cases[i].code, cases[i].said);
        if (i > 0)
            continue;
        /* All that is read of them is in libarchive's window, or nothing. */
        expect(add_comment(put_together(&p, 0, 0, NULL, 0), 16352), 0, "");
        expect(add_comment(put_together(&p, 0, 0, records, sizeof(records)), 16342), 0, "");
        expect(add_comment(put_together(&p, 0, 0, records, sizeof(records)), 16352), -EINVAL,
               "damaged");
    }
}

/* The end of a zip in the last file of a tar is none of the tar's. */
static void a_tar_is_no_zip(void **state)
{
    const struct pieces p = take_apart("a");
    _cleanup_fd_ int zip = put_together(&p, 0, 30000, NULL, 0);
    size_t len = (size_t)lseek(zip, 0, SEEK_END);
    char *bytes = malloc(len + 1);
    int fd = memfd_create("tar", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    const struct {
        const char *name;
        const char *data;
        size_t len;
    } files[] = {{"SKILL.md", SKILL_MD, strlen(SKILL_MD)}, {"a.zip", bytes, len}};

    (void)state;
    assert_int_equal(pread(zip, bytes, len, 0), len);
    archive_write_set_format_ustar(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < 2; i++) {
        struct archive_entry *entry = archive_entry_new();

        archive_entry_set_pathname(entry, files[i].name);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_size(entry, (la_int64_t)files[i].len);
        assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, files[i].data, files[i].len), files[i].len);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
    free(bytes);
    expect(fd, 0, "");
}

#define SHARED 3000u

/* What a local header and an entry of the directory have in common, from the version on. */
static void put_numbers(struct bytes_writer *w, const char *data, size_t len, size_t extra)
{
    bytes_put_u16(w, 20);
    bytes_put_u32(w, 0); /* no flags; as it is */
    bytes_put_u32(w, 0x21 << 16);
    bytes_put_u32(w, crc32_update(0, data, len));
    bytes_put_u32(w, (uint32_t)len);
    bytes_put_u32(w, (uint32_t)len);
    bytes_put_u16(w, 1);
    bytes_put_u16(w, (uint16_t)extra);
}

/* The header of "a" has that of "b" as a field of its own, and both have what is behind. */
static int make_overlap(size_t before)
{
    static char bytes[2 * SHARED], data[SHARED];
    struct bytes_writer w = bytes_writer_init(bytes, sizeof(bytes));
    size_t at[2], directory;
    int fd = memfd_create("zip", MFD_CLOEXEC);

    bytes_put(&w, data, before);
    for (size_t i = 0; i < 2; i++) {
        at[i] = w.len;
        bytes_put_u32(&w, 0x04034b50);
        put_numbers(&w, data, SHARED, i == 0 ? 35 : 0);
        bytes_put(&w, i == 0 ? "a" : "b", 1);
        if (i == 0) {
            bytes_put_u16(&w, 0x9999);
            bytes_put_u16(&w, 31);
        }
    }
    bytes_put(&w, data, SHARED);
    directory = w.len;
    for (size_t i = 0; i < 2; i++) {
        bytes_put_u32(&w, 0x02014b50);
        bytes_put_u16(&w, 20);
        put_numbers(&w, data, SHARED, 0);
        for (int k = 0; k < 5; k++)
            bytes_put_u16(&w, 0);
        bytes_put_u32(&w, (uint32_t)at[i]);
        bytes_put(&w, i == 0 ? "a" : "b", 1);
    }
    bytes_put_u32(&w, 0x06054b50);
    bytes_put_u32(&w, 0);
    bytes_put_u16(&w, 2);
    bytes_put_u16(&w, 2);
    bytes_put_u32(&w, 2 * (ENTRY + 1));
    bytes_put_u32(&w, (uint32_t)directory);
    bytes_put_u16(&w, 0);
    assert_int_equal(fd_write_full(fd, bytes, w.len), 0);
    return fd;
}

/* Few bytes would be many files, and of what unpacks to nothing work without end. */
static void no_two_are_of_the_same_bytes(void **state)
{
    (void)state;
    expect(make_overlap(0), -EINVAL, "lie over each other");
    /* What stands before it changes nothing. */
    expect(make_overlap(1), -EINVAL, "lie over each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_counted_before_they_are_held),
        cmocka_unit_test(what_stands_before_it_hides_nothing),
        cmocka_unit_test(it_is_where_it_should_be),
        cmocka_unit_test(large_ones_are_read),
        cmocka_unit_test(a_tar_is_no_zip),
        cmocka_unit_test(no_two_are_of_the_same_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
