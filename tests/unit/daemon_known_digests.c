/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of files that are remembered, and when they are not. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/known_digests.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    int dir_fd;
    int file_fd;
    struct known_digests known;
};

static uint64_t later_ns; /* how much later it is than the clock says */
static bool whole_seconds;
static unsigned n_computed;
static int rewrite_fd; /* a file that changes while it is read, or -1 */

uint64_t __real_clock_realtime_ns(void);
uint64_t __wrap_clock_realtime_ns(void);
uint64_t __wrap_clock_realtime_ns(void)
{
    return __real_clock_realtime_ns() + later_ns;
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
    int r = __real_fstat(fd, st);

    if (whole_seconds) {
        st->st_mtim.tv_nsec = 0;
        st->st_ctim.tv_nsec = 0;
    }
    return r;
}

/* Writes until the time of the change shows it: ticks of the kernel's clock are long. */
static void change(int fd, const char *text)
{
    struct stat before, after;

    assert_int_equal(__real_fstat(fd, &before), 0);
    do {
        assert_int_equal(fd_pwrite_full(fd, text, strlen(text), 0), 0);
        assert_int_equal(__real_fstat(fd, &after), 0);
    } while (before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
             before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
}

static int compute(int fd, char ret_hex[SHA256_HEX_SIZE])
{
    int r = sha256_of_fd(fd, ret_hex);

    n_computed++;
    if (rewrite_fd >= 0)
        change(rewrite_fd, "later");
    return r;
}

static const struct digest_way plain = {"sha256", NULL, compute};

/* What a new start of the daemon finds. */
static void expect(struct fixture *f, const struct digest_way *way, unsigned want_computed)
{
    char hex[SHA256_HEX_SIZE], want[SHA256_HEX_SIZE];

    assert_int_equal(sha256_of_fd(f->file_fd, want), 0);
    known_digests_open(&f->known, f->dir_fd);
    n_computed = 0;
    assert_int_equal(known_digests_of(&f->known, f->file_fd, way, hex), 0);
    assert_int_equal(n_computed, want_computed);
    assert_string_equal(hex, want);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    later_ns = 2 * NS_PER_SECOND;
    whole_seconds = false;
    rewrite_fd = -1;
    strcpy(f->dir, "/tmp/skillvm-digests-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->file_fd = openat(f->dir_fd, "file", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    *state = f;
    return f->dir_fd < 0 || fd_write_full(f->file_fd, "first", 5) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    (void)unlinkat(f->dir_fd, "file", 0);
    (void)unlinkat(f->dir_fd, KNOWN_DIGESTS_FILE, 0);
    close(f->file_fd);
    close(f->dir_fd);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static void one_that_did_not_change_is_known(void **state)
{
    static const struct digest_way other = {"sparse", NULL, compute};
    struct fixture *f = *state;
    struct stat st;

    expect(f, &plain, 1);
    expect(f, &plain, 0);
    expect(f, &other, 1);
    expect(f, &other, 0);
    expect(f, &plain, 0);
    assert_int_equal(fstatat(f->dir_fd, KNOWN_DIGESTS_FILE, &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    n_computed = 0;
    assert_int_equal(known_digests_of(NULL, f->file_fd, &plain, f->known.items[0].hex), 0);
    assert_int_equal(n_computed, 1);
}

static void one_that_changed_is_read_again(void **state)
{
    struct fixture *f = *state;

    expect(f, &plain, 1);
    change(f->file_fd, "FIRST");
    expect(f, &plain, 1);
    expect(f, &plain, 0);
    assert_int_equal(ftruncate(f->file_fd, 100), 0);
    expect(f, &plain, 1);
    /* Another file in its place. */
    assert_int_equal(unlinkat(f->dir_fd, "file", 0), 0);
    close(f->file_fd);
    f->file_fd = openat(f->dir_fd, "file", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    change(f->file_fd, "first");
    expect(f, &plain, 1);
}

static void one_that_just_changed_is_not_remembered(void **state)
{
    struct fixture *f = *state;

    later_ns = 0;
    change(f->file_fd, "fresh");
    expect(f, &plain, 1);
    expect(f, &plain, 1);
    later_ns = 2 * NS_PER_SECOND;
    rewrite_fd = f->file_fd;
    expect(f, &plain, 1);
    rewrite_fd = -1;
    expect(f, &plain, 1);
    /* Times to come say nothing. */
    later_ns = 0 - 3600 * NS_PER_SECOND;
    expect(f, &plain, 1);
}

static void times_that_were_made_up_say_nothing(void **state)
{
    static const struct digest_way in_image = {"sha256", "0011-22", compute},
                                   in_other = {"sha256", "0011-23", compute},
                                   in_nothing = {"sha256", "no word\n", compute};
    struct fixture *f = *state;

    whole_seconds = true;
    expect(f, &plain, 1);
    expect(f, &plain, 1);
    expect(f, &in_image, 1);
    expect(f, &in_image, 0);
    expect(f, &in_other, 1);
    expect(f, &in_nothing, 1);
    expect(f, &in_nothing, 1);
}

static void write_known(struct fixture *f, const char *text, mode_t mode)
{
    int fd =
        openat(f->dir_fd, KNOWN_DIGESTS_FILE, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void what_others_could_have_written_is_not_read(void **state)
{
    struct fixture *f = *state;
    char line[KNOWN_DIGESTS_ID_SIZE + SHA256_HEX_SIZE + 8];

    expect(f, &plain, 1);
    (void)snprintf(line, sizeof(line), "%s %s\n", f->known.items[0].hex, f->known.items[0].id);
    write_known(f, line, 0600);
    expect(f, &plain, 0);
    write_known(f, line, 0620);
    expect(f, &plain, 1);
    write_known(f, line, 0602);
    expect(f, &plain, 1);
    /* It was written anew. */
    expect(f, &plain, 0);
    assert_int_equal(renameat(f->dir_fd, KNOWN_DIGESTS_FILE, f->dir_fd, "real"), 0);
    assert_int_equal(symlinkat("real", f->dir_fd, KNOWN_DIGESTS_FILE), 0);
    expect(f, &plain, 1);
    assert_int_equal(unlinkat(f->dir_fd, "real", 0), 0);
}

static void what_cannot_be_read_is_left_out(void **state)
{
    struct fixture *f = *state;
    char text[4096];

    expect(f, &plain, 1);
    (void)snprintf(text, sizeof(text), "nonsense\n\n%.60s short\n%s%s\n%s %0300d\n%s %s",
                   f->known.items[0].hex, f->known.items[0].hex, f->known.items[0].id,
                   f->known.items[0].hex, 0, f->known.items[0].hex, f->known.items[0].id);
    write_known(f, text, 0600);
    known_digests_open(&f->known, f->dir_fd);
    assert_int_equal(f->known.n, 1);
    expect(f, &plain, 0);
    write_known(f, "", 0600);
    expect(f, &plain, 1);
}

static void the_oldest_gives_way(void **state)
{
    struct fixture *f = *state;
    char name[16], hex[SHA256_HEX_SIZE];

    known_digests_open(&f->known, f->dir_fd);
    for (unsigned i = 0; i < KNOWN_DIGESTS_MAX + 10; i++) {
        const struct digest_way way = {name, NULL, compute};

        (void)snprintf(name, sizeof(name), "way%u", i);
        assert_int_equal(known_digests_of(&f->known, f->file_fd, &way, hex), 0);
    }
    assert_int_equal(f->known.n, KNOWN_DIGESTS_MAX);
    known_digests_open(&f->known, f->dir_fd);
    assert_int_equal(f->known.n, KNOWN_DIGESTS_MAX);
    expect(f, &(struct digest_way){"way10", NULL, compute}, 0);
    expect(f, &(struct digest_way){"way9", NULL, compute}, 1);
}

/* As kernel and image are, by every start, while snapshots come and go. */
static void one_that_is_asked_for_stays(void **state)
{
    struct fixture *f = *state;
    char name[16], hex[SHA256_HEX_SIZE];

    known_digests_open(&f->known, f->dir_fd);
    for (unsigned i = 0; i < 2 * KNOWN_DIGESTS_MAX; i++) {
        const struct digest_way way = {name, NULL, compute};

        (void)snprintf(name, sizeof(name), "way%u", i);
        assert_int_equal(known_digests_of(&f->known, f->file_fd, &way, hex), 0);
        n_computed = 0;
        assert_int_equal(known_digests_of(&f->known, f->file_fd,
                                          &(struct digest_way){"way0", NULL, compute}, hex),
                         0);
        assert_int_equal(n_computed, 0);
    }
    expect(f, &(struct digest_way){"way0", NULL, compute}, 0);
    expect(f, &(struct digest_way){"way1", NULL, compute}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(one_that_did_not_change_is_known),
        TEST(one_that_changed_is_read_again),
        TEST(one_that_just_changed_is_not_remembered),
        TEST(times_that_were_made_up_say_nothing),
        TEST(what_others_could_have_written_is_not_read),
        TEST(what_cannot_be_read_is_left_out),
        TEST(the_oldest_gives_way),
        TEST(one_that_is_asked_for_stays),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
