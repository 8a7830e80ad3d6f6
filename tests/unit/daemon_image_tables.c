/* SPDX-License-Identifier: Apache-2.0 */
/* The images of now and those of before: what a look finds, and who keeps what. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/image_tables.h"
#include "base/fd.h"
#include "tests/unit/fake_built.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 4
#define LOOKS   25

struct fixture {
    char dir[64];
    char added[96];
    struct image_tables *tables;
    struct image_changes changes;
    unsigned gone; /* atomic */
};

static void count_gone(void *ctx)
{
    struct fixture *f = ctx;

    (void)__atomic_add_fetch(&f->gone, 1, __ATOMIC_RELAXED);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)unlink(path);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void make(const char *folder, const char *name, const char *content)
{
    char file[64], path[256];

    snprintf(file, sizeof(file), "%s.erofs", name);
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    (void)unlink(path);
    fake_built(folder, file, content);
}

static void take_away(const struct fixture *f, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s.erofs", f->added, name);
    assert_int_equal(unlink(path), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    *state = f;
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->added, sizeof(f->added), "%s/made", f->dir);
    assert_int_equal(mkdir(f->added, 0700), 0);
    make(f->dir, "python", "python");
    put(f->dir, "python.manifest", "language python 3.11\n");
    make(f->dir, "data", "data");
    assert_int_equal(image_tables_create(f->dir, f->added, &f->tables, NULL), 0);
    image_tables_on_gone(f->tables, count_gone, f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    image_tables_destroy(f->tables);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

/* "added x, removed y", as it was found. */
static const char *look(struct fixture *f)
{
    static char text[4096];

    assert_int_equal(image_tables_reload(f->tables, &f->changes, NULL), 0);
    text[0] = '\0';
    for (unsigned i = 0; i < f->changes.n; i++) {
        const struct image_change *change = &f->changes.list[i];
        size_t n = strlen(text);

        snprintf(text + n, sizeof(text) - n, "%s%s %s", n ? ", " : "",
                 image_change_word(change->kind), change->name);
    }
    return text;
}

/* The names of now. */
static const char *names(struct fixture *f)
{
    static char text[1024];
    _cleanup_images_ struct images *images = image_tables_now(f->tables);

    assert_int_equal(images->n, images->known.n_here);
    text[0] = '\0';
    for (unsigned i = 0; i < images->n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 images->known.list[i].name);
    return text;
}

/* What the file of an image of a table holds. */
static const char *content(const struct images *images, const char *name)
{
    static char text[64];
    int place = images_find(images, name);
    ssize_t n;

    assert_true(place >= 0);
    n = pread(images->list[place].fd, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static void a_look_finds_what_is_new(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(look(f), "");
    assert_int_equal(f->gone, 1);
    make(f->added, "b", "1");
    make(f->added, "a", "1");
    assert_string_equal(look(f), "added a, added b");
    assert_string_equal(names(f), "python data a b");
    /* The same bytes in another file are the same image. */
    make(f->added, "b", "1");
    assert_string_equal(look(f), "");
    make(f->added, "b", "2");
    make(f->dir, "data", "more data");
    take_away(f, "a");
    assert_string_equal(look(f), "replaced data, replaced b, removed a");
    assert_string_equal(names(f), "python data b");
}

static void who_has_a_table_keeps_it(void **state)
{
    struct fixture *f = *state;
    struct images *before, *found;
    unsigned place, gone;
    char digest[SHA256_HEX_SIZE];

    make(f->added, "a", "first");
    assert_string_equal(look(f), "added a");
    before = image_tables_now(f->tables);
    memcpy(digest, before->list[2].digest, sizeof(digest));
    gone = f->gone;
    make(f->added, "a", "second");
    assert_string_equal(look(f), "replaced a");
    assert_string_equal(content(before, "a"), "first");
    found = image_tables_find(f->tables, "a", "", &place);
    assert_string_equal(content(found, "a"), "second");
    images_unref(found);
    /* By its digest it is found as long as somebody has it. */
    found = image_tables_find(f->tables, "a", digest, &place);
    assert_ptr_equal(found, before);
    images_unref(found);
    take_away(f, "a");
    assert_string_equal(look(f), "removed a");
    assert_string_equal(content(before, "a"), "first");
    assert_true(image_tables_have(f->tables, "a", digest));
    /* The two between are. */
    assert_int_equal(f->gone, gone + 1);
    images_unref(before);
    assert_int_equal(f->gone, gone + 2);
    assert_false(image_tables_have(f->tables, "a", ""));
    assert_null(image_tables_find(f->tables, "a", digest, &place));
    images_unref(NULL);
}

static void what_is_refused_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct images *now;

    make(f->added, "a", "first");
    put(f->added, "a.manifest", "language python 3.12\nmodule numpy\n");
    put(f->added, "a.modules", "numpy\n");
    assert_string_equal(look(f), "added a");
    put(f->added, "a.erofs", "second");
    put(f->added, "a.manifest", "language python 3.13\n");
    put(f->added, "a.modules", "");
    put(f->added, "b.erofs", "without a checksum");
    make(f->added, "data", "of the installation");
    make(f->added, "c", "1");
    assert_string_equal(look(f), "refused data, refused a, refused b, added c");
    assert_string_equal(names(f), "python data a c");
    now = image_tables_now(f->tables);
    assert_string_equal(content(now, "a"), "first");
    assert_int_equal(now->known.list[2].manifest.python_minor, 12);
    assert_int_equal(now->known.list[2].manifest.modules.len, 1);
    assert_int_equal(now->list[2].modules.len, 1);
    assert_string_equal(content(now, "data"), "data");
    images_unref(now);
    /* A manifest that is none leaves the image out, which was there. */
    put(f->added, "a.manifest", "what?\n");
    assert_string_equal(look(f), "refused a, refused data, refused b");
    assert_string_equal(names(f), "python data c a");
    make(f->added, "a", "second");
    put(f->added, "a.manifest", "language python 3.13\n");
    assert_string_equal(look(f), "refused data, replaced a, refused b");
    now = image_tables_now(f->tables);
    assert_string_equal(content(now, "a"), "second");
    images_unref(now);
}

/* An installation that cannot be read is none to go on with. */
static void a_look_that_fails_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    make(f->added, "a", "1");
    put(f->dir, "data.manifest", "what?\n");
    assert_int_equal(image_tables_reload(f->tables, &f->changes, &err), -EINVAL);
    assert_non_null(strstr(err.message, "data.manifest"));
    assert_string_equal(names(f), "python data");
}

/* The first image is what it was, as its snapshot is. */
static void the_usual_one_stays(void **state)
{
    struct fixture *f = *state;
    struct images *now;

    put(f->dir, "python.manifest", "language python 3.13\n");
    make(f->dir, "python", "another");
    assert_string_equal(look(f), "");
    now = image_tables_now(f->tables);
    assert_int_equal(now->known.list[0].manifest.python_minor, 11);
    images_unref(now);
}

static void there_may_be_so_many(void **state)
{
    struct fixture *f = *state;
    struct images *held[IMAGE_TABLES_MAX];
    struct err err = {0};
    char name[16];

    for (unsigned i = 0; i < IMAGES_MAX; i++) {
        snprintf(name, sizeof(name), "n%02u", i);
        make(f->added, name, "1");
    }
    (void)look(f);
    assert_string_equal(names(f), "python data n00 n01 n02 n03 n04 n05 n06 n07 n08 n09 n10 "
                                  "n11 n12 n13");
    assert_non_null(strstr(f->changes.list[0].why, "there are 16 images already"));
    /* Where others came there is no room for what would be kept. */
    put(f->added, "n00.manifest", "what?\n");
    (void)look(f);
    assert_string_equal(names(f), "python data n01 n02 n03 n04 n05 n06 n07 n08 n09 n10 n11 "
                                  "n12 n13 n14");
    for (unsigned i = 0; i < IMAGE_TABLES_MAX; i++) {
        held[i] = image_tables_now(f->tables);
        if (i + 1 < IMAGE_TABLES_MAX)
            (void)look(f);
    }
    assert_int_equal(image_tables_reload(f->tables, &f->changes, &err), -EBUSY);
    assert_non_null(strstr(err.message, "16 earlier sets of images"));
    images_unref(held[3]);
    (void)look(f);
    assert_int_equal(image_tables_reload(f->tables, &f->changes, NULL), -EBUSY);
    for (unsigned i = 0; i < IMAGE_TABLES_MAX; i++)
        if (i != 3)
            images_unref(held[i]);
    (void)look(f);
}

static void *look_often(void *arg)
{
    struct fixture *f = arg;
    struct image_changes *changes = calloc(1, sizeof(*changes));

    for (unsigned i = 0; changes && i < LOOKS; i++) {
        struct images *now = image_tables_now(f->tables);
        unsigned place;
        struct images *found = image_tables_find(f->tables, "a", "", &place);

        (void)image_tables_reload(f->tables, changes, NULL);
        images_unref(found);
        images_unref(now);
    }
    free(changes);
    return NULL;
}

static void many_may_look_at_once(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_often, f), 0);
    for (unsigned i = 0; i < 2 * LOOKS; i++) {
        make(f->added, "a", i % 2 ? "first" : "second");
        if (i % 5 == 0)
            take_away(f, "a");
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    make(f->added, "a", "last");
    (void)look(f);
    assert_string_equal(names(f), "python data a");
    assert_string_equal(look(f), "");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_look_finds_what_is_new),
        WITH(who_has_a_table_keeps_it),
        WITH(what_is_refused_changes_nothing),
        WITH(a_look_that_fails_changes_nothing),
        WITH(the_usual_one_stays),
        WITH(there_may_be_so_many),
        WITH(many_may_look_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
