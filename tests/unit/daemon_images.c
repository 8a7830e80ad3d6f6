/* SPDX-License-Identifier: Apache-2.0 */
/* Which images there are: by the names of files, each with its list of modules. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/images.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    struct images images;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    images_finish(&f->images);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void add(const struct fixture *f, const char *name, const char *text)
{
    char path[256];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void the_usual_one_is_first(void **state)
{
    struct fixture *f = *state;
    char name[IMAGE_NAME_SIZE], path[128];

    add(f, "data.erofs", "");
    add(f, "a-3.erofs", "");
    add(f, "python.erofs", "");
    add(f, "data.modules", "pandas\nnumpy\n");
    add(f, "vmlinux", "");
    add(f, "Big.erofs", "");
    add(f, ".erofs", "");
    add(f, "data.erofs.old", "");
    add(f, "a-name-that-is-longer-than-one-may-be.erofs", "");
    assert_int_equal(images_read(f->dir, &f->images, &f->err), 0);
    assert_int_equal(f->images.n, 3);
    assert_string_equal(f->images.known.list[0].name, "python");
    assert_string_equal(f->images.known.list[1].name, "a-3");
    assert_string_equal(f->images.known.list[2].name, "data");
    assert_int_equal(f->images.list[0].modules.len, 0);
    assert_int_equal(f->images.list[2].modules.len, 2);
    assert_string_equal(f->images.list[2].modules.items[0], "numpy");
    snprintf(path, sizeof(path), "%s/data.erofs", f->dir);
    assert_string_equal(f->images.list[2].path, path);
    assert_int_equal(images_find(&f->images, ""), 0);
    assert_int_equal(images_find(&f->images, "python"), 0);
    assert_int_equal(images_find(&f->images, "data"), 2);
    assert_int_equal(images_find(&f->images, "dat"), -ENOENT);
    images_write(&f->images, 0, name);
    assert_string_equal(name, "");
    images_write(&f->images, 2, name);
    assert_string_equal(name, "data");
}

/* The usual one too: what is remembered of skills is by the digests of the images. */
static void each_has_the_digest_that_it_is_to_have(void **state)
{
    static const char hex[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    struct fixture *f = *state;
    char line[128];

    add(f, "data.erofs", "");
    add(f, "python.erofs", "");
    (void)snprintf(line, sizeof(line), "%s  python.erofs\n", hex);
    add(f, "python.sha256", line);
    (void)snprintf(line, sizeof(line), "%s  data.erofs\n", hex);
    add(f, "data.sha256", line);
    assert_int_equal(images_read(f->dir, &f->images, &f->err), 0);
    assert_string_equal(f->images.known.list[0].name, "python");
    assert_string_equal(f->images.list[0].digest, hex);
    assert_string_equal(f->images.list[1].digest, hex);
}

/* Who wants a machine of it is told that its file is missing. */
static void the_usual_one_need_not_be_there(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(rmdir(f->dir), 0);
    assert_int_equal(images_read(f->dir, &f->images, &f->err), 0);
    assert_int_equal(f->images.n, 1);
    assert_string_equal(f->images.known.list[0].name, "python");
}

static void pass_over(void *ctx, const char *file, const struct err *why)
{
    (void)ctx;
    (void)file;
    (void)why;
}

/* Those of a second folder come after the installation's, and take nobody's name or place. */
static void some_are_added(void **state)
{
    struct fixture *f = *state;
    char folder[128];

    add(f, "python.erofs", "");
    add(f, "data.erofs", "");
    snprintf(folder, sizeof(folder), "%s/more", f->dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    add(f, "more/data.erofs", "");
    add(f, "more/python.erofs", "");
    add(f, "more/tools.erofs", "");
    add(f, "more/tools.manifest",
        "language python 3.12\nlanguage node 20\nprogram bash\nmemory 768Mi\n");
    add(f, "more/broken.erofs", "");
    add(f, "more/broken.manifest", "language python none\n");
    add(f, "more/.new-x", "");
    assert_int_equal(images_read(f->dir, &f->images, &f->err), 0);
    images_read_added(folder, &f->images, pass_over, NULL);
    assert_int_equal(f->images.n, 3);
    assert_string_equal(f->images.known.list[2].name, "tools");
    assert_true(f->images.list[2].is_added);
    assert_false(f->images.list[0].is_added);
    assert_false(f->images.list[1].is_added);
    assert_int_equal(f->images.known.list[2].manifest.python_minor, 12);
    assert_string_equal(f->images.known.list[2].manifest.node, "20");
    assert_false(f->images.known.list[2].manifest.warm_python);
    assert_int_equal(f->images.known.list[2].manifest.memory_bytes, 768u << 20);
    strcat(folder, "/tools.erofs");
    assert_string_equal(f->images.list[2].path, folder);
    images_read_added("/nonexistent", &f->images, pass_over, NULL);
    assert_int_equal(f->images.n, 3);
}

static void a_list_that_is_none_is_named(void **state)
{
    struct fixture *f = *state;

    add(f, "data.erofs", "");
    add(f, "data.modules", "os; import sys\n");
    assert_int_equal(images_read(f->dir, &f->images, &f->err), -EINVAL);
    assert_non_null(strstr(f->err.message, "/data.modules: line 1"));
}

static void there_may_be_so_many(void **state)
{
    struct fixture *f = *state;
    char name[32];

    for (unsigned i = 1; i < IMAGES_MAX; i++) {
        snprintf(name, sizeof(name), "n%u.erofs", i);
        add(f, name, "");
    }
    assert_int_equal(images_read(f->dir, &f->images, &f->err), 0);
    assert_int_equal(f->images.n, IMAGES_MAX);
    images_finish(&f->images);
    add(f, "more.erofs", "");
    assert_int_equal(images_read(f->dir, &f->images, &f->err), -E2BIG);
    assert_non_null(strstr(f->err.message, "more than 16 images"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_usual_one_is_first, setup, teardown),
        cmocka_unit_test_setup_teardown(each_has_the_digest_that_it_is_to_have, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_usual_one_need_not_be_there, setup, teardown),
        cmocka_unit_test_setup_teardown(some_are_added, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_that_is_none_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(there_may_be_so_many, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
