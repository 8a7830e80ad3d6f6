/* SPDX-License-Identifier: Apache-2.0 */
/* Input from outside and artifacts back into a folder, and only there. */
#include "api/cli/files.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
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

static char top[] = "/tmp/cli-files-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    strcpy(top + strlen(top) - 6, "XXXXXX");
    return mkdtemp(top) ? 0 : -1;
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

static void input_sources(void **state)
{
    char path[128], argument[140];
    struct buf input = buf_init(FILES_INPUT_MAX), small = buf_init(4);
    struct err err = {0};
    (void)state;

    assert_int_equal(files_read_input("{\"n\": 12345678901234567890}", &input, NULL), 0);
    assert_string_equal(buf_cstr(&input), "{\"n\": 12345678901234567890}");
    buf_clear(&input);

    snprintf(path, sizeof(path), "%s/input.json", top);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[1,\n2]\n", file);
    fclose(file);
    snprintf(argument, sizeof(argument), "@%s", path);
    assert_int_equal(files_read_input(argument, &input, NULL), 0);
    assert_string_equal(buf_cstr(&input), "[1,\n2]\n");
    assert_int_equal(files_read_input(argument, &small, &err), -EFBIG);
    err = (struct err){0};
    assert_int_equal(files_read_input("@/does/not/exist", &input, &err), -ENOENT);
    assert_non_null(strstr(err.message, "/does/not/exist"));
    buf_finish(&input);
    buf_finish(&small);
}

static int make_tar_gz(const char *path, unsigned type, const char *link)
{
    int fd = memfd_create("artifacts", MFD_CLOEXEC);
    struct archive *a = archive_write_new();

    archive_write_set_format_pax_restricted(a);
    archive_write_add_filter_gzip(a);
    archive_write_open_fd(a, fd);
    for (unsigned i = 0; i < 2; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, i ? path : "first");
        archive_entry_set_filetype(entry, i ? type : AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        if (i && link)
            archive_entry_set_symlink(entry, link);
        bool has_content = !i || type == AE_IFREG;
        archive_entry_set_size(entry, has_content ? 4 : 0);
        archive_write_header(a, entry);
        if (has_content)
            archive_write_data(a, "data", 4);
        archive_entry_free(entry);
    }
    archive_write_close(a);
    archive_write_free(a);
    return fd;
}

static void note(void *ctx, const char *path)
{
    buf_printf(ctx, "%s;", path + strlen(top));
}

static void extraction(void **state)
{
    struct buf names = buf_init(4096);
    char dir[64], path[128], before[4096], after[4096];
    struct stat st;
    int fd = make_tar_gz("d/e/second", AE_IFREG, NULL);
    (void)state;

    snprintf(dir, sizeof(dir), "%s/new/out", top);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(files_extract(fd, dir, note, &names, NULL), 0);
    /* Again, over what is there. */
    assert_int_equal(files_extract(fd, dir, note, &names, NULL), 0);
    assert_non_null(getcwd(after, sizeof(after)));
    assert_string_equal(before, after);
    assert_string_equal(buf_cstr(&names), "/new/out/first;/new/out/d/e/second;"
                                          "/new/out/first;/new/out/d/e/second;");
    snprintf(path, sizeof(path), "%s/d/e/second", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 4);
    close(fd);
    buf_finish(&names);
}

static void hostile_extraction(void **state)
{
    static const struct {
        const char *path;
        unsigned type;
        const char *link;
    } bad[] = {
        {"../evil", AE_IFREG, NULL},      {"/tmp/evil", AE_IFREG, NULL},
        {"link", AE_IFLNK, "/etc"},       {"pipe", AE_IFIFO, NULL},
        {"a/../../evil", AE_IFREG, NULL},
    };
    struct buf names = buf_init(4096);
    char dir[64], path[80];
    (void)state;

    snprintf(dir, sizeof(dir), "%s/out", top);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = make_tar_gz(bad[i].path, bad[i].type, bad[i].link);
        struct err err = {0};
        assert_int_equal(files_extract(fd, dir, note, &names, &err), -EINVAL);
        assert_true(err.message[0] != '\0');
        close(fd);
    }

    /* A link that somebody put into the folder is neither followed nor replaced. */
    snprintf(path, sizeof(path), "%s/d", dir);
    assert_int_equal(symlink("/tmp", path), 0);
    int fd = make_tar_gz("d/evil-through-link", AE_IFREG, NULL);
    assert_true(files_extract(fd, dir, note, &names, NULL) < 0);
    assert_int_equal(access("/tmp/evil-through-link", F_OK), -1);
    close(fd);
    buf_finish(&names);
}

static void expect_no_folder(const char *below, int result, const char *message)
{
    char path[PATH_MAX];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s%s", strncmp(below, "/proc", 5) == 0 ? "" : top, below);
    assert_int_equal(files_check_dir(path, &err), result);
    if (message)
        assert_non_null(strstr(err.message, message));
}

static void what_cannot_be_a_folder_is_told_and_nothing_made(void **state)
{
    char path[128], longest[300];
    struct stat st, again;
    (void)state;

    snprintf(path, sizeof(path), "%s/old", top);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(stat(path, &st), 0);
    expect_no_folder("/new/../old", 0, NULL);
    expect_no_folder("/old/", 0, NULL);
    assert_int_equal(stat(path, &again), 0);
    assert_int_equal(again.st_ino, st.st_ino);
    assert_int_equal(again.st_nlink, 2);
    snprintf(path, sizeof(path), "%s/file", top);
    assert_int_equal(close(creat(path, 0600)), 0);
    snprintf(path, sizeof(path), "%s/nowhere", top);
    assert_int_equal(symlink("/none/such", path), 0);
    snprintf(longest, sizeof(longest), "/new/%0256d/x", 0);
    expect_no_folder("/file", -ENOTDIR, "is no folder");
    expect_no_folder("/file/x", -ENOTDIR, "cannot make the folder");
    expect_no_folder("/nowhere", -ENOENT, "cannot put files in");
    expect_no_folder("/proc/skillvm/out", -ENOENT, "cannot make the folder");
    expect_no_folder(longest, -ENAMETOOLONG, "cannot make the folder");
    expect_no_folder("/new/a//b/", 0, NULL);
    expect_no_folder("", 0, NULL);
    snprintf(path, sizeof(path), "%s/new", top);
    assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(input_sources, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_folder_is_told_and_nothing_made,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(extraction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hostile_extraction, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
