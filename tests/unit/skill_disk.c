/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of a skill, read back as Linux reads an EROFS: every name is found in its order, and
 * every content is where the tar has it. What Linux makes of it the end-to-end cases see.
 */
#include "api/skill/archive.h"

#include "api/skill/disk.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/make_archive.h"

#define SKILL_MD "---\nname: trial\ndescription: d\n---\nbody\n"
#define BLOCK    512u
#define NAME_254                                                                               \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"         \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"         \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"         \
    "nnnnnnnnnnnnnn"
#define NAME_255 NAME_254 "n"

static const uint64_t now_ns = 1700000000ull * NS_PER_SECOND + 7;

struct world {
    struct skill_archive archive;
    struct skill skill;
    int tar_fd;
    uint64_t tar_bytes;
    struct buf head;
    size_t n_seen;
};

static void open_world(struct world *w, const struct member *members)
{
    _cleanup_fd_ int fd = make_archive(TAR, members);
    struct skill_archive loaded;
    struct stat st;

    memset(w, 0, sizeof(*w));
    w->tar_fd = memfd_create("tar", MFD_CLOEXEC);
    w->head = buf_init(64u << 20);
    assert_int_equal(skill_archive_load(fd, &archive_limits_default, NULL, w->tar_fd, &loaded,
                                        &w->skill, NULL),
                     0);
    skill_finish(&w->skill);
    assert_int_equal(
        skill_archive_reload(w->tar_fd, loaded.digest, &w->archive, &w->skill, NULL), 0);
    skill_archive_finish(&loaded);
    assert_int_equal(fstat(w->tar_fd, &st), 0);
    w->tar_bytes = (uint64_t)st.st_size;
}

static void close_world(struct world *w)
{
    skill_archive_finish(&w->archive);
    skill_finish(&w->skill);
    fd_close(&w->tar_fd);
    buf_finish(&w->head);
}

struct inode {
    uint16_t mode, n_links;
    uint32_t size, block;
    uint64_t tail_at; /* where its last block lies, behind it; 0: with the others */
};

/* Bytes of the disk: the head, then the tar. */
static void read_disk(const struct world *w, uint64_t at, void *ret, size_t len)
{
    size_t in_head = at < w->head.len ? w->head.len - (size_t)at : 0;

    in_head = in_head < len ? in_head : len;
    if (in_head > 0)
        memcpy(ret, w->head.data + at, in_head);
    if (in_head < len)
        assert_int_equal(fd_pread_full(w->tar_fd, (uint8_t *)ret + in_head, len - in_head,
                                       at + in_head - w->head.len),
                         len - in_head);
}

static struct inode read_inode(const struct world *w, uint64_t number)
{
    uint8_t raw[32] = {0};
    struct bytes_reader r = bytes_reader_init(raw, sizeof(raw));
    struct inode i;
    uint16_t layout;

    read_disk(w, number * sizeof(raw), raw, sizeof(raw));
    layout = bytes_get_u16(&r);
    assert_true(layout == 0 || layout == 4);
    i.tail_at = layout == 4 ? (number + 1) * sizeof(raw) : 0;
    assert_int_equal(bytes_get_u16(&r), 0); /* without attributes */
    i.mode = bytes_get_u16(&r);
    i.n_links = bytes_get_u16(&r);
    i.size = bytes_get_u32(&r);
    assert_int_equal(bytes_get_u32(&r), 0);
    i.block = bytes_get_u32(&r);
    assert_int_not_equal(bytes_get_u32(&r), 0);
    assert_int_equal(bytes_get_u64(&r), 0); /* root's */
    return i;
}

static char *read_content(const struct world *w, const struct inode *i)
{
    char *content = calloc(1, (size_t)i->size + 1);
    size_t tail = i->tail_at ? (i->size - 1) % BLOCK + 1 : 0;

    assert_non_null(content);
    read_disk(w, (uint64_t)i->block * BLOCK, content, i->size - tail);
    if (tail > 0) {
        /* In the block of the inode. */
        assert_int_equal(i->tail_at / BLOCK, (i->tail_at + tail - 1) / BLOCK);
        read_disk(w, i->tail_at, content + i->size - tail, tail);
    }
    return content;
}

static void check_entry(struct world *w, const char *path, uint64_t number, uint8_t type);

/* One name of a folder, which comes after the one before it. *n_folders counts. */
static void check_name(struct world *w, const char *folder, uint64_t self, const char *name,
                       uint64_t number, uint8_t type, unsigned *n_folders)
{
    char path[TAR_PATH_MAX + 1];

    if (strcmp(name, ".") == 0) {
        assert_int_equal(number, self);
        return;
    }
    *n_folders += type == 2 && strcmp(name, "..") != 0;
    if (strcmp(name, "..") == 0)
        return;
    snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
    check_entry(w, path, number, type);
}

static void check_folder(struct world *w, const char *path, uint64_t number)
{
    struct inode i = read_inode(w, number);
    char *content = read_content(w, &i), last[256] = "";
    unsigned n_folders = 0, n_names = 0;

    for (size_t at = 0; at < i.size; at += BLOCK) {
        size_t len = i.size - at < BLOCK ? i.size - at : BLOCK;
        struct bytes_reader r = bytes_reader_init(content + at, len);
        struct bytes_reader first = bytes_reader_init(content + at + 8, 2);
        size_t n = bytes_get_u16(&first) / 12u;

        assert_true(n > 0);
        for (size_t k = 0; k < n; k++) {
            uint64_t inode = bytes_get_u64(&r);
            uint16_t from = bytes_get_u16(&r);
            uint8_t type = bytes_get_u8(&r);
            uint16_t to;
            char name[256] = "";

            (void)bytes_get_u8(&r);
            assert_true(from >= 12 * n && from < len);
            /* The last one ends with the block, or a zero before that. */
            to = (uint16_t)(from + strnlen(content + at + from, len - from));
            if (k + 1 < n)
                memcpy(&to, content + at + 12 * (k + 1) + 8, 2);
            assert_true(to > from && to <= len && to - from < 256);
            memcpy(name, content + at + from, to - from);
            assert_true(strcmp(last, name) < 0);
            strcpy(last, name);
            check_name(w, path, number, name, inode, type, &n_folders);
            n_names++;
        }
    }
    assert_true(n_names >= 2);
    assert_int_equal(i.mode, S_IFDIR | 0755);
    assert_int_equal(i.n_links, 2 + n_folders);
    free(content);
}

static void check_file(struct world *w, const struct archive_entry_info *entry,
                       const struct inode *i)
{
    char *content = read_content(w, i), *want = calloc(1, entry->size + 1);

    assert_int_equal(i->size, entry->size);
    assert_int_equal(i->mode, S_IFREG | (entry->executable ? 0755 : 0644));
    assert_int_equal(fd_pread_full(w->tar_fd, want, entry->size, entry->offset), entry->size);
    assert_memory_equal(content, want, entry->size);
    free(content);
    free(want);
}

static void check_entry(struct world *w, const char *path, uint64_t number, uint8_t type)
{
    const struct archive_entry_info *entry = skill_archive_find(&w->archive, path);
    struct inode i = read_inode(w, number);
    char *target;

    assert_non_null(entry);
    w->n_seen++;
    if (entry->type == ARCHIVE_ENTRY_DIR) {
        assert_int_equal(type, 2);
        check_folder(w, path, number);
        return;
    }
    assert_int_equal(i.n_links, 1);
    if (entry->type == ARCHIVE_ENTRY_FILE) {
        assert_int_equal(type, 1);
        check_file(w, entry, &i);
        return;
    }
    assert_int_equal(type, 7);
    assert_int_equal(i.mode, S_IFLNK | 0777);
    target = read_content(w, &i);
    assert_string_equal(target, entry->target);
    free(target);
}

static void check_disk(struct world *w)
{
    struct bytes_reader r;

    assert_int_equal(skill_disk_put_head(&w->archive, w->tar_bytes, now_ns, &w->head), 0);
    assert_int_equal(w->head.len % BLOCK, 0);
    r = bytes_reader_init(w->head.data + 1024, 128);
    assert_int_equal(bytes_get_u32(&r), 0xe0f5e1e2);
    assert_int_equal(bytes_get_u64(&r), 0); /* no checksum, no features */
    assert_int_equal(bytes_get_u8(&r), 9);
    assert_int_equal(bytes_get_u8(&r), 0);
    assert_int_equal(bytes_get_u16(&r), 48);
    assert_int_equal(bytes_get_u64(&r), w->archive.n_entries + 1);
    assert_int_equal(bytes_get_u64(&r), 1700000000);
    assert_int_equal(bytes_get_u32(&r), 7);
    assert_int_equal(bytes_get_u32(&r), (w->head.len + w->tar_bytes) / BLOCK);
    while (bytes_left(&r) > 0)
        assert_int_equal(bytes_get_u8(&r), 0);
    check_folder(w, "", 48);
    assert_int_equal(w->n_seen, w->archive.n_entries);
}

static void every_kind_is_found(void **unused)
{
    struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "main.py", .content = "print(1)\n", .mode = 0755},
        {.path = "empty"},
        {.path = "block", .zeros = 512},
        {.path = "more", .zeros = 100000},
        {.path = "a.txt", .content = "a.txt comes between a and a/b"},
        {.path = "a/b/c/d", .content = "deep"},
        {.path = "a/b-c", .content = "x"},
        {.path = "!before", .content = "before the dots"},
        {.path = "-before", .content = "the same"},
        {.path = "link", .link = "a/b/c/d"},
        {.path = "a/up", .link = "../main.py"},
        {.path = "far", .link = "long/" NAME_255 "/../" NAME_255 "/../m" NAME_254},
        {.path = "long/" NAME_255, .content = "255"},
        {.path = "long/m" NAME_254, .content = "another"},
        {0},
    };
    struct world w;
    (void)unused;

    open_world(&w, members);
    check_disk(&w);
    close_world(&w);
}

/* More names than a block holds, of every length that fits in one. */
static void a_large_folder_is_found(void **unused)
{
    enum { N = 1200 };
    static struct member members[N + 2] = {{.path = "SKILL.md", .content = SKILL_MD}};
    static char names[N][300];
    struct world w;
    (void)unused;

    for (unsigned i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "many/%.*s%u", (int)(i % 250), NAME_255, i);
        members[i + 1] = (struct member){.path = names[i], .content = names[i]};
    }
    open_world(&w, members);
    check_disk(&w);
    close_world(&w);
}

static void a_tar_that_was_cut_is_refused(void **unused)
{
    struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD}, {.path = "zeros", .zeros = 10000}, {0}};
    const uint64_t content = 20 * BLOCK, end = 1024;
    struct world w;
    (void)unused;

    open_world(&w, members);
    assert_int_equal(skill_disk_put_head(&w.archive, w.tar_bytes - end - 1, now_ns, &w.head),
                     -EINVAL);
    assert_int_equal(
        skill_disk_put_head(&w.archive, w.tar_bytes - end - content - BLOCK, now_ns, &w.head),
        -EINVAL);
    assert_int_equal(w.head.len, 0);
    assert_int_equal(skill_disk_put_head(&w.archive, w.tar_bytes - end, now_ns, &w.head), 0);
    close_world(&w);
}

static void what_is_no_tree_is_refused(void **unused)
{
    char file[] = "file", below[] = "file/below", lost[] = "lost/below", twice[] = "a//b",
         folder[] = "a", target[] = "";
    struct archive_entry_info cases[][2] = {
        {{.path = file, .type = ARCHIVE_ENTRY_FILE},
         {.path = below, .type = ARCHIVE_ENTRY_FILE}},
        {{.path = file, .type = ARCHIVE_ENTRY_FILE},
         {.path = lost, .type = ARCHIVE_ENTRY_FILE}},
        {{.path = folder, .type = ARCHIVE_ENTRY_DIR},
         {.path = twice, .type = ARCHIVE_ENTRY_FILE}},
        {{.path = folder, .type = ARCHIVE_ENTRY_DIR},
         {.path = file, .type = ARCHIVE_ENTRY_LINK, .target = target}},
        {{.path = folder, .type = ARCHIVE_ENTRY_DIR},
         {.path = file, .type = ARCHIVE_ENTRY_FILE, .offset = 700, .size = 1}},
    };
    (void)unused;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skill_archive archive = {.entries = cases[i], .n_entries = 2};
        _cleanup_buf_ struct buf head = buf_init(1u << 20);

        assert_int_equal(skill_disk_put_head(&archive, 1u << 20, now_ns, &head), -EINVAL);
        assert_int_equal(head.len, 0);
    }
}

static void a_buffer_may_be_too_small(void **unused)
{
    struct member members[] = {{.path = "SKILL.md", .content = SKILL_MD}, {0}};
    struct world w;
    (void)unused;

    open_world(&w, members);
    /* Two blocks before the first of its own, and one of inodes. */
    for (size_t max = 0; max <= 4 * BLOCK; max += BLOCK / 2) {
        _cleanup_buf_ struct buf head = buf_init(max);
        int r = skill_disk_put_head(&w.archive, w.tar_bytes, now_ns, &head);

        assert_int_equal(r, max < 4 * BLOCK ? -E2BIG : 0);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_found),
        cmocka_unit_test(a_large_folder_is_found),
        cmocka_unit_test(a_tar_that_was_cut_is_refused),
        cmocka_unit_test(what_is_no_tree_is_refused),
        cmocka_unit_test(a_buffer_may_be_too_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
