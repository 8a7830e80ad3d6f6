/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/tar_read: a stream makes what it says, cut anywhere; hostile names and links never
 * reach outside the directory; limits and malformed headers end the stream.
 */
#include "guest-init/tar_read.h"

#include <errno.h>

#include "base/buf.h"
#include "tests/unit/guest_tree.h"

#define MAX_BYTES   (1u << 20)
#define MAX_ENTRIES 100u

static void fix_sum(char *block)
{
    unsigned sum = 0;

    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
}

/* Adds a header for `size` bytes of data. */
static void add_header(struct buf *b, const char *name, char type, const char *link,
                       size_t size)
{
    char block[TAR_BLOCK] = {0};

    memcpy(block, name, strnlen(name, 100));
    (void)snprintf(block + 100, 8, "%07o", type == 'x' ? 0644u : 0755u);
    (void)snprintf(block + 124, 12, "%011o", (unsigned)size & 07777777777u);
    block[156] = type;
    memcpy(block + 157, link, strnlen(link, 100));
    (void)snprintf(block + 257, 6, "ustar");
    block[263] = block[264] = '0';
    fix_sum(block);
    assert_int_equal(buf_append(b, block, sizeof(block)), 0);
}

static void add_data(struct buf *b, const char *data, size_t len)
{
    static const char zeros[TAR_BLOCK];

    assert_int_equal(buf_append(b, data, len), 0);
    assert_int_equal(buf_append(b, zeros, -len % TAR_BLOCK), 0);
}

static void add_file(struct buf *b, const char *name, const char *text)
{
    add_header(b, name, '0', "", strlen(text));
    add_data(b, text, strlen(text));
}

static void add_pax(struct buf *b, const char *records)
{
    add_header(b, "pax", 'x', "", strlen(records));
    add_data(b, records, strlen(records));
}

static void add_end(struct buf *b)
{
    static const char zeros[2 * TAR_BLOCK];

    assert_int_equal(buf_append(b, zeros, sizeof(zeros)), 0);
}

static int read_in_steps(int dir, const struct buf *b, size_t step)
{
    struct tar_read t;
    int r = 0;

    tar_read_init(&t, dir, MAX_BYTES, MAX_ENTRIES);
    for (size_t at = 0; r == 0 && at < b->len; at += step)
        r = tar_read_feed(&t, b->data + at, step < b->len - at ? step : b->len - at, NULL);
    if (r == 0)
        r = tar_read_end(&t, NULL);
    tar_read_finish(&t);
    return r;
}

static void test_any_cut(void **state)
{
    static const size_t steps[] = {1, 7, 511, 512, 513, 1000, 1u << 20};
    struct buf b = buf_init(MAX_BYTES);

    (void)state;
    add_header(&b, "dir/", '5', "", 0);
    add_file(&b, "dir/a.txt", "content of a");
    add_file(&b, "./implied/deep/b", "");
    add_header(&b, "link", '2', "dir/a.txt", 0);
    add_pax(&b, "19 path=from pax/c\n20 comment=whatever\n");
    add_file(&b, "ignored", "c");
    add_end(&b);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct tree t;
        struct stat st;
        char link[32] = {0};

        tree_make(&t);
        assert_int_equal(read_in_steps(t.fd, &b, steps[i]), 0);
        assert_string_equal(tree_read(&t, "dir/a.txt"), "content of a");
        assert_string_equal(tree_read(&t, "implied/deep/b"), "");
        assert_string_equal(tree_read(&t, "from pax/c"), "c");
        assert_string_equal(tree_read(&t, "ignored"), "-");
        assert_int_equal(readlinkat(t.fd, "link", link, sizeof(link) - 1), 9);
        assert_int_equal(fstatat(t.fd, "dir/a.txt", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        tree_remove(&t);
    }
    buf_finish(&b);
}

static void test_every_truncation(void **state)
{
    struct buf b = buf_init(MAX_BYTES);

    (void)state;
    add_pax(&b, "12 path=a/b\n");
    add_file(&b, "x", "data");
    add_end(&b);
    for (size_t len = 0; len < b.len; len++) {
        struct buf cut = {.data = b.data, .len = len};
        struct tree t;
        int r;

        tree_make(&t);
        r = read_in_steps(t.fd, &cut, 1u << 20);
        /* The pax header alone makes no entry; after the file one zero block is an end mark. */
        assert_int_equal(r == 0, len == 0 || len == 1024 || len == b.len - TAR_BLOCK);
        tree_remove(&t);
    }
    buf_finish(&b);
}

/* One entry of this name is refused and makes nothing outside. */
static void refuse_name(const char *name, char type)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    tree_make(&t);
    assert_int_equal(mkdirat(t.fd, "root", 0755), 0);
    add_header(&b, name, type, "target", 0);
    add_end(&b);
    {
        _cleanup_fd_ int root = openat(t.fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(read_in_steps(root, &b, 512) < 0);
    }
    assert_int_equal(unlinkat(t.fd, "root", AT_REMOVEDIR), 0);
    tree_remove(&t);
    buf_finish(&b);
}

static void test_hostile_names(void **state)
{
    static const char *const names[] = {"../x", "..", "a/../../x", "/abs", "/", "a/..", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        refuse_name(names[i], '0');
        refuse_name(names[i], '2');
        if (names[i][0])
            refuse_name(names[i], '5');
    }
    refuse_name(".", '0');
}

static void test_unsupported_types(void **state)
{
    static const char types[] = {'1', '3', '4', '6', '7', 'L', 'K', 'S', 'V', '\x80'};

    (void)state;
    for (size_t i = 0; i < sizeof(types); i++)
        refuse_name("name", types[i]);
}

static void test_links_are_not_followed(void **state)
{
    static const char *const targets[] = {"..", "/tmp", "../outside", "."};

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct buf b = buf_init(MAX_BYTES);
        struct tree t;

        tree_make(&t);
        assert_int_equal(mkdirat(t.fd, "root", 0755), 0);
        tree_write(&t, "outside", "untouched");
        add_header(&b, "link", '2', targets[i], 0);
        add_file(&b, i % 2 ? "link" : "link/file", "overwritten");
        add_end(&b);
        {
            _cleanup_fd_ int root = openat(t.fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            assert_true(read_in_steps(root, &b, 512) < 0);
        }
        assert_string_equal(tree_read(&t, "outside"), "untouched");
        assert_string_equal(tree_read(&t, "file"), "-");
        tree_remove(&t);
        buf_finish(&b);
    }
}

static void test_duplicates_are_refused(void **state)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    (void)state;
    tree_make(&t);
    add_file(&b, "twice", "1");
    add_file(&b, "twice", "2");
    add_end(&b);
    assert_int_equal(read_in_steps(t.fd, &b, 512), -EEXIST);
    assert_string_equal(tree_read(&t, "twice"), "1");
    tree_remove(&t);
    buf_finish(&b);
}

static void test_long_names(void **state)
{
    char path[600], record[700];
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    (void)state;
    tree_make(&t);
    memset(path, 'd', sizeof(path));
    path[200] = path[400] = '/';
    path[599] = 0;
    (void)snprintf(record, sizeof(record), "609 path=%s\n", path);
    assert_int_equal(strlen(record), 609);
    add_pax(&b, record);
    add_file(&b, "short", "long");
    memset(path, 'p', 100);
    path[100] = 0;
    add_file(&b, path, "exactly 100");
    add_end(&b);
    assert_int_equal(read_in_steps(t.fd, &b, 512), 0);
    assert_string_equal(tree_read(&t, path), "exactly 100");
    memset(path, 'd', 200);
    path[200] = '/';
    assert_string_equal(tree_read(&t, path), "long");
    tree_remove(&t);
    buf_finish(&b);
}

static void test_prefix(void **state)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    (void)state;
    tree_make(&t);
    add_header(&b, "name", '0', "", 0);
    memcpy(b.data + 345, "some/prefix", 11);
    fix_sum((char *)b.data);
    add_end(&b);
    assert_int_equal(read_in_steps(t.fd, &b, 512), 0);
    assert_string_equal(tree_read(&t, "some/prefix/name"), "");
    tree_remove(&t);
    buf_finish(&b);
}

static void test_bad_pax(void **state)
{
    static const char *const records[] = {
        "12 path=a/b",
        "13 path=a/b\n",
        "0 path=a\n",
        "99999999999999999999 path=a\n",
        "path=a\n",
        "6 path\n",
        "5 =a\n",
        "8 path=\n",
        "10 size=1x\n",
        "8 size=\n",
        "29 size=1111111111111111111\n",
        "\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct buf b = buf_init(MAX_BYTES);
        struct tree t;

        tree_make(&t);
        add_pax(&b, records[i]);
        add_file(&b, "name", "");
        add_end(&b);
        assert_true(read_in_steps(t.fd, &b, 512) < 0);
        tree_remove(&t);
        buf_finish(&b);
    }
}

static void test_pax_size(void **state)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    (void)state;
    tree_make(&t);
    add_pax(&b, "9 size=5\n");
    add_header(&b, "sized", '0', "", 0);
    add_data(&b, "12345", 5);
    add_file(&b, "next", "n");
    add_end(&b);
    assert_int_equal(read_in_steps(t.fd, &b, 512), 0);
    assert_string_equal(tree_read(&t, "sized"), "12345");
    assert_string_equal(tree_read(&t, "next"), "n");
    tree_remove(&t);
    buf_finish(&b);
}

static void test_limits(void **state)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tar_read reader;
    struct tree t;

    (void)state;
    tree_make(&t);
    add_file(&b, "a", "12345");
    add_file(&b, "b", "12345");
    tar_read_init(&reader, t.fd, 9, MAX_ENTRIES);
    assert_int_equal(tar_read_feed(&reader, b.data, b.len, NULL), -E2BIG);
    tar_read_finish(&reader);
    tree_remove(&t);
    tree_make(&t);
    tar_read_init(&reader, t.fd, MAX_BYTES, 1);
    assert_int_equal(tar_read_feed(&reader, b.data, b.len, NULL), -E2BIG);
    tar_read_finish(&reader);
    tree_remove(&t);
    buf_finish(&b);
}

static void test_bad_headers(void **state)
{
    static const struct {
        size_t at;
        char value;
        bool fix;
    } cases[] = {
        {0, 'X', false},     /* the checksum no longer fits */
        {124, '9', true},    /* not octal */
        {124, '\x80', true}, /* base-256 size */
        {100, 'x', true},    /* mode */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf b = buf_init(MAX_BYTES);
        struct tree t;

        tree_make(&t);
        add_file(&b, "name", "");
        b.data[cases[i].at] = (uint8_t)cases[i].value;
        if (cases[i].fix)
            fix_sum((char *)b.data);
        add_end(&b);
        assert_int_equal(read_in_steps(t.fd, &b, 512), -EPROTO);
        tree_remove(&t);
        buf_finish(&b);
    }
}

static void test_data_after_the_end(void **state)
{
    struct buf b = buf_init(MAX_BYTES);
    struct tree t;

    (void)state;
    tree_make(&t);
    add_end(&b);
    add_file(&b, "late", "");
    assert_int_equal(read_in_steps(t.fd, &b, 512), -EPROTO);
    assert_string_equal(tree_read(&t, "late"), "-");
    tree_remove(&t);
    buf_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_unsupported_types),
        cmocka_unit_test(test_links_are_not_followed),
        cmocka_unit_test(test_duplicates_are_refused),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_bad_pax),
        cmocka_unit_test(test_pax_size),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_data_after_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
