/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images/contents: what is listed of root file systems that are made here, of which nothing
 * runs. What a hostile one links to is not read outside its folder.
 */
#include "images/contents.h"
#include "images/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

struct fixture {
    char dir[64];
    int root;
    FILE *packages; /* nothing is in it at first */
    char *text;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    strcpy(f->dir, "/tmp/images-contents-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(chdir(f->dir), 0);
    f->root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->packages = tmpfile();
    assert_non_null(f->packages);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    close(f->root);
    (void)fclose(f->packages);
    free(f->text);
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void file(const char *path, mode_t mode, const char *content)
{
    char folder[256];

    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(fd_make_folders(folder, 0755, 0755), 0);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, content, strlen(content)), 0);
}

static void read_contents(struct fixture *f)
{
    size_t len;
    FILE *out;

    free(f->text);
    out = open_memstream(&f->text, &len);
    assert_int_equal(contents_print(f->root, f->packages, out, NULL), 0);
    assert_int_equal(fclose(out), 0);
}

/* As the builder does: what the folder says of its packages is all that is known of them. */
static void read_packages(struct fixture *f)
{
    size_t len;
    FILE *out;

    free(f->text);
    out = open_memstream(&f->text, &len);
    assert_int_equal(contents_print_debian(f->root, out, NULL), 0);
    assert_int_equal(fclose(out), 0);
    rewind(f->packages);
    assert_true(fputs(f->text, f->packages) >= 0);
}

static bool has(const struct fixture *f, const char *line)
{
    size_t n = strlen(line);

    for (const char *at = f->text; (at = strstr(at, line)); at++)
        if ((at == f->text || at[-1] == '\n') && at[n] == '\n')
            return true;
    return false;
}

static void expect(const struct fixture *f, const char *const *lines, bool there)
{
    for (; *lines; lines++)
        if (has(f, *lines) != there)
            fail_msg("%s: %s", there ? "not told" : "told", *lines);
}

/* As the images of Python's own makers have it, beside the distribution's. */
static void a_python_elsewhere_is_found(void **state)
{
    static const char *const there[] = {"language python 3.12",
                                        "standard json",
                                        "standard _json",
                                        "standard sys",
                                        "module numpy",
                                        "module six",
                                        "module fast",
                                        "module uno",
                                        "module com",
                                        "package my-pack 1.2",
                                        "program python3",
                                        "program tool",
                                        NULL};
    static const char *const absent[] = {
        "module other", "module not_a_package", "module _numpy", "standard test",
        "program data", "warm python",          "module wrong",  NULL};
    struct fixture *f = *state;
    struct contents_python python;

    file("usr/local/bin/python3.12", 0755, "");
    assert_int_equal(symlink("/usr/local/bin/python3.12", "usr/local/bin/python3"), 0);
    file("usr/bin/python3.11", 0755, "");
    assert_int_equal(symlink("python3.11", "usr/bin/python3"), 0);
    file("usr/lib/python3/dist-packages/other.py", 0644, "");
    file("usr/local/lib/python3.12/json/__init__.py", 0644, "");
    file("usr/local/lib/python3.12/test/__init__.py", 0644, "");
    file("usr/local/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so", 0644,
         "");
#define SITE "usr/local/lib/python3.12/site-packages/"
    file(SITE "numpy/__init__.py", 0644, "");
    file(SITE "six.py", 0644, "");
    file(SITE "uno.py", 0644, "");
    file(SITE "fast.cpython-312-x86_64-linux-gnu.so", 0644, "");
    file(SITE "wrong.cpython-311-x86_64-linux-gnu.so", 0644, "");
    file(SITE "not_a_package/data", 0644, "");
    file(SITE "My.Pack-1.2.dist-info/METADATA", 0644,
         "Metadata-Version: 2.1\nName: My.Pack\nVersion: 1.2\n\nName: not-this\n");
    file("usr/bin/tool", 0755, "");
    file("usr/bin/data", 0644, "");
    read_contents(f);
    expect(f, there, true);
    expect(f, absent, false);
    assert_true(has(f, "alone python"));
    assert_int_equal(symlink("/sandbox/packages", "usr/local/lib/python3.12/dist-packages"), 0);
    read_contents(f);
    assert_false(has(f, "alone python"));
    contents_find_python(f->root, &python);
    assert_int_equal(python.minor, 12);
    assert_string_equal(python.path, "usr/local/bin/python3.12");
    assert_string_equal(python.prefix, "usr/local");
    assert_false(contents_fits(f->root, f->packages, "3.11.2"));
}

/* Its python3 is a link, as an alternative's; Debian's CPython beside it is not the one. */
static void a_pypy_is_told(void **state)
{
    static const char *const there[] = {
        "language python 3.9", "pypy 3.9",         "standard json",    "standard _ssl",
        "standard sys",        "standard _bisect", "standard _thread", "module own",
        "module greenlet",     "module local",     "program pypy3",    NULL};
    static const char *const absent[] = {"language python 3.11",
                                         "standard other",
                                         "standard _elementtree",
                                         "module fast",
                                         "module stable",
                                         "warm python",
                                         NULL};
    struct fixture *f = *state;
    struct contents_python python;

    file("usr/bin/python3.11", 0755, "");
    file("usr/lib/python3.11/other.py", 0644, "");
    file("usr/bin/pypy3.9", 0755, "");
    assert_int_equal(symlink("pypy3.9", "usr/bin/pypy3"), 0);
    assert_int_equal(symlink("pypy3", "usr/bin/python3"), 0);
    file("usr/lib/pypy3.9/json/__init__.py", 0644, "");
    file("usr/lib/pypy3.9/_bisect.py", 0644, "");
    file("usr/lib/pypy3.9/_ssl.pypy39-pp73-x86_64-linux-gnu.so", 0644, "");
#define DEBIAN "usr/lib/python3/dist-packages/"
    file(DEBIAN "own.py", 0644, "");
    file(DEBIAN "greenlet.pypy39-pp73-x86_64-linux-gnu.so", 0644, "");
    file(DEBIAN "fast.cpython-39-x86_64-linux-gnu.so", 0644, "");
    file(DEBIAN "stable.abi3.so", 0644, "");
    file("usr/local/lib/pypy3.9/dist-packages/local.py", 0644, "");
    read_contents(f);
    expect(f, there, true);
    expect(f, absent, false);
    contents_find_python(f->root, &python);
    assert_int_equal(python.minor, 9);
    assert_true(python.is_pypy);
    assert_false(contents_fits(f->root, f->packages, "3.11.2"));
}

static void what_dpkg_says_decides_on_the_zygote(void **state)
{
    static const char *const packages[] = {"python3.11-minimal_3.11.2-6_amd64.deb",
                                           "bash_1%3a5.2_amd64.deb", "base-files_12_all.deb",
                                           NULL};
    static const char *const removed[] = {"old_1_all.deb", NULL};
    struct fixture *f = *state;

    file("usr/bin/python3.11", 0755, "");
    assert_int_equal(symlink("/etc/alternatives/python3", "usr/bin/python3"), 0);
    assert_int_equal(mkdir("etc", 0755) | mkdir("etc/alternatives", 0755), 0);
    assert_int_equal(symlink("/usr/bin/python3.11", "etc/alternatives/python3"), 0);
    assert_false(contents_fits(f->root, f->packages, "3.11.2"));
    file(
        "var/lib/dpkg/status", 0644,
        "Package: old\nStatus: deinstall ok config-files\nVersion: 1\nArchitecture: all\n\n"
        "Package: bash\nStatus: install ok installed\nVersion: 1:5.2\nArchitecture: amd64\n\n\n"
        "Package: python3.11-minimal\nStatus: install ok installed\nArchitecture: amd64\n"
        "Version: 3.11.2-6\n");
    file("var/lib/dpkg/status.d/base", 0644,
         "Package: base-files\nVersion: 12\nArchitecture: all\n");
    assert_false(contents_fits(f->root, f->packages, "3.11.2"));
    read_packages(f);
    expect(f, packages, true);
    expect(f, removed, false);
    assert_true(contents_fits(f->root, f->packages, "3.11.2"));
    assert_false(contents_fits(f->root, f->packages, "3.11.20"));
    assert_false(contents_fits(f->root, f->packages, "3.11"));
    file("usr/local/bin/python3", 0755, "");
    assert_false(contents_fits(f->root, f->packages, "3.11.2"));
}

static void nothing_is_read_outside(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdir("usr", 0755), 0);
    assert_int_equal(symlink("/usr/bin", "usr/bin"), 0);
    assert_int_equal(symlink("../../../../../../bin", "bin"), 0);
    assert_int_equal(mkdir("usr/local", 0755), 0);
    assert_int_equal(symlink("/proc/self/root/usr/bin", "usr/local/bin"), 0);
    read_contents(f);
    assert_string_equal(f->text, "");
    assert_int_equal(inside_program(f->root, "sh"), -ENOENT);
}

static void names_that_are_no_words_are_left_out(void **state)
{
    struct fixture *f = *state;
    char name[64];

    file("bin/two words", 0755, "");
    file("bin/line\nprogram forged", 0755, "");
    file("bin/\x1b[31m", 0755, "");
    file("bin/good", 0755, "");
    read_contents(f);
    assert_string_equal(f->text, "program good\n");
    for (unsigned i = 0; i < CONTENTS_LINES_MAX; i++) {
        snprintf(name, sizeof(name), "bin/p%u", i);
        file(name, 0755, "");
    }
    struct err err = {0};
    FILE *out = fopen("/dev/null", "we");
    assert_int_equal(contents_print(f->root, f->packages, out, &err), -E2BIG);
    assert_non_null(strstr(err.message, "more than 8000"));
    (void)fclose(out);
}

/* That of a recipe, which has no list of dpkg's: only the builder knows its packages. */
static void node_is_told(void **state)
{
    static const char *const of_package[] = {"language node 18.19.0", NULL};
    static const char *const of_header[] = {"language node 20.11.1", NULL};
    static const char *const of_none[] = {"language node 20.11.1", "language node 18.19.0",
                                          NULL};
    struct fixture *f = *state;

    file("usr/bin/node", 0755, "");
    read_contents(f);
    assert_string_equal(f->text, "program node\n");
    assert_true(fputs("node-yargs_9.0-1_all.deb SHA256:01\nnodejs-doc_19.0_all.deb\n"
                      "nodejs_1%3a18.19.0+dfsg-6_amd64.deb SHA256:02\n",
                      f->packages) >= 0);
    read_contents(f);
    expect(f, of_package, true);
    /* What comes first on the path is not the package's. */
    file("opt/node/bin/node", 0755, "");
    file("usr/local/bin/other", 0755, "");
    assert_int_equal(symlink("/opt/node/bin/node", "usr/local/bin/node"), 0);
    read_contents(f);
    expect(f, of_none, false);
    file("usr/local/include/node/node_version.h", 0644, "#define NODE_MAJOR_VERSION 16\n");
    file("opt/node/include/node/node_version.h", 0644,
         "#ifndef X\n#define NODE_MAJOR_VERSION 20\n#define NODE_MINOR_VERSION 11\n"
         "#define NODE_PATCH_VERSION 1\n");
    read_contents(f);
    expect(f, of_header, true);
    expect(f, of_package, false);
}

/* A module is there whatever its package.json says; a version is one word of it, or none. */
static void modules_of_node_have_versions(void **state)
{
    static const char *const listed[] = {"node marked 4.2.3", "node @kit/core 1.0.0-rc.1",
                                         "node alone",        "node broken",
                                         "node forged",       "node long",
                                         "node number",       NULL};
    char text[160];
    struct fixture *f = *state;

    file("usr/bin/node", 0755, "");
    file("usr/share/nodejs/marked/package.json", 0644,
         "{\"name\": \"x\", \"dependencies\": {\"version\": \"9\"}, \"version\": \"4.2.3\"}");
    file("usr/share/nodejs/@kit/core/package.json", 0644, "{\"version\": \"1.0.0-rc.1\"}");
    file("usr/share/nodejs/alone.js", 0644, "");
    file("usr/share/nodejs/broken/package.json", 0644, "{\"version\": \"4.2.3\"");
    file("usr/share/nodejs/forged/package.json", 0644, "{\"version\": \"1\\nprogram forged\"}");
    file("usr/share/nodejs/number/package.json", 0644, "{\"version\": 4}");
    snprintf(text, sizeof(text), "{\"version\": \"%0100d\"}", 1);
    file("usr/share/nodejs/long/package.json", 0644, text);
    read_contents(f);
    expect(f, listed, true);
    assert_null(strstr(f->text, "program forged"));
}

/* One that was built without being told is what its package is, if that says it plainly. */
static void a_version_that_was_not_told_is_the_package_s(void **state)
{
    static const char *const listed[] = {"package kiwisolver 1.4.4", "package mpmath 0.0.0",
                                         "package other 0.0.0", "package told 2.0", NULL};
    static const char *const names[] = {"kiwisolver", "mpmath", "other", "told"};
    struct fixture *f = *state;
    char path[128], text[64];

    file("usr/bin/python3.11", 0755, "");
    assert_int_equal(symlink("python3.11", "usr/bin/python3"), 0);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "usr/lib/python3/dist-packages/%s-0.dist-info/METADATA",
                 names[i]);
        snprintf(text, sizeof(text), "Name: %s\nVersion: %s\n\n", names[i],
                 i == 3 ? "2.0" : "0.0.0");
        file(path, 0644, text);
    }
    assert_true(fputs("python3-kiwisolver_1%3a1.4.4+dfsg-1+b1_amd64.deb\n"
                      "python3-mpmath_1.3.0~rc1-1_all.deb\npython3-told_3.0-1_all.deb\n",
                      f->packages) >= 0);
    read_contents(f);
    expect(f, listed, true);
}

#define CONTENTS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTENTS_TEST(a_python_elsewhere_is_found),
        CONTENTS_TEST(a_pypy_is_told),
        CONTENTS_TEST(what_dpkg_says_decides_on_the_zygote),
        CONTENTS_TEST(nothing_is_read_outside),
        CONTENTS_TEST(names_that_are_no_words_are_left_out),
        CONTENTS_TEST(node_is_told),
        CONTENTS_TEST(modules_of_node_have_versions),
        CONTENTS_TEST(a_version_that_was_not_told_is_the_package_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
