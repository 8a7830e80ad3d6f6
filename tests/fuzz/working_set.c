/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of working sets. The first byte chooses: 0 takes the rest as a whole file;
 * anything else takes it as ranges (u32 first page, u32 pages), so that length and checksum do
 * not keep the fuzzer out.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "vmm/layout.h"
#include "vmm/working_set.h"

#define N_PAGES   (LAYOUT_RAM_MIN_BYTES / LAYOUT_PAGE_SIZE)
#define FILE_MAX  (WORKING_SET_SIZE_MAX + 64u)
#define RANGE_LEN 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t visited[N_PAGES / 64];
static uint64_t n_visited;

static void check(bool right)
{
    if (!right)
        abort();
}

/* Of memory, and each page once. */
static void visit(void *context, uint64_t first_page, uint64_t pages)
{
    (void)context;
    check(pages > 0 && first_page < N_PAGES && pages <= N_PAGES - first_page);
    for (uint64_t page = first_page; page < first_page + pages; page++) {
        check(!(visited[page / 64] >> page % 64 & 1));
        visited[page / 64] |= UINT64_C(1) << page % 64;
        n_visited++;
    }
}

static void read_file(const uint8_t *file, size_t len)
{
    static uint8_t again[FILE_MAX];
    static uint64_t before[N_PAGES / 64];
    uint64_t n_before;
    struct err err = {0};
    int64_t written;

    memset(visited, 0, sizeof(visited));
    n_visited = 0;
    if (working_set_decode(file, len, N_PAGES, visit, NULL, &err) < 0) {
        check(err.code != 0 && n_visited == 0);
        return;
    }
    /* As it is written by who records one it has the same pages, in no more ranges. */
    written = working_set_encode(visited, N_PAGES, again, sizeof(again));
    check(written > 0 && (size_t)written <= len);
    n_before = n_visited;
    memcpy(before, visited, sizeof(before));
    memset(visited, 0, sizeof(visited));
    n_visited = 0;
    check(working_set_decode(again, (size_t)written, N_PAGES, visit, NULL, NULL) == 0);
    check(n_visited == n_before && memcmp(visited, before, sizeof(before)) == 0);
}

static void read_ranges(const uint8_t *ranges, size_t len)
{
    static uint8_t file[FILE_MAX];
    const size_t n = len / RANGE_LEN;
    struct bytes_writer w = bytes_writer_init(file, sizeof(file));

    bytes_put(&w, "SKVMWSET", 8);
    bytes_put_u32(&w, WORKING_SET_VERSION);
    bytes_put_u32(&w, (uint32_t)n);
    bytes_put(&w, ranges, n * RANGE_LEN);
    bytes_put_u32(&w, crc32_update(0, file, w.len));
    if (!w.bad)
        read_file(file, w.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 0)
        read_file(data + 1, size - 1);
    else
        read_ranges(data + 1, size - 1);
    return 0;
}
