/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small archives that unpack to much: outside any file that would be kept (what a reader skips,
 * what it reads for itself, compression within compression), and where there is no room.
 */
#include "api/skill/archive.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/tar_block.h"

#include <errno.h>
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

#include "tests/unit/make_archive.h"

#define SKILL_MD "---\nname: trial\ndescription: d\n---\nbody\n"
#define BLOCK    512u
#define MIB      (1u << 20)

typedef int add_filter(struct archive *a);

static void fill_header(char *block, const char *name, char type, unsigned size)
{
    unsigned sum = 0;

    memset(block, 0, BLOCK);
    snprintf(block, 100, "%s", name);
    strcpy(block + 100, "0000644");
    snprintf(block + 124, 12, "%011o", size);
    block[156] = type;
    if (type == '1' || type == '2')
        strcpy(block + 157, "SKILL.md");
    memcpy(block + 257, type == 'S' ? "ustar  " : "ustar\00000", 8);
    if (type == 'S') {
        strcpy(block + 386, "00000000000"); /* a map of the file's holes begins */
        block[482] = 1;                     /* and goes on in the blocks that follow */
    }
    memset(block + 148, ' ', 8);
    for (unsigned i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

/*
 * A tar with SKILL.md and then one member of that type, all its bytes being fill, and nothing
 * wrong but its size; compressed once for each filter.
 */
static int make_bomb(const char *name, char type, unsigned mib, char fill,
                     add_filter *const *filters)
{
    int fd = memfd_create("bomb", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    char block[BLOCK];
    char *body = malloc(MIB);

    assert_true(fd >= 0 && body);
    memset(body, fill, MIB);
    archive_write_set_format_raw(a);
    for (; *filters; filters++)
        assert_int_equal((*filters)(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    archive_entry_set_pathname(entry, "data");
    archive_entry_set_filetype(entry, AE_IFREG);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);

    fill_header(block, "SKILL.md", '0', (unsigned)strlen(SKILL_MD));
    archive_write_data(a, block, BLOCK);
    memset(block, 0, BLOCK);
    strcpy(block, SKILL_MD);
    archive_write_data(a, block, BLOCK);
    fill_header(block, name, type, mib * MIB);
    archive_write_data(a, block, BLOCK);
    for (unsigned i = 0; i < mib; i++)
        assert_int_equal(archive_write_data(a, body, MIB), MIB);
    memset(block, 0, BLOCK);
    archive_write_data(a, block, BLOCK);
    archive_write_data(a, block, BLOCK);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    archive_entry_free(entry);
    free(body);
    return fd;
}

static void refuse(int fd, int code, const char *reason)
{
    struct skill_archive archive;
    struct err err = {0};

    assert_int_equal(
        skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, &err), code);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
    close(fd);
}

static add_filter *const plain[] = {NULL};
static add_filter *const gzip[] = {archive_write_add_filter_gzip, NULL};

static void skipped_content(void **state)
{
    static add_filter *const kinds[][2] = {
        {archive_write_add_filter_gzip},
        {archive_write_add_filter_bzip2},
        {archive_write_add_filter_xz},
        {archive_write_add_filter_zstd},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        refuse(make_bomb("__MACOSX/x", '0', 16, '\0', kinds[i]), -EFBIG, "expands to more");
    refuse(make_bomb(".DS_Store", '0', 16, 'A', gzip), -EFBIG, "expands to more");
    refuse(make_bomb("hard", '1', 16, 'A', gzip), -EFBIG, "expands to more");
    refuse(make_bomb("link", '2', 16, 'A', gzip), -EFBIG, "expands to more");
    refuse(make_bomb("d/", '5', 16, 'A', gzip), -EFBIG, "expands to more");
}

/* Little litter is no reason to refuse a skill. */
static void skipped_little(void **state)
{
    int fd = make_bomb(".DS_Store", '0', 1, 'A', gzip);
    struct skill_archive archive;
    (void)state;

    assert_int_equal(
        skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, NULL), 0);
    assert_int_equal(archive.n_entries, 1);
    assert_int_equal(archive.expanded_bytes, strlen(SKILL_MD));
    skill_archive_finish(&archive);
    close(fd);
}

/* A map of holes that never ends: the reader takes it in before it gives the entry. */
static void endless_map(void **state)
{
    (void)state;

    refuse(make_bomb(".DS_Store", 'S', 16, '\1', gzip), -EFBIG, "stands before an entry");
    /* Of twelve times its bytes in memory, where it is not compressed. */
    refuse(make_bomb("x", 'S', 16, '\1', plain), -EFBIG, "stands before an entry");
}

/* A tar with SKILL.md, before which stands who may access it, so many times. */
static int make_access(unsigned items)
{
    int fd = memfd_create("access", MFD_CLOEXEC);
    _cleanup_buf_ struct buf list = buf_init(MIB), tar = buf_init(MIB);
    char block[BLOCK];

    for (unsigned i = 0; i < items; i++)
        (void)buf_printf(&list, "%suser:a%u:r", i > 0 ? "," : "", i);
    (void)buf_reserve(&tar, BLOCK);
    tar.len = BLOCK;
    (void)tar_pax_append(&tar, "SCHILY.acl.access", buf_cstr(&list));
    fill_header(block, "PaxHeader", 'x', (unsigned)(tar.len - BLOCK));
    memcpy(tar.data, block, BLOCK);
    memset(block, 0, BLOCK);
    (void)buf_append(&tar, block, tar_padding(tar.len));
    fill_header(block, "SKILL.md", '0', (unsigned)strlen(SKILL_MD));
    (void)buf_append(&tar, block, BLOCK);
    memset(block, 0, BLOCK);
    (void)buf_append(&tar, SKILL_MD, strlen(SKILL_MD));
    (void)buf_append(&tar, block, tar_padding(tar.len));
    for (unsigned i = 0; i < 2; i++)
        (void)buf_append(&tar, block, BLOCK);
    assert_int_equal(tar.error, 0);
    assert_int_equal(fd_write_full(fd, tar.data, tar.len), 0);
    return fd;
}

/* Whose work in the reader grows by the square of their number: hours, of few MiB. */
static void lists_of_access(void **state)
{
    int fd = make_access(60);
    struct skill_archive archive;
    (void)state;

    assert_int_equal(
        skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, NULL), 0);
    assert_int_equal(archive.n_entries, 1);
    skill_archive_finish(&archive);
    close(fd);
    refuse(make_access(65), -EFBIG, "items of access control");
    refuse(make_access(12000), -EFBIG, "over 64 KiB");
}

/* Which would take the memory that its first bytes name, up to 256 MiB. */
static void zip_of_ppmd(void **state)
{
    static const struct member members[] = {{.path = "SKILL.md", .content = SKILL_MD}, {0}};
    int fd = make_archive(ZIP, members);
    (void)state;

    /* In its own header alone: that is what it is read by. */
    assert_int_equal(pwrite(fd, (char[]){98, 0}, 2, 8), 2);
    refuse(fd, -EINVAL, "its compression (ppmd");
}

static void nested_compression(void **state)
{
    static add_filter *const twice[] = {archive_write_add_filter_gzip,
                                        archive_write_add_filter_gzip, NULL};
    static add_filter *const mixed[] = {archive_write_add_filter_bzip2,
                                        archive_write_add_filter_zstd, NULL};
    (void)state;

    refuse(make_bomb("x", '0', 0, 'A', twice), -EINVAL, "compressed once");
    refuse(make_bomb("x", '0', 0, 'A', mixed), -EINVAL, "compressed once");
}

/* Without a directory, the end of a zip's member is found by unpacking it. */
static void zip_without_directory(void **state)
{
    static const struct member members[] = {{.path = "SKILL.md", .content = SKILL_MD}, {0}};
    int fd = make_archive(ZIP, members);
    char bytes[4096];
    ssize_t n = fd_pread_full(fd, bytes, sizeof(bytes), 0);
    (void)state;

    assert_true(n > 0);
    const char *directory = memmem(bytes, (size_t)n, "PK\1\2", 4);
    assert_non_null(directory);
    assert_int_equal(ftruncate(fd, directory - bytes), 0);
    refuse(fd, -EINVAL, "cut short");
}

/* Room for so many bytes of a spool, and of a tar beside it. */
struct room {
    int spool_fd, tar_fd;
    uint64_t max, asked;
};

static uint64_t size_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return (uint64_t)st.st_size;
}

/* Nothing is there that was not asked for. */
static int grow(void *ctx, uint64_t bytes, struct err *err)
{
    struct room *room = ctx;

    assert_in_range(size_of(room->spool_fd) + size_of(room->tar_fd), 0, room->asked);
    if (bytes > room->max - room->asked)
        return err_set(err, EDQUOT, "no room");
    room->asked += bytes;
    return 0;
}

/* Takes a skill of four MiB into that room; what it wrote is in *ret. */
static int take_into(uint64_t max, bool check_only, struct room *ret, struct err *err)
{
    _cleanup_fd_ int in = make_bomb("zeros", '0', 4, '\0', gzip);
    _cleanup_fd_ int spool_fd = memfd_create("spool", MFD_CLOEXEC);
    _cleanup_fd_ int tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct archive_limits limits = archive_limits_default;
    struct room room = {.spool_fd = spool_fd, .tar_fd = tar_fd, .max = max};
    const struct archive_spool spool = {spool_fd, grow, &room};
    struct skill_archive archive = {0};
    int r;

    limits.ratio = 1u << 20;
    r = skill_archive_ingest(in, &limits, &spool, check_only ? -1 : tar_fd, &archive, err);
    /* It is still the caller's. */
    assert_in_range(size_of(spool_fd) + size_of(tar_fd), 0, room.asked);
    if (r == 0) {
        assert_int_equal(size_of(spool_fd), archive.expanded_bytes);
        assert_int_equal(room.asked,
                         archive.expanded_bytes + (check_only ? 0 : archive.tar_bytes));
    }
    skill_archive_finish(&archive);
    *ret = room;
    return r;
}

static void spool_asks_before_it_grows(void **state)
{
    struct err err = {0};
    struct room room;
    uint64_t all;
    (void)state;

    assert_int_equal(take_into(64 * MIB, false, &room, &err), 0);
    assert_int_equal(err.code, 0);
    all = room.asked;
    assert_in_range(all, 8 * MIB, 9 * MIB);
    assert_int_equal(take_into(all, false, &room, &err), 0);
    assert_int_equal(take_into(all / 2, true, &room, &err), 0);
    /* The end of the tar, the tar, the content. */
    assert_int_equal(take_into(all - 1, false, &room, &err), -EDQUOT);
    assert_string_equal(err.message, "no room");
    assert_int_equal(take_into(5 * MIB, false, &room, NULL), -EDQUOT);
    assert_int_equal(take_into(MIB, true, &room, NULL), -EDQUOT);
    assert_int_equal(take_into(0, true, &room, NULL), -EDQUOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped_content),       cmocka_unit_test(skipped_little),
        cmocka_unit_test(endless_map),           cmocka_unit_test(nested_compression),
        cmocka_unit_test(lists_of_access),       cmocka_unit_test(zip_of_ppmd),
        cmocka_unit_test(zip_without_directory), cmocka_unit_test(spool_asks_before_it_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
