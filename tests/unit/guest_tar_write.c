/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/tar_write: what it streams, tar_read unpacks to the same files; links, pipes and
 * limits of a hostile tree are left out and said.
 */
#include "guest-init/tar_write.h"

#include <errno.h>

#include "base/buf.h"
#include "guest-init/tar_read.h"
#include "tests/unit/guest_tree.h"

static const struct tar_limits wide = {.files_max = 1000, .bytes_max = 1u << 20};

static int sink_to_buf(void *context, const void *data, size_t len)
{
    return buf_append(context, data, len);
}

/* Scans, streams and unpacks a tree into another. */
static void copy_tree(struct tree *from, const struct tar_list *list, struct tree *to)
{
    struct buf b = buf_init(8u << 20);
    struct tar_read t;

    (void)from;
    assert_int_equal(tar_list_stream(list, sink_to_buf, &b), 0);
    assert_int_equal(b.len % TAR_BLOCK, 0);
    tar_read_init(&t, to->fd, 1u << 20, 1000);
    assert_int_equal(tar_read_feed(&t, b.data, b.len, NULL), 0);
    assert_int_equal(tar_read_end(&t, NULL), 0);
    tar_read_finish(&t);
    buf_finish(&b);
}

static void test_round_trip(void **state)
{
    char name[256], path[600];
    struct tree from, to;
    struct tar_list list = {0};

    (void)state;
    tree_make(&from);
    tree_make(&to);
    assert_int_equal(mkdirat(from.fd, "b", 0755), 0);
    tree_write(&from, "b/two", "2");
    tree_write(&from, "a", "one");
    tree_write(&from, "empty", "");
    memset(name, 'n', 255);
    name[255] = 0;
    assert_int_equal(mkdirat(from.fd, name, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%s", name, name);
    tree_write(&from, path, "long");
    assert_int_equal(fchmodat(from.fd, "a", 0700, 0), 0);
    assert_int_equal(tar_list_scan(from.fd, &wide, &list), 0);
    assert_int_equal(list.count, 4);
    assert_false(list.truncated);
    assert_int_equal(list.bytes, 8);
    assert_string_equal(list.files[0].path, "a");
    assert_true(list.files[0].executable);
    assert_string_equal(list.files[1].path, "b/two");
    copy_tree(&from, &list, &to);
    assert_string_equal(tree_read(&to, "a"), "one");
    assert_string_equal(tree_read(&to, "b/two"), "2");
    assert_string_equal(tree_read(&to, "empty"), "");
    assert_string_equal(tree_read(&to, path), "long");
    tar_list_finish(&list);
    tree_remove(&from);
    tree_remove(&to);
}

/* One with nothing but a link in it is empty too. */
static void test_empty_folders(void **state)
{
    const struct tar_limits limits = {.files_max = 3, .bytes_max = 1u << 20, .folders = true};
    struct tree from, to;
    struct tar_list list = {0};
    struct stat st;

    (void)state;
    tree_make(&from);
    tree_make(&to);
    assert_int_equal(mkdirat(from.fd, "a", 0755), 0);
    assert_int_equal(mkdirat(from.fd, "a/b", 0700), 0);
    assert_int_equal(mkdirat(from.fd, "c", 0755), 0);
    assert_int_equal(symlinkat("/etc", from.fd, "c/link"), 0);
    assert_int_equal(mkdirat(from.fd, "d", 0755), 0);
    tree_write(&from, "d/file", "1");
    assert_int_equal(tar_list_scan(from.fd, &limits, &list), 0);
    assert_int_equal(list.count, 3);
    assert_false(list.truncated);
    assert_string_equal(list.files[0].path, "a/b");
    assert_true(list.files[0].is_folder);
    assert_false(list.files[2].is_folder);
    copy_tree(&from, &list, &to);
    assert_int_equal(fstatat(to.fd, "a/b", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(fstatat(to.fd, "c", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_string_equal(tree_read(&to, "d/file"), "1");
    tar_list_finish(&list);
    assert_int_equal(mkdirat(from.fd, "e", 0755), 0);
    assert_int_equal(tar_list_scan(from.fd, &limits, &list), 0);
    assert_int_equal(list.count, 3);
    assert_true(list.truncated);
    tar_list_finish(&list);
    tree_remove(&from);
    tree_remove(&to);
}

static void test_nothing_is_an_end_mark(void **state)
{
    static const uint8_t zeros[2 * TAR_BLOCK];
    struct buf b = buf_init(4096);
    struct tar_list list = {0};

    (void)state;
    assert_int_equal(tar_list_stream(&list, sink_to_buf, &b), 0);
    assert_int_equal(b.len, sizeof(zeros));
    assert_memory_equal(b.data, zeros, sizeof(zeros));
    buf_finish(&b);
}

static void test_only_regular_files(void **state)
{
    struct tree from;
    struct tar_list list = {0};

    (void)state;
    tree_make(&from);
    tree_write(&from, "real", "r");
    assert_int_equal(symlinkat("/etc/passwd", from.fd, "file link"), 0);
    assert_int_equal(symlinkat("/etc", from.fd, "directory link"), 0);
    assert_int_equal(mkfifoat(from.fd, "pipe", 0600), 0);
    assert_int_equal(linkat(from.fd, "real", from.fd, "hard link", 0), 0);
    assert_int_equal(tar_list_scan(from.fd, &wide, &list), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.files[0].path, "hard link");
    tar_list_finish(&list);
    tree_remove(&from);
}

/* A file that becomes a link or shrinks after the scan is padded, never followed. */
static void test_changes_after_the_scan(void **state)
{
    struct tree from, to;
    struct tar_list list = {0};

    (void)state;
    tree_make(&from);
    tree_make(&to);
    tree_write(&from, "gone", "12");
    tree_write(&from, "linked", "34");
    tree_write(&from, "shrunk", "56");
    assert_int_equal(tar_list_scan(from.fd, &wide, &list), 0);
    assert_int_equal(unlinkat(from.fd, "gone", 0), 0);
    assert_int_equal(unlinkat(from.fd, "linked", 0), 0);
    assert_int_equal(symlinkat("shrunk", from.fd, "linked"), 0);
    tree_write(&from, "shrunk", "5");
    copy_tree(&from, &list, &to);
    assert_string_equal(tree_read(&to, "gone"), "");
    assert_string_equal(tree_read(&to, "linked"), "");
    assert_string_equal(tree_read(&to, "shrunk"), "5");
    tar_list_finish(&list);
    tree_remove(&from);
    tree_remove(&to);
}

static void test_limits(void **state)
{
    struct tar_limits limits = {.files_max = 2, .bytes_max = 100};
    struct tar_list list = {0};
    struct tree from;

    (void)state;
    tree_make(&from);
    tree_write(&from, "a", "1");
    tree_write(&from, "b", "2");
    tree_write(&from, "c", "3");
    assert_int_equal(tar_list_scan(from.fd, &limits, &list), 0);
    assert_int_equal(list.count, 2);
    assert_true(list.truncated);
    assert_string_equal(list.files[1].path, "b");
    tar_list_finish(&list);
    limits = (struct tar_limits){.files_max = 10, .bytes_max = 2};
    assert_int_equal(tar_list_scan(from.fd, &limits, &list), 0);
    assert_int_equal(list.count, 2);
    assert_true(list.truncated);
    tar_list_finish(&list);
    tree_write(&from, "huge", "");
    {
        _cleanup_fd_ int fd = openat(from.fd, "huge", O_WRONLY | O_CLOEXEC);

        assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    }
    assert_int_equal(tar_list_scan(from.fd, &wide, &list), 0);
    assert_int_equal(list.count, 3);
    assert_true(list.truncated);
    tar_list_finish(&list);
    tree_remove(&from);
}

static void test_many_names_are_bounded(void **state)
{
    struct tar_limits limits = {.files_max = 5, .bytes_max = 1u << 20};
    struct tar_list list = {0};
    struct tree from;
    char name[16];

    (void)state;
    tree_make(&from);
    tree_write(&from, "file", "x");
    for (unsigned i = 0; i < 6000; i++) {
        (void)snprintf(name, sizeof(name), "l%05u", i);
        assert_int_equal(linkat(from.fd, "file", from.fd, name, 0), 0);
    }
    assert_int_equal(tar_list_scan(from.fd, &limits, &list), 0);
    assert_int_equal(list.count, 5);
    assert_true(list.truncated);
    tar_list_finish(&list);
    tree_remove(&from);
}

static void test_deep_tree(void **state)
{
    struct tar_list list = {0};
    struct tree from;
    char path[1024] = "";

    (void)state;
    tree_make(&from);
    for (unsigned i = 0; i < 200; i++) {
        strcat(path, i ? "/d" : "d");
        assert_int_equal(mkdirat(from.fd, path, 0755), 0);
    }
    strcat(path, "/f");
    tree_write(&from, path, "deep");
    tree_write(&from, "z", "shallow");
    assert_int_equal(tar_list_scan(from.fd, &wide, &list), 0);
    assert_int_equal(list.count, 1);
    assert_true(list.truncated);
    tar_list_finish(&list);
    tree_remove(&from);
}

/* Two directories in one stream: the first keeps a name both have. */
static void test_two_directories(void **state)
{
    static const char *const skip[] = {"files", "output.json", NULL};
    struct tar_limits limits = wide;
    struct tar_list list = {0};
    struct tree out, to;

    (void)state;
    tree_make(&out);
    tree_make(&to);
    assert_int_equal(mkdirat(out.fd, "files", 0755), 0);
    assert_int_equal(mkdirat(out.fd, "sub", 0755), 0);
    tree_write(&out, "files/same", "from files");
    tree_write(&out, "same", "beside");
    tree_write(&out, "output.json", "{}");
    tree_write(&out, "sub/output.json", "kept");
    {
        _cleanup_fd_ int files = openat(out.fd, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(tar_list_scan(files, &limits, &list), 0);
        limits.skip = skip;
        assert_int_equal(tar_list_scan(out.fd, &limits, &list), 0);
        assert_int_equal(list.count, 2);
        copy_tree(&out, &list, &to);
    }
    assert_string_equal(tree_read(&to, "same"), "from files");
    assert_string_equal(tree_read(&to, "sub/output.json"), "kept");
    tar_list_finish(&list);
    tree_remove(&out);
    tree_remove(&to);
}

static int sink_fails(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return -EPIPE;
}

static void test_sink_error_ends_the_stream(void **state)
{
    struct tar_list list = {0};

    (void)state;
    assert_int_equal(tar_list_stream(&list, sink_fails, NULL), -EPIPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_empty_folders),
        cmocka_unit_test(test_nothing_is_an_end_mark),
        cmocka_unit_test(test_only_regular_files),
        cmocka_unit_test(test_changes_after_the_scan),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_names_are_bounded),
        cmocka_unit_test(test_deep_tree),
        cmocka_unit_test(test_two_directories),
        cmocka_unit_test(test_sink_error_ends_the_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
