/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a kernel by good, damaged and hostile lists, and drawing how far.
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
#include <errno.h>

#include "base/fd.h"
#include "vmm/relocations.h"

#define KERNEL_GPA   0x1000u
#define KERNEL_VA    0xffffffff81000000ull
#define KERNEL_BYTES 64u
#define TABLE_OFFSET 4u
#define MOVE         0x12400000ull

/* The entry for what lies at an offset of the kernel. */
#define AT(offset) (0x81000000u + (offset))

/* The guest's memory ends behind the kernel, so that what leads out of it shows. */
static uint8_t ram[KERNEL_GPA + KERNEL_BYTES];
static struct memory memory;

static int apply(const void *table, size_t bytes, struct err *err)
{
    struct loader_kernel kernel = {.gpa = KERNEL_GPA,
                                   .va = KERNEL_VA,
                                   .bytes = KERNEL_BYTES,
                                   .relocations_offset = TABLE_OFFSET,
                                   .relocations_bytes = bytes};
    _cleanup_fd_ int fd = memfd_create("kernel", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fd_pwrite_full(fd, table, bytes, TABLE_OFFSET), 0);
    memset(ram, 0, sizeof(ram));
    memory_init(&memory, ram, sizeof(ram));
    return relocations_apply(fd, &kernel, &memory, MOVE, err);
}

static uint64_t get(uint64_t offset, size_t size)
{
    uint64_t value = 0;

    assert_int_equal(memory_read(&memory, KERNEL_GPA + offset, &value, size), 0);
    return value;
}

static void moves_each_kind(void **unused)
{
    static const uint32_t table[] = {0, AT(0), AT(56), 0, AT(9), 0, AT(16), AT(60 - 20)};
    static const uint8_t untouched[KERNEL_GPA];

    (void)unused;
    assert_int_equal(apply(table, sizeof(table), NULL), 0);
    assert_int_equal(get(0, 8), MOVE);
    assert_int_equal(get(56, 8), MOVE);
    assert_int_equal(get(9, 4), (uint32_t)-MOVE);
    assert_int_equal(get(16, 4), MOVE);
    assert_int_equal(get(40, 4), MOVE);
    assert_int_equal(get(20, 8), 0);
    assert_memory_equal(ram, untouched, KERNEL_GPA);
}

static void adds_to_what_is_there(void **unused)
{
    static const uint32_t table[] = {0, 0, 0, AT(4), AT(4)};

    (void)unused;
    assert_int_equal(apply(table, sizeof(table), NULL), 0);
    assert_int_equal(get(4, 8), 2 * MOVE);
}

/* More entries than are read at once. */
static void moves_many(void **unused)
{
    static uint32_t table[5000];

    (void)unused;
    for (size_t i = 3; i < 5000; i++)
        table[i] = AT(4 * (i % 16));
    assert_int_equal(apply(table, sizeof(table), NULL), 0);
    for (uint64_t i = 0; i < 16; i++)
        assert_int_equal(get(4 * i, 4), (uint32_t)(MOVE * (i < 3 || i > 7 ? 312 : 313)));
}

static void expect_refused(const uint32_t *table, size_t bytes, const char *says)
{
    struct err err = {0};

    assert_int_equal(apply(table, bytes, &err), -ENOEXEC);
    assert_non_null(strstr(err.message, says));
}

static void refuses_what_is_no_table(void **unused)
{
    (void)unused;
#define REFUSES(says, ...)                                                                     \
    do {                                                                                       \
        static const uint32_t table[] = {__VA_ARGS__};                                         \
        expect_refused(table, sizeof(table), says);                                            \
    } while (0)
    REFUSES("relocation 0, 0x81000000, is outside", AT(0), 0, 0, 0);
    REFUSES("relocation 1, 0x81000039, is outside", 0, AT(57), 0, 0);
    REFUSES("relocation 1, 0x80ffffff, is outside", 0, AT(-1), 0, 0);
    REFUSES("relocation 1, 0x1, is outside", 0, 1, 0, 0);
    REFUSES("relocation 2, 0x8100003d, is outside", 0, 0, AT(61), 0);
    REFUSES("relocation 3, 0x81000040, is outside", 0, 0, 0, AT(64));
    REFUSES("relocation 3, 0xffffffff, is outside", 0, 0, 0, UINT32_MAX);
    REFUSES("relocation 3, 0, is outside", 0, 0, 0, 0);
    REFUSES("not the three lists", 0, 0);
    REFUSES("not the three lists", 0, AT(0));
#undef REFUSES
    expect_refused((const uint32_t[]){0, 0, 0, AT(0)}, 15, "end inside one");
}

/* A table is read where the file is long enough, and a file may shrink. */
static void refuses_a_short_file(void **unused)
{
    struct loader_kernel kernel = {.va = KERNEL_VA, .bytes = 8, .relocations_bytes = 12};
    _cleanup_fd_ int fd = memfd_create("kernel", MFD_CLOEXEC);
    struct err err = {0};

    (void)unused;
    assert_int_equal(relocations_apply(fd, &kernel, &memory, MOVE, &err), -ENOEXEC);
    assert_non_null(strstr(err.message, "ends inside its relocations"));
}

static void draws_within_the_map(void **unused)
{
    const uint64_t bytes = 20u << 20;
    uint64_t first = 0, move = 0;
    unsigned changes = 0;

    (void)unused;
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(arch_kernel_draw_move(KERNEL_VA, bytes, &move, NULL), 0);
        assert_true(KERNEL_VA + move + bytes <= 0xffffffffc0000000ull);
        assert_int_equal(move % (2u << 20), 0);
        first = i == 0 ? move : first;
        changes += move != first;
    }
    assert_true(changes > 900);
}

static void draws_for_no_kernel_elsewhere(void **unused)
{
    struct err err = {0};
    uint64_t move = 77;

    (void)unused;
    assert_int_equal(arch_kernel_draw_move(0x200000, 4096, &move, &err), -ENOEXEC);
    assert_int_equal(arch_kernel_draw_move(KERNEL_VA, 1u << 30, &move, NULL), -ENOEXEC);
    assert_int_equal(arch_kernel_draw_move(KERNEL_VA, UINT64_MAX, &move, NULL), -ENOEXEC);
    assert_int_equal(move, 77);
    assert_int_equal(arch_kernel_draw_move(KERNEL_VA, (1u << 30) - (16u << 20), &move, NULL),
                     0);
    assert_int_equal(move, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_each_kind),
        cmocka_unit_test(adds_to_what_is_there),
        cmocka_unit_test(moves_many),
        cmocka_unit_test(refuses_what_is_no_table),
        cmocka_unit_test(refuses_a_short_file),
        cmocka_unit_test(draws_within_the_map),
        cmocka_unit_test(draws_for_no_kernel_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
