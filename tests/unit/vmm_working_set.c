/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The working set: ranges survive the file, and no damaged file is acted upon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fd.h"
#include "vmm/working_set.h"

#define N_PAGES 192u

static uint8_t file[WORKING_SET_SIZE_MAX];

static void mark(void *context, uint64_t first_page, uint64_t pages)
{
    uint64_t *bitmap = context;

    for (uint64_t p = first_page; p < first_page + pages; p++)
        bitmap[p / 64] |= 1ull << p % 64;
}

static size_t encode(const uint64_t *bitmap)
{
    int64_t len = working_set_encode(bitmap, N_PAGES, file, sizeof(file));

    assert_true(len > 0);
    return (size_t)len;
}

static void round_trip(void **unused)
{
    const uint64_t bitmap[3] = {0x8000000000000001, 0x00ff00000000000f, 0xffffffffffffffff};
    uint64_t back[3] = {0};
    struct err err = {0};

    (void)unused;
    assert_int_equal(working_set_decode(file, encode(bitmap), N_PAGES, mark, back, &err), 0);
    assert_memory_equal(bitmap, back, sizeof(back));
    /* Page 0, pages 63 to 67, eight pages, and the last word: four ranges. */
    assert_int_equal(encode(bitmap), 16 + 4 * 8 + 4);
}

static void nothing_written_is_an_empty_set(void **unused)
{
    const uint64_t bitmap[3] = {0};
    uint64_t back[3] = {0};

    (void)unused;
    assert_int_equal(working_set_decode(file, encode(bitmap), N_PAGES, mark, back, NULL), 0);
    assert_memory_equal(bitmap, back, sizeof(back));
}

static void too_many_ranges_are_not_written(void **unused)
{
    static uint64_t bitmap[2 * (WORKING_SET_RANGES_MAX + 1) / 64 + 1];

    (void)unused;
    memset(bitmap, 0x55, sizeof(bitmap));
    assert_int_equal(working_set_encode(bitmap, sizeof(bitmap) * 8, file, sizeof(file)), -7);
    assert_int_equal(working_set_encode(bitmap, N_PAGES, file, 100), -7);
}

static void put_u32(size_t at, uint32_t v)
{
    struct bytes_writer w = bytes_writer_init(file + at, 4);

    bytes_put_u32(&w, v);
}

static void expect_refused(size_t len, uint64_t n_pages)
{
    uint64_t back[3] = {0};
    const uint64_t none[3] = {0};
    struct err err = {0};

    assert_int_equal(working_set_decode(file, len, n_pages, mark, back, &err), -22);
    assert_non_null(strstr(err.message, "working set"));
    assert_memory_equal(back, none, sizeof(none));
}

static void damage_is_refused(void **unused)
{
    const uint64_t bitmap[3] = {0x11, 0x11, 0};
    size_t len = encode(bitmap);

    (void)unused;
    for (size_t bit = 0; bit < 8 * len; bit++) {
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        expect_refused(len, N_PAGES);
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++)
        expect_refused(cut, N_PAGES);
    /* Whole, but for a larger machine, or with ranges that overlap. */
    expect_refused(len, 68);
    put_u32(24, 0);
    put_u32(len - 4, crc32_update(0, file, len - 4));
    expect_refused(len, N_PAGES);
    put_u32(24, 1);
    put_u32(28, UINT32_MAX);
    put_u32(len - 4, crc32_update(0, file, len - 4));
    expect_refused(len, N_PAGES);
}

static void populating_keeps_the_content(void **unused)
{
    const uint64_t bitmap[3] = {0x3, 0, 0};
    size_t len = encode(bitmap);
    size_t ram_bytes = N_PAGES * 4096;
    int ram_fd = memfd_create("ram", MFD_CLOEXEC);
    int fd = memfd_create("working-set", MFD_CLOEXEC);
    /* No machine: KVM's refusal must not matter. */
    const struct kvm kvm = kvm_init();
    struct memory memory;
    struct err err = {0};
    char found[6];
    void *ram;

    (void)unused;
    assert_true(fd >= 0 && ram_fd >= 0);
    assert_int_equal(ftruncate(ram_fd, (off_t)ram_bytes), 0);
    assert_int_equal(fd_pwrite_full(ram_fd, "before", 6, 4096), 0);
    assert_int_equal(fd_write_full(fd, file, len), 0);
    ram = mmap(NULL, ram_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, ram_fd, 0);
    assert_true(ram != MAP_FAILED);
    memory_init(&memory, ram, ram_bytes);
    assert_int_equal(working_set_apply(fd, &kvm, &memory, &err), 0);
    assert_int_equal(memory_read(&memory, 4096, found, 6), 0);
    assert_memory_equal(found, "before", 6);
    assert_int_equal(ftruncate(fd, 7), 0);
    assert_int_equal(working_set_apply(fd, &kvm, &memory, &err), -22);
    (void)munmap(ram, ram_bytes);
    fd_close(&fd);
    fd_close(&ram_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(nothing_written_is_an_empty_set),
        cmocka_unit_test(too_many_ranges_are_not_written),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(populating_keeps_the_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
