/* SPDX-License-Identifier: Apache-2.0 */
/* A session's stream: a plain tar of files and empty folders, the same for the same tree. */
#include "tests/unit/cmocka_all.h"

#include "api/skill/artifacts.h"
#include "api/skill/artifacts_read.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/tar_block.h"
#include "guest-init/tar_read.h"
#include "tests/unit/guest_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct artifacts_limits wide = {.files = 5,
                                             .folders = 100,
                                             .names_bytes = 10000,
                                             .bytes = 100000,
                                             .file_bytes = 100000,
                                             .is_tree = true};

static void put(struct buf *out, char type, const char *path, const char *content,
                uint64_t mtime_s)
{
    static const char zero[TAR_BLOCK];
    const struct tar_numbers numbers = {
        .size = strlen(content), .mtime_s = mtime_s, .mode = 0755};
    struct tar_block block;

    tar_block_make(&block, type, path, type == '2' ? "/etc/passwd" : "", &numbers);
    (void)buf_append(out, &block, sizeof(block));
    (void)buf_append(out, content, numbers.size);
    (void)buf_append(out, zero, tar_padding(numbers.size));
}

static void put_end(struct buf *out)
{
    static const char zero[TAR_TRAILER];

    (void)buf_append(out, zero, sizeof(zero));
}

/* What becomes of a stream; the descriptor is the caller's. */
static int make_tree(const struct buf *tar, bool *ret_truncated, size_t *ret_warnings)
{
    int fd = memfd_create("out", MFD_CLOEXEC);
    struct artifacts *a = artifacts_create(fd, memfd_create("spool", MFD_CLOEXEC), &wide, NULL);

    assert_non_null(a);
    assert_int_equal(artifacts_push(a, tar->data, tar->len, NULL), 0);
    assert_int_equal(artifacts_end(a, NULL), 0);
    *ret_truncated = artifacts_kept(a)->truncated;
    *ret_warnings = artifacts_kept(a)->warnings.len;
    artifacts_destroy(a);
    return fd;
}

static struct buf tree_of(uint64_t mtime_s)
{
    struct buf tar = buf_init(1u << 20);

    put(&tar, '0', "a", "alpha", mtime_s);
    put(&tar, '5', "empty", "", mtime_s);
    put(&tar, '0', "\xc3\xa4/deep", "", mtime_s);
    put_end(&tar);
    return tar;
}

/* A guest takes it back. */
static void unpack(int fd, struct tree *to)
{
    struct buf bytes = buf_init(1u << 20);
    struct tar_read reader;
    char data[4096];
    ssize_t n;

    for (uint64_t at = 0; (n = fd_pread_full(fd, data, sizeof(data), at)) > 0;
         at += (uint64_t)n)
        assert_int_equal(buf_append(&bytes, data, (size_t)n), 0);
    tar_read_init(&reader, to->fd, 1u << 20, 100);
    assert_int_equal(tar_read_feed(&reader, bytes.data, bytes.len, NULL), 0);
    assert_int_equal(tar_read_end(&reader, NULL), 0);
    tar_read_finish(&reader);
    buf_finish(&bytes);
}

static void a_guest_takes_it_back(void **state)
{
    struct buf tar = tree_of(1700000000);
    struct tree to;
    struct stat st;
    bool truncated;
    size_t warnings;
    int fd;

    (void)state;
    tree_make(&to);
    fd = make_tree(&tar, &truncated, &warnings);
    assert_false(truncated);
    assert_int_equal(warnings, 0);
    unpack(fd, &to);
    assert_string_equal(tree_read(&to, "a"), "alpha");
    assert_string_equal(tree_read(&to, "\xc3\xa4/deep"), "");
    assert_int_equal(fstatat(to.fd, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(fstatat(to.fd, "empty", &st, 0), 0);
    assert_true(S_ISDIR(st.st_mode));
    fd_close(&fd);
    tree_remove(&to);
    buf_finish(&tar);
}

static void the_same_tree_is_the_same_bytes(void **state)
{
    struct buf one = tree_of(1700000000), two = tree_of(1800000000);
    char a[8192] = "", b[8192] = "";
    bool truncated;
    size_t warnings;
    int fds[2];

    (void)state;
    fds[0] = make_tree(&one, &truncated, &warnings);
    fds[1] = make_tree(&two, &truncated, &warnings);
    assert_true(fd_pread_full(fds[0], a, sizeof(a), 0) > 1024);
    assert_int_equal(fd_pread_full(fds[1], b, sizeof(b), 0),
                     fd_pread_full(fds[0], a, sizeof(a), 0));
    assert_memory_equal(a, b, sizeof(a));
    fd_close(&fds[0]);
    fd_close(&fds[1]);
    buf_finish(&one);
    buf_finish(&two);
}

static int visit(void *ctx, const char *path, uint64_t bytes)
{
    struct buf *out = ctx;

    (void)buf_printf(out, "%s=%llu;", path, (unsigned long long)bytes);
    return strcmp(path, "stop") == 0 ? 7 : 0;
}

static void hostile_entries_are_left_out(void **state)
{
    struct buf tar = buf_init(1u << 20), names = buf_init(1000);
    bool truncated;
    size_t warnings;
    int fd;

    (void)state;
    put(&tar, '5', "../up", "", 0);
    put(&tar, '5', "/abs", "", 0);
    put(&tar, '0', "/etc/passwd", "x", 0);
    put(&tar, '2', "link", "", 0);
    put(&tar, '5', "d", "", 0);
    put(&tar, '0', "d/in", "it was to be empty", 0);
    put(&tar, '5', "d", "", 0);
    put(&tar, '0', "stop", "1", 0);
    put(&tar, '0', "z", "", 0);
    put_end(&tar);
    fd = make_tree(&tar, &truncated, &warnings);
    assert_false(truncated);
    assert_int_equal(warnings, 6);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(artifact_each(fd, visit, &names, NULL), 7);
    assert_string_equal(buf_cstr(&names), "d/=0;stop=1;");
    buf_finish(&names);
    buf_finish(&tar);
}

static void folders_count(void **state)
{
    struct buf tar = buf_init(1u << 20);
    char name[8];
    bool truncated;
    size_t warnings;
    int fd;

    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        put(&tar, '5', name, "", 0);
    }
    put_end(&tar);
    fd = make_tree(&tar, &truncated, &warnings);
    assert_true(truncated);
    fd_close(&fd);
    buf_finish(&tar);
}

static void damage_is_told(void **state)
{
    struct buf names = buf_init(1000);
    struct err err = {0};
    int fd = memfd_create("junk", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(fd_pwrite_full(fd, "this is no tar", 14, 0), 0);
    assert_int_equal(artifact_each(fd, visit, &names, &err), -EIO);
    assert_non_null(strstr(err.message, "damaged"));
    buf_finish(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guest_takes_it_back),
        cmocka_unit_test(the_same_tree_is_the_same_bytes),
        cmocka_unit_test(hostile_entries_are_left_out),
        cmocka_unit_test(folders_count),
        cmocka_unit_test(damage_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
