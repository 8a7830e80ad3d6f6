/* SPDX-License-Identifier: Apache-2.0 */
/* A folder becomes an archive that the ingest takes. */
#include "api/skill/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

static char top[] = "/tmp/skill-pack-XXXXXX";

static void make(const char *name, const char *content)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    if (!content) {
        assert_int_equal(mkdir(path, 0755), 0);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(top + strlen(top) - 6, "XXXXXX");
    if (!mkdtemp(top))
        return -1;
    make("trial", NULL);
    make("trial/SKILL.md", "---\nname: trial\ndescription: d\n---\n");
    make("trial/scripts", NULL);
    make("trial/scripts/main.py", "print(1)\n");
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int pack(const char *name, struct skill_archive *ret, struct err *err)
{
    char path[256];
    int fd = memfd_create("packed", MFD_CLOEXEC);

    snprintf(path, sizeof(path), "%s/%s", top, name);
    int result = pack_folder(path, &archive_limits_default, fd, err);
    if (!result)
        result = skill_archive_ingest(fd, &archive_limits_default, NULL, -1, ret, err);
    close(fd);
    return result;
}

static void expect_refused(int code, const char *reason)
{
    struct skill_archive archive;
    struct err err = {0};

    assert_int_equal(pack("trial", &archive, &err), code);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
}

static void whole(void **state)
{
    char from[256], to[256];
    struct skill_archive archive = {0};
    struct err err = {0};
    (void)state;

    make("trial/.git", NULL);
    make("trial/.git/config", "x");
    make("trial/scripts/__pycache__", NULL);
    make("trial/scripts/__pycache__/main.pyc", "x");
    make("trial/notes~", "x");
    snprintf(to, sizeof(to), "%s/trial/link", top);
    assert_int_equal(symlink("scripts/../SKILL.md", to), 0);
    snprintf(from, sizeof(from), "%s/trial/scripts/main.py", top);
    assert_int_equal(chmod(from, 0700), 0);

    if (pack("trial/", &archive, &err))
        fail_msg("%s", err.message);
    assert_string_equal(archive.folder, "trial");
    assert_int_equal(archive.n_entries, 4);
    assert_true(skill_archive_find(&archive, "scripts/main.py")->executable);
    assert_int_equal(skill_archive_find(&archive, "link")->type, ARCHIVE_ENTRY_LINK);
    skill_archive_finish(&archive);
}

static void links_out(void **state)
{
    static const char *const targets[] = {"/etc/passwd", "../../x", "..", "gone"};
    char path[256];
    (void)state;

    make("x", "x");
    snprintf(path, sizeof(path), "%s/trial/scripts/link", top);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        if (i == 2) /* the skill's own root is inside */
            continue;
        assert_int_equal(symlink(targets[i], path), 0);
        expect_refused(-EINVAL, "scripts/link");
        assert_int_equal(unlink(path), 0);
    }
}

static void special(void **state)
{
    char path[256];
    (void)state;

    snprintf(path, sizeof(path), "%s/trial/pipe", top);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(-EINVAL, "\"pipe\": devices");
}

static void no_skill(void **state)
{
    struct skill_archive archive;
    struct err err = {0};
    (void)state;

    assert_int_equal(pack("trial/scripts", &archive, &err), -EINVAL);
    assert_non_null(strstr(err.message, "no SKILL.md"));
    err = (struct err){0};
    assert_int_equal(pack("gone", &archive, &err), -ENOENT);
    err = (struct err){0};
    assert_int_equal(pack("trial/SKILL.md", &archive, &err), -ENOTDIR);
}

/* It is SKILL.md in the tar, and no other file of that name may be beside it. */
static void lower_case(void **state)
{
    char from[256], to[256];
    struct skill_archive archive = {0};
    (void)state;

    snprintf(from, sizeof(from), "%s/trial/SKILL.md", top);
    snprintf(to, sizeof(to), "%s/trial/skill.md", top);
    assert_int_equal(rename(from, to), 0);
    snprintf(to, sizeof(to), "%s/trial/link", top);
    assert_int_equal(symlink("skill.md", to), 0);
    assert_int_equal(pack("trial", &archive, NULL), 0);
    assert_true(archive.is_lower_case);
    assert_non_null(skill_archive_find(&archive, "SKILL.md"));
    assert_string_equal(skill_archive_find(&archive, "link")->target, "SKILL.md");
    assert_non_null(archive.skill_md ? strstr(archive.skill_md, "name: trial") : NULL);
    skill_archive_finish(&archive);
    make("trial/SKILL.md", "x");
    expect_refused(-EINVAL, "the same name but for upper and lower case");
}

static void too_many(void **state)
{
    (void)state;

    for (unsigned i = 0; i < archive_limits_default.entries; i++) {
        char name[32];
        snprintf(name, sizeof(name), "trial/f%u", i);
        make(name, "");
    }
    expect_refused(-EFBIG, "20000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(special, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_skill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lower_case, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
