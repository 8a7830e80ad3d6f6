/* SPDX-License-Identifier: Apache-2.0 */
/* A skill of as many files as one may have, which names as many things as are looked at. */
#include "api/skill/needs.h"
#include "api/skill/tar.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/unit/cmocka_all.h"

#define FILES  19000
#define THINGS 8000

static void put_file(struct buf *tar, const char *path, const char *text, size_t len)
{
    const struct tar_header header = {
        .path = path, .type = TAR_FILE, .mode = 0644, .size = len};
    static const uint8_t zeros[TAR_BLOCK];

    assert_int_equal(tar_put_header(tar, &header), 0);
    assert_int_equal(buf_append(tar, text, len), 0);
    assert_int_equal(buf_append(tar, zeros, tar_padding(len)), 0);
}

/* What reads a skill with many files beside one of many lines; its needs are the caller's. */
static void read_skill(const char *path, struct needs *ret)
{
    static const char md[] = "---\nname: x\ndescription: y\n---\n";
    _cleanup_fd_ int in = memfd_create("in", MFD_CLOEXEC),
                     tar = memfd_create("tar", MFD_CLOEXEC);
    _cleanup_buf_ struct buf files = buf_init(64u << 20), text = buf_init(1u << 20);
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    struct err err = {0};
    char name[64];
    clock_t began;

    for (int i = 0; i < THINGS; i++)
        (void)buf_printf(&text, "%sthing%d\n", text_ends_with(path, ".py") ? "import " : "", i);
    assert_int_equal(text.error, 0);
    put_file(&files, "SKILL.md", md, sizeof(md) - 1);
    put_file(&files, path, (const char *)text.data, text.len);
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "folder/file-number-%d-of-many.txt", i);
        put_file(&files, name, "", 0);
    }
    put_file(&files, "folder/Thing7", "", 0);
    put_file(&files, "folder/thing8", "", 0);
    put_file(&files, "folder/thing9.PY", "", 0);
    put_file(&files, "other/thing7.py", "", 0);
    put_file(&files, "another/thing7/__init__.py", "", 0);
    put_file(&files, "yet-another/thing7.py", "", 0);
    assert_int_equal(fd_write_full(in, files.data, files.len), 0);
    if (skill_archive_load(in, &archive_limits_default, NULL, tar, &archive, &skill, &err) < 0)
        fail_msg("%s", err.message);
    began = clock();
    assert_int_equal(needs_read(tar, &archive, &skill, ret, NULL), 0);
    /* Of the processor's: with a look at every file for every thing it is four seconds. */
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC / 2);
}

static const struct needs_item *find(const struct needs *needs, const char *name)
{
    for (size_t i = 0; i < needs->len; i++)
        if (strcmp(needs->items[i].name, name) == 0)
            return &needs->items[i];
    fail_msg("no %s", name);
    return NULL;
}

static bool is_own(const struct needs *needs, const char *name)
{
    return find(needs, name)->own;
}

static void test_programs(void **state)
{
    _cleanup_needs_ struct needs needs = {0};

    (void)state;
    read_skill("run.sh", &needs);
    assert_false(is_own(&needs, "thing7"));
    assert_true(is_own(&needs, "thing8"));
    assert_false(is_own(&needs, "thing9"));
}

static void test_packages(void **state)
{
    _cleanup_needs_ struct needs needs = {0};

    (void)state;
    read_skill("requirements.txt", &needs);
    assert_true(is_own(&needs, "thing7"));
    assert_true(is_own(&needs, "thing8"));
    assert_true(is_own(&needs, "thing9"));
    assert_false(is_own(&needs, "thing10"));
}

/* Off the path: the first by its path. */
static void test_modules(void **state)
{
    _cleanup_needs_ struct needs needs = {0};

    (void)state;
    read_skill("main.py", &needs);
    assert_string_equal(find(&needs, "thing7")->elsewhere, "another/thing7/__init__.py");
    assert_null(find(&needs, "thing8")->elsewhere);
    assert_null(find(&needs, "thing9")->elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_packages),
        cmocka_unit_test(test_modules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
