/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a hostile guest cost who reads them: processor time and memory. */
#include "tests/unit/cmocka_all.h"

#include "api/skill/artifacts.h"
#include "api/skill/file_names.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/clock.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 10000u
#define MIB   (1u << 20)

static const struct artifacts_limits limits = {.files = FILES,
                                               .folders = FILES,
                                               .names_bytes = 4 * MIB,
                                               .list_bytes = MIB,
                                               .bytes = 100 * MIB,
                                               .file_bytes = 100 * MIB};
/* Of all names that these limits let in; content is not in it. */
#define HEAP_MAX (10 * MIB)

struct flood {
    int out_fd, spool_fd;
    struct artifacts *artifacts;
    size_t heap; /* in use when it began */
};

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static struct flood begin(void)
{
    struct flood f = {.heap = heap_bytes()};

    f.out_fd = memfd_create("out", MFD_CLOEXEC);
    f.spool_fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(f.out_fd >= 0 && f.spool_fd >= 0);
    f.artifacts =
        artifacts_create(f.out_fd, fcntl(f.spool_fd, F_DUPFD_CLOEXEC, 0), &limits, NULL);
    assert_non_null(f.artifacts);
    return f;
}

static void push(const struct flood *f, const char *path, uint64_t size)
{
    const struct tar_header header = {.path = path, .type = TAR_FILE, .size = size};
    struct buf tar = buf_init(1u << 16);

    assert_int_equal(tar_put_header(&tar, &header), 0);
    assert_int_equal(artifacts_push(f->artifacts, tar.data, tar.len, NULL), 0);
    buf_finish(&tar);
}

static void end(struct flood *f)
{
    assert_int_equal(artifacts_end(f->artifacts, NULL), 0);
    artifacts_destroy(f->artifacts);
    close(f->out_fd);
    close(f->spool_fd);
}

/* FNV-1a, which was the hash of these names once, and where a name then went in a table. */
static uint64_t hash(uint64_t h, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return h;
}

static bool is_crowded(uint64_t h)
{
    return ((h ^ h >> 29) & 0x7fff) < 32;
}

/* Writes five letters that no call before wrote, all in one corner of that table or anywhere.
 */
static uint64_t write_part(char *part, uint64_t h, uint32_t *counter, bool crowded)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    uint64_t after;

    do {
        uint32_t n = (*counter)++;

        for (size_t i = 0; i < 5; i++, n >>= 6)
            part[i] = letters[n & 63];
        after = hash(h, part, 5);
    } while (crowded && !is_crowded(after));
    return after;
}

/* The time that it takes to read files in folders in folders. */
static uint64_t read_chains(bool crowded)
{
    struct flood f = begin();
    uint64_t ns = 0;
    uint32_t counter = 0;

    for (unsigned i = 0; i < FILES / NAMES_DEPTH_MAX; i++) {
        char path[NAMES_DEPTH_MAX * 6 + 1] = "";
        uint64_t h = 0xcbf29ce484222325ull;

        for (size_t at = 0; at < sizeof(path) - 1; at += 6) {
            if (at > 0) {
                path[at - 1] = '/';
                h = hash(h, "/", 1);
            }
            h = write_part(path + at, h, &counter, crowded);
        }
        ns -= clock_thread_cpu_ns();
        push(&f, path, 0);
        ns += clock_thread_cpu_ns();
    }
    assert_int_equal(artifacts_kept(f.artifacts)->files, FILES / NAMES_DEPTH_MAX);
    end(&f);
    return ns;
}

static void chosen_names_cost_no_more_than_others(void **state)
{
    uint64_t plain_ns = UINT64_MAX, crowded_ns = UINT64_MAX;

    (void)state;
    /* A machine that stands still adds to some, but not to all. */
    for (int i = 0; i < 3; i++) {
        const uint64_t plain = read_chains(false), crowded = read_chains(true);

        plain_ns = plain < plain_ns ? plain : plain_ns;
        crowded_ns = crowded < crowded_ns ? crowded : crowded_ns;
    }
    if (crowded_ns > 4 * plain_ns + 100000000)
        fail_msg("%.1f ms, others %.1f ms", (double)crowded_ns / 1e6, (double)plain_ns / 1e6);
}

/* Names of so many parts, each of so many bytes and no two alike: all that are let in. */
static void push_names(const struct flood *f, unsigned n_parts, unsigned bytes)
{
    char path[NAMES_PATH_MAX + 1];

    for (unsigned i = 0; i < FILES; i++) {
        size_t n = 0;

        for (unsigned part = 0; part < n_parts; part++)
            n += (size_t)snprintf(path + n, sizeof(path) - n, "%s%0*u", part > 0 ? "/" : "",
                                  (int)bytes, i);
        push(f, path, 0);
    }
}

static void names_take_little_memory(void **state)
{
    static const unsigned shapes[][2] = {{32, 31}, {4, 255}, {2, 210}, {2, 5}, {1, 255}};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct flood f = begin();
        const struct artifacts_kept *kept;
        size_t heap;

        push_names(&f, shapes[i][0], shapes[i][1]);
        heap = heap_bytes() - f.heap;
        if (heap > HEAP_MAX)
            fail_msg("%u parts of %u bytes: %zu bytes", shapes[i][0], shapes[i][1], heap);
        kept = artifacts_kept(f.artifacts);
        assert_true(kept->n > 0 && kept->n <= kept->files);
        assert_int_equal(kept->truncated, kept->files < FILES);
        end(&f);
    }
}

static void content_is_not_in_memory(void **state)
{
    static char block[MIB];
    struct flood f = begin();
    struct stat st;

    (void)state;
    push(&f, "large", 16 * MIB);
    for (unsigned i = 0; i < 15; i++)
        assert_int_equal(artifacts_push(f.artifacts, block, sizeof(block), NULL), 0);
    assert_int_equal(fstat(f.spool_fd, &st), 0);
    assert_int_equal(st.st_size, 15 * MIB);
    assert_int_equal(artifacts_push(f.artifacts, block, sizeof(block), NULL), 0);
    assert_true(heap_bytes() - f.heap < 2 * MIB);
    assert_int_equal(artifacts_kept(f.artifacts)->files, 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_names_cost_no_more_than_others),
        cmocka_unit_test(names_take_little_memory),
        cmocka_unit_test(content_is_not_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
