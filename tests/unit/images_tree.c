/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images/tree: a package made here is unpacked into a folder made here. Paths that leave the
 * folder are refused, /bin lies below usr, set-user-ID bits are gone.
 */
#include "images/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#define TAR_MAX (256u * 1024u)

struct member {
    const char *path;
    mode_t type;
    mode_t mode;
    const char *content; /* of a file, or the target of a link */
};

static char *make_folder(void)
{
    char *folder = strdup("/tmp/images-tree-XXXXXX");
    assert_non_null(folder);
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void remove_folder(char *folder)
{
    char command[4096];
    assert_int_equal(chdir("/"), 0);
    assert_true(snprintf(command, sizeof(command), "rm -rf '%s'", folder) > 0);
    assert_int_equal(system(command), 0);
    free(folder);
}

static void add_member(struct archive *a, const struct member *member)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, member->path);
    archive_entry_set_filetype(entry, (unsigned)member->type);
    archive_entry_set_perm(entry, member->mode);
    size_t size = member->type == AE_IFREG ? strlen(member->content) : 0;
    archive_entry_set_size(entry, (la_int64_t)size);
    if (member->type == AE_IFLNK)
        archive_entry_set_symlink(entry, member->content);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    if (size)
        assert_int_equal(archive_write_data(a, member->content, size), size);
    archive_entry_free(entry);
}

/* A .deb with one tar of the members, or without any, as an open temporary file. */
static int make_deb(const struct member *members, size_t n, bool with_data)
{
    char *tar = malloc(TAR_MAX);
    size_t used = 0;
    assert_non_null(tar);
    struct archive *a = archive_write_new();
    archive_write_set_format_gnutar(a);
    archive_write_add_filter_gzip(a);
    assert_int_equal(archive_write_open_memory(a, tar, TAR_MAX, &used), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++)
        add_member(a, &members[i]);
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);

    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    fclose(file);
    a = archive_write_new();
    archive_write_set_format_ar_svr4(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    const struct member version = {"debian-binary", AE_IFREG, 0644, "2.0\n"};
    add_member(a, &version);
    if (with_data) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, "data.tar.gz");
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)used);
        assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, tar, used), used);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
    free(tar);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void assert_file(const char *path, mode_t mode, const char *content)
{
    char data[256] = "";
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, mode);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_read_full(fd, data, sizeof(data) - 1), strlen(content));
    assert_string_equal(data, content);
}

static void test_unpack(void **state)
{
    static const struct member members[] = {
        {"./", AE_IFDIR, 0755, NULL},
        {"./bin/", AE_IFDIR, 0755, NULL},
        {"./bin/tool", AE_IFREG, 04755, "tool"},
        {"./lib/x/lib.so", AE_IFREG, 0644, "lib"},
        {"./library/a", AE_IFREG, 0640, "a"},
        {"./usr/share/doc/x/README", AE_IFREG, 0644, "no"},
        {"./usr/share/doc/x/copyright", AE_IFREG, 0644, "yes"},
        {"./bin/sh", AE_IFLNK, 0777, "tool"},
    };
    struct recipe_item drop = {.path = strdup("usr/share/doc")};
    struct recipe_item keep = {.path = strdup("usr/share/doc/*/copyright")};
    const struct recipe recipe = {.drop = {&drop, 1}, .keep = {&keep, 1}};
    struct err err = {0};
    char target[16] = "";

    (void)state;
    umask(022);
    char *folder = make_folder();
    int deb = make_deb(members, sizeof(members) / sizeof(members[0]), true);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(tree_unpack_deb(&recipe, deb, "x.deb", &err), 0);
    assert_file("usr/bin/tool", 0755, "tool");
    assert_file("usr/lib/x/lib.so", 0644, "lib");
    assert_file("library/a", 0640, "a");
    assert_file("usr/share/doc/x/copyright", 0644, "yes");
    assert_int_equal(access("usr/share/doc/x/README", F_OK), -1);
    assert_int_equal(access("bin", F_OK), -1);
    assert_int_equal(readlink("usr/bin/sh", target, sizeof(target)), 4);
    assert_string_equal(target, "tool");
    close(deb);
    remove_folder(folder);
    free(drop.path);
    free(keep.path);
}

static void test_what_leaves_the_folder_is_refused(void **state)
{
    static const struct member up[] = {{"./../escaped", AE_IFREG, 0644, "x"}};
    static const struct member through[] = {{"./out", AE_IFLNK, 0777, "/tmp"},
                                            {"./out/escaped", AE_IFREG, 0644, "x"}};
    static const struct {
        const struct member *members;
        size_t n;
    } cases[] = {{up, 1}, {through, 2}};
    const struct recipe recipe = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        char *folder = make_folder();
        int deb = make_deb(cases[i].members, cases[i].n, true);
        assert_int_equal(chdir(folder), 0);
        /* A link in the way is replaced by a folder or refused; either way nothing is outside.
         */
        (void)tree_unpack_deb(&recipe, deb, "x.deb", &err);
        assert_int_equal(access("/tmp/escaped", F_OK), -1);
        close(deb);
        remove_folder(folder);
    }
}

static void test_not_a_package(void **state)
{
    const struct recipe recipe = {0};
    struct err err = {0};

    (void)state;
    char *folder = make_folder();
    assert_int_equal(chdir(folder), 0);
    int deb = make_deb(NULL, 0, false);
    assert_int_equal(tree_unpack_deb(&recipe, deb, "x.deb", &err), -EINVAL);
    assert_non_null(strstr(err.message, "no data.tar"));
    close(deb);

    deb = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    err = (struct err){0};
    assert_int_equal(tree_unpack_deb(&recipe, deb, "zero.deb", &err), -EIO);
    assert_non_null(strstr(err.message, "zero.deb"));
    close(deb);
    remove_folder(folder);
}

static void test_recipe_entries_and_inputs(void **state)
{
    struct recipe_item directory = {.path = strdup("var/tmp"), .mode = 01777};
    struct recipe_item link = {.path = strdup("bin"), .value = strdup("usr/bin")};
    struct recipe_item file = {
        .path = strdup("etc/hosts"), .value = strdup("localhost\n"), .mode = 0644};
    const struct recipe recipe = {
        .directories = {&directory, 1}, .links = {&link, 1}, .files = {&file, 1}};
    struct err err = {0};
    struct stat st;

    (void)state;
    umask(077);
    char *folder = make_folder();
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(tree_add_recipe(&recipe, &err), 0);
    assert_int_equal(stat("var/tmp", &st), 0);
    assert_int_equal(st.st_mode & 07777, 01777);
    assert_file("etc/hosts", 0644, "localhost\n");

    /* A file, then the same path again; then a folder of files. */
    for (int i = 0; i < 2; i++) {
        int fd = open("etc/hosts", O_RDONLY | O_CLOEXEC);
        assert_int_equal(tree_add_input("sbin/init", fd, 0755, &err), 0);
        close(fd);
    }
    assert_file("sbin/init", 0755, "localhost\n");
    assert_int_equal(mkdir("etc/__pycache__", 0755), 0);
    int fd = open("etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_add_input("usr/lib/copy", fd, 0600, &err), 0);
    assert_file("usr/lib/copy/hosts", 0600, "localhost\n");
    assert_int_equal(mkdir("etc/deeper", 0755), 0);
    assert_int_equal(tree_add_input("usr/lib/copy", fd, 0600, &err), -EINVAL);
    close(fd);

    remove_folder(folder);
    free(directory.path);
    free(link.path);
    free(link.value);
    free(file.path);
    free(file.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_what_leaves_the_folder_is_refused),
        cmocka_unit_test(test_not_a_package),
        cmocka_unit_test(test_recipe_entries_and_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
