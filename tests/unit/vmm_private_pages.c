/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory goes back to its file whatever was written where, and only so much of it stays.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/private_pages.h"

#define PAGE         ((uint64_t)LAYOUT_PAGE_SIZE)
#define MEMORY_BYTES (64u << 20)
#define N_PAGES      (MEMORY_BYTES / LAYOUT_PAGE_SIZE)

struct world {
    int memory_fd;
    int pagemap_fd;
    uint8_t *host;
    struct private_pages pages;
};

/* A file whose even pages hold something, and a private mapping of it. */
static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct memory memory;
    struct err err = {0};
    int proc_fd = open("/proc", O_PATH | O_CLOEXEC);

    assert_non_null(w);
    w->memory_fd = memfd_create("memory", MFD_CLOEXEC);
    assert_true(w->memory_fd >= 0);
    assert_int_equal(ftruncate(w->memory_fd, MEMORY_BYTES), 0);
    for (uint64_t page = 0; page < N_PAGES; page += 2) {
        uint64_t word = page * 0x9e3779b97f4a7c15u;

        assert_int_equal(fd_pwrite_full(w->memory_fd, &word, sizeof(word), page * PAGE), 0);
    }
    w->host = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, w->memory_fd, 0);
    assert_ptr_not_equal(w->host, MAP_FAILED);
    memory_init(&memory, w->host, MEMORY_BYTES);
    w->pagemap_fd = private_pages_open_map(proc_fd, &err);
    close(proc_fd);
    assert_true(w->pagemap_fd >= 0);
    assert_int_equal(private_pages_init(&w->pages, &memory, w->memory_fd, w->pagemap_fd, &err),
                     0);
    *state = w;
    return 0;
}

/* As on a kernel that cannot scan. */
static int setup_without_scan(void **state)
{
    struct world *w;

    (void)setup(state);
    w = *state;
    w->pages.can_scan = false;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    (void)munmap(w->host, MEMORY_BYTES);
    (void)munmap((void *)(uintptr_t)w->pages.clean, MEMORY_BYTES);
    fd_close(&w->memory_fd);
    fd_close(&w->pagemap_fd);
    free(w);
    return 0;
}

static void touch(struct world *w, uint64_t page)
{
    memset(w->host + page * PAGE, 0xa5, PAGE);
}

static uint64_t reset(struct world *w)
{
    struct err err = {0};
    uint64_t pages = 0;

    assert_int_equal(private_pages_reset(&w->pages, &pages, &err), 0);
    /* Looked at by other means than those of the reset. */
    assert_memory_equal(w->host, w->pages.clean, MEMORY_BYTES);
    assert_int_equal(private_pages_verify(&w->pages, true, &err), 0);
    return pages;
}

static void test_goes_back(void **state)
{
    struct world *w = *state;
    const uint64_t written[] = {0, 1, 511, 512, 513, 1024, 5000, N_PAGES - 1};
    const size_t n = sizeof(written) / sizeof(written[0]);

    assert_int_equal(reset(w), 0);
    for (size_t i = 0; i < n; i++)
        touch(w, written[i]);
    assert_int_equal(reset(w), n);
    /* They stay private, and go back again. */
    assert_int_equal(reset(w), n);
    for (size_t i = 0; i < n; i++)
        touch(w, written[i]);
    assert_int_equal(reset(w), n);
}

/* Nothing stays in blocks that held nothing at first. */
static void test_unknown_blocks_are_not_kept(void **state)
{
    struct world *w = *state;

    /* Not through memory_equal, which would make every page present. */
    for (uint32_t i = 0; i < PRIVATE_PAGES_LOOKS; i++) {
        struct err err = {0};
        uint64_t pages = 0;

        touch(w, 3);
        assert_int_equal(private_pages_reset(&w->pages, &pages, &err), 0);
        assert_int_equal(pages, 1);
    }
    for (uint64_t page = 0; page < N_PAGES; page += 511)
        touch(w, page);
    (void)reset(w);
    /* Those of the first block stayed: 0, 3 and 511. */
    assert_int_equal(reset(w), 3);
}

static void test_keeps_only_so_much(void **state)
{
    struct world *w = *state;

    for (uint64_t page = 0; page < N_PAGES; page++)
        touch(w, page);
    assert_int_equal(reset(w), N_PAGES);
    assert_int_equal(w->pages.n_kept, PRIVATE_PAGES_KEPT_MAX);
    assert_int_equal(reset(w), PRIVATE_PAGES_KEPT_MAX);
    /* A hole in the middle of what does not stay. */
    touch(w, PRIVATE_PAGES_KEPT_MAX + 1);
    touch(w, PRIVATE_PAGES_KEPT_MAX + 3);
    touch(w, N_PAGES - 1);
    assert_int_equal(reset(w), PRIVATE_PAGES_KEPT_MAX + 3);
    assert_int_equal(w->pages.n_kept, PRIVATE_PAGES_KEPT_MAX);
    assert_int_equal(reset(w), PRIVATE_PAGES_KEPT_MAX);
}

/* Swapped out, a page is still private; where there is no swap the request does nothing. */
static void test_swapped_pages_go_back(void **state)
{
    struct world *w = *state;

    for (uint64_t page = 600; page < 700; page++)
        touch(w, page);
#ifdef MADV_PAGEOUT
    (void)madvise(w->host + 600 * PAGE, 100 * PAGE, MADV_PAGEOUT);
#endif
    assert_int_equal(reset(w), 100);
}

static void test_random_writes(void **state)
{
    struct world *w = *state;

    srandom(7);
    for (int round = 0; round < 12; round++) {
        long n = random() % 3000;

        for (long i = 0; i < n; i++)
            w->host[(uint64_t)random() % MEMORY_BYTES] ^= (uint8_t)(1 + random() % 255);
        (void)reset(w);
    }
}

static void test_verify_tells_a_difference(void **state)
{
    struct world *w = *state;
    struct err err = {0};

    (void)reset(w);
    w->host[9 * PAGE + 17] ^= 1;
    assert_int_equal(private_pages_verify(&w->pages, false, &err), -EILSEQ);
    assert_non_null(strstr(err.message, "0x9011"));
    assert_int_equal(private_pages_verify(&w->pages, true, NULL), -EILSEQ);
}

static void test_odd_sizes_are_refused(void **state)
{
    struct world *w = *state;
    struct private_pages *p = calloc(1, sizeof(*p));
    struct memory memory;
    struct err err = {0};

    assert_non_null(p);
    memory_init(&memory, w->host, MEMORY_BYTES - PAGE);
    assert_int_equal(private_pages_init(p, &memory, w->memory_fd, w->pagemap_fd, &err),
                     -EINVAL);
    free(p);
}

#define TEST(name)                                                                             \
    {#name, name, setup, teardown, NULL},                                                      \
    {                                                                                          \
#name " without a scan", name, setup_without_scan, teardown, NULL                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_goes_back),
        TEST(test_unknown_blocks_are_not_kept),
        TEST(test_keeps_only_so_much),
        TEST(test_swapped_pages_go_back),
        TEST(test_random_writes),
        TEST(test_verify_tells_a_difference),
        TEST(test_odd_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
