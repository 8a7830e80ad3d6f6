/* SPDX-License-Identifier: Apache-2.0 */
/* A guest kernel or image is used only if it is what was built. */
#include "api/daemon/machine/checksum.h"
#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char path[128]; /* of the image */
    char hex[SHA256_HEX_SIZE];
};

static void put(const struct fixture *f, const char *name, const char *text, size_t n)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, n), 0);
    close(fd);
}

/* The checksum file of the image. */
static void put_line(const struct fixture *f, const char *before, const char *hex,
                     const char *after)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "%s%s%s", before, hex, after);

    put(f, "tools.sha256", line, (size_t)n);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/tools.erofs", f->dir);
    assert_int_equal(sha256_of("root", 4, f->hex), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void expect_refused(const struct fixture *f, const char *why)
{
    struct err err = {0};

    assert_int_equal(checksum_check(f->path, "guest image", f->hex, &err), -EBADMSG);
    if (!strstr(err.message, why))
        fail_msg("no \"%s\" in \"%s\"", why, err.message);
}

static void what_was_built_is_used(void **state)
{
    struct fixture *f = *state;
    char path[128], line[128];

    put_line(f, "", f->hex, "  tools.erofs\n");
    assert_int_equal(checksum_check(f->path, "guest image", f->hex, NULL), 0);
    /* Of a binary file, as sha256sum --binary says it, and without an end of the line. */
    put_line(f, "", f->hex, " *tools.erofs");
    assert_int_equal(checksum_check(f->path, "guest image", f->hex, NULL), 0);
    /* A kernel has no ending; and a path may have no folder. */
    snprintf(path, sizeof(path), "%s/vmlinux", f->dir);
    snprintf(line, sizeof(line), "%s  vmlinux\n", f->hex);
    put(f, "vmlinux.sha256", line, strlen(line));
    assert_int_equal(checksum_check(path, "guest kernel", f->hex, NULL), 0);
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(checksum_check("vmlinux", "guest kernel", f->hex, NULL), 0);
    assert_int_equal(chdir("/"), 0);
}

static void another_content_is_refused(void **state)
{
    struct fixture *f = *state;
    char other[SHA256_HEX_SIZE];

    assert_int_equal(sha256_of("boot", 4, other), 0);
    put_line(f, "", other, "  tools.erofs\n");
    expect_refused(f, "is not what was built");
    expect_refused(f, "tools.erofs");
    /* One digit, at its end. */
    memcpy(other, f->hex, sizeof(other));
    other[63] = other[63] == '0' ? '1' : '0';
    put_line(f, "", other, "  tools.erofs\n");
    expect_refused(f, "is not what was built");
}

static void another_ones_checksum_is_refused(void **state)
{
    struct fixture *f = *state;

    put_line(f, "", f->hex, "  python.erofs\n");
    expect_refused(f, "is the checksum of \"python.erofs\"");
    put_line(f, "", f->hex, "  tools.erofs.old\n");
    expect_refused(f, "is the checksum of \"tools.erofs.old\"");
}

static void what_has_none_is_refused(void **state)
{
    struct fixture *f = *state;

    expect_refused(f, "has no checksum");
    expect_refused(f, "tools.sha256");
}

static void a_line_that_is_none_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *before, *after;
    } lines[] = {
        {"", ""},
        {"", " "},
        {"", "  \n"},
        {"", "\ttools.erofs\n"},
        {"", "0  tools.erofs\n"},
        {" ", "  tools.erofs\n"},
        {"SHA256 (tools.erofs) = ", "\n"},
    };
    char short_one[SHA256_HEX_SIZE], capital[SHA256_HEX_SIZE];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        put_line(f, lines[i].before, f->hex, lines[i].after);
        expect_refused(f, "is no line of sha256sum");
    }
    memcpy(short_one, f->hex, sizeof(short_one));
    short_one[63] = '\0';
    put_line(f, "", short_one, "  tools.erofs\n");
    expect_refused(f, "is no line of sha256sum");
    memcpy(capital, f->hex, sizeof(capital));
    capital[7] = 'F';
    put_line(f, "", capital, "  tools.erofs\n");
    expect_refused(f, "is no line of sha256sum");
    put_line(f, "", "", "\n");
    expect_refused(f, "is no line of sha256sum");
    put(f, "tools.sha256", "\0\0\0\0", 4);
    expect_refused(f, "is no line of sha256sum");
}

static void what_cannot_be_read_is_told(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/tools.sha256", f->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(checksum_check(f->path, "guest image", f->hex, &err), -EISDIR);
    assert_non_null(strstr(err.message, "cannot read the checksum"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_built_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(another_content_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(another_ones_checksum_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_none_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_that_is_none_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_told, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
