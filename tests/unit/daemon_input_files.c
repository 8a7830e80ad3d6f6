/* SPDX-License-Identifier: Apache-2.0 */
/* The tar stream of an execution's input files: whole at every read size, and what is refused.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/input_files.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/input-files-XXXXXX";
static int folder_fd;

static int make_folder(void **state)
{
    (void)state;
    folder_fd = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return folder_fd < 0 ? -1 : 0;
}

/* Fails where a link was left over. */
static int remove_folder(void **state)
{
    (void)state;
    close(folder_fd);
    return rmdir(folder);
}

static void add(struct input_files *files, const char *path, char fill, size_t len)
{
    static unsigned made;
    char *content = malloc(len + 1), name[32];
    int fd;

    snprintf(name, sizeof(name), "link%u", made++);
    files->dir_fd = folder_fd;
    fd = openat(folder_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_non_null(content);
    memset(content, fill, len);
    assert_int_equal(fd_write_full(fd, content, len), 0);
    free(content);
    close(fd);
    assert_int_equal(input_files_add(files, strdup(path), strdup(name), len), 0);
}

/* What a reader of tar sees, as text: "path=size:sum;" for each file. */
struct seen {
    char text[8192];
    uint64_t sum;
    char path[TAR_PATH_MAX];
    uint64_t size;
};

static int begin(void *user, const struct tar_header *header)
{
    struct seen *seen = user;

    assert_int_equal(header->type, TAR_FILE);
    assert_int_equal(header->mode, 0644);
    snprintf(seen->path, sizeof(seen->path), "%s", header->path);
    seen->size = header->size;
    seen->sum = 0;
    return 0;
}

static int data(void *user, const uint8_t *bytes, size_t len)
{
    struct seen *seen = user;

    for (size_t i = 0; i < len; i++)
        seen->sum += bytes[i];
    return 0;
}

static int end(void *user)
{
    struct seen *seen = user;
    size_t used = strlen(seen->text);

    snprintf(seen->text + used, sizeof(seen->text) - used, "%.60s=%llu:%llu;", seen->path,
             (unsigned long long)seen->size, (unsigned long long)seen->sum);
    return 0;
}

static void read_all(const struct input_files *files, size_t size, struct seen *seen)
{
    static const struct tar_ops ops = {.begin = begin, .data = data, .end = end};
    struct input_stream s = input_stream_init(files);
    struct tar_reader *reader = tar_reader_create(&ops, seen);
    uint8_t *chunk = malloc(size);
    uint64_t total = 0;
    size_t n = 1;

    assert_non_null(reader);
    assert_non_null(chunk);
    *seen = (struct seen){0};
    while (n > 0) {
        assert_int_equal(input_stream_read(&s, chunk, size, &n, NULL), 0);
        assert_true(n <= size);
        total += n;
        assert_int_equal(tar_reader_push(reader, chunk, n, NULL), 0);
    }
    assert_true(tar_reader_complete(reader));
    assert_int_equal(total % TAR_BLOCK, 0);
    /* The end stays the end. */
    assert_int_equal(input_stream_read(&s, chunk, size, &n, NULL), 0);
    assert_int_equal(n, 0);
    free(chunk);
    tar_reader_destroy(reader);
    input_stream_finish(&s);
}

static void carries_every_file(void **state)
{
    static const size_t sizes[] = {1, 7, 511, 512, 513, 65536};
    static const char expected[] =
        "a=0:0;data/in.csv=512:49664;\xc3\xa4=1:98;"
        "long/long/long/long/long/long/long/long/long/long/long/long/"
        "=100000:9900000;";
    struct input_files files = {0};
    char path[160] = "";
    struct seen seen;

    (void)state;
    for (int i = 0; i < 30; i++)
        strcat(path, "long/");
    strcat(path, "x");
    add(&files, "a", 'x', 0);
    add(&files, "data/in.csv", 'a', 512);
    add(&files, "\xc3\xa4", 'b', 1);
    add(&files, path, 'c', 100000);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        read_all(&files, sizes[i], &seen);
        assert_string_equal(seen.text, expected);
    }
    assert_int_equal(input_files_check(&files, NULL), 0);
    input_files_finish(&files);
}

static void no_file_is_no_byte(void **state)
{
    struct input_files files = {0};
    struct input_stream s = input_stream_init(&files);
    uint8_t chunk[600];
    size_t n = 1;

    (void)state;
    assert_int_equal(input_stream_read(&s, chunk, sizeof(chunk), &n, NULL), 0);
    assert_int_equal(n, 0);
    s = input_stream_init(NULL);
    assert_int_equal(input_stream_read(&s, chunk, sizeof(chunk), &n, NULL), 0);
    assert_int_equal(n, 0);
}

/* A file that is shorter than it was, as one on a bad disk, is an error and no endless wait. */
static void a_short_file_is_an_error(void **state)
{
    struct input_files files = {0};
    struct input_stream s;
    struct err err = {0};
    uint8_t chunk[4096];
    size_t n;

    (void)state;
    add(&files, "a", 'x', 100);
    files.items[0].bytes = 1000;
    s = input_stream_init(&files);
    assert_int_equal(input_stream_read(&s, chunk, sizeof(chunk), &n, &err), -EIO);
    assert_non_null(strstr(err.message, "cannot read the input file a"));
    input_stream_finish(&s);
    input_files_finish(&files);
}

static void paths_exclude_each_other(void **state)
{
    static const char *const bad[][2] = {{"a", "a"}, {"a/b", "a"}, {"a", "a/b/c"}};
    static const char *const beside[] = {"a.b", "a ", "a-/b"}; /* between them by their bytes */
    static const char *const good[][2] = {{"a", "b"}, {"a", "ab"}, {"a/b", "a/c"}, {"a", "A"}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct input_files files = {0};
        struct err err = {0};

        for (size_t k = 0; k < 3; k++)
            add(&files, beside[k], 'x', 1);
        add(&files, bad[i][0], 'x', 1);
        add(&files, bad[i][1], 'x', 1);
        assert_int_equal(input_files_check(&files, &err), -EINVAL);
        assert_non_null(strstr(err.message, "\"a"));
        input_files_finish(&files);
    }
    for (size_t i = 0; i < 4; i++) {
        struct input_files files = {0};

        add(&files, good[i][0], 'x', 1);
        add(&files, good[i][1], 'x', 1);
        assert_int_equal(input_files_check(&files, NULL), 0);
        input_files_finish(&files);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_every_file),
        cmocka_unit_test(no_file_is_no_byte),
        cmocka_unit_test(a_short_file_is_an_error),
        cmocka_unit_test(paths_exclude_each_other),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
