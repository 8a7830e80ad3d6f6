/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as held of what was removed while it was used. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/callers/uses.h"

#define A "ten_a"
#define B "ten_b"

/* What is held for a tenant. */
static uint64_t held_of(struct held *held, const char *tenant)
{
    uint64_t bytes = 0;

    assert_int_equal(held_add(held, tenant, HTTP_HELD_BODY, 0, UINT64_MAX, &bytes), 0);
    return bytes;
}

struct world {
    struct held *held;
    struct uses *uses;
};

static struct world begin(void)
{
    struct world w = {.held = held_create(NULL, NULL)};

    assert_non_null(w.held);
    w.uses = uses_create(w.held);
    assert_non_null(w.uses);
    return w;
}

static void end(struct world *w)
{
    uses_destroy(w->uses);
    held_destroy(w->held);
}

static struct stat object(ino_t inode, off_t bytes, nlink_t names)
{
    return (struct stat){.st_ino = inode, .st_size = bytes, .st_nlink = names};
}

static void it_counts_until_the_last_use_ends(void **unused)
{
    const struct stat st = object(7, 100, 1), other = object(8, 1000, 1);
    struct world w = begin();
    struct use *first = uses_begin(w.uses, A, &st), *second = uses_begin(w.uses, A, &st);
    struct use *of_other = uses_begin(w.uses, A, &other);

    (void)unused;
    assert_int_equal(held_of(w.held, A), 0);
    uses_note_removal(w.uses, 7);
    uses_note_removal(w.uses, 9);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(first);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(second);
    assert_int_equal(held_of(w.held, A), 0);
    /* It is forgotten: what has its number next is another. */
    first = uses_begin(w.uses, A, &st);
    assert_int_equal(held_of(w.held, A), 0);
    uses_end(first);
    uses_end(of_other);
    uses_end(NULL);
    end(&w);
}

static void it_counts_for_each_tenant(void **unused)
{
    const struct stat st = object(7, 100, 2);
    struct world w = begin();
    struct use *of_a = uses_begin(w.uses, A, &st), *of_b = uses_begin(w.uses, B, &st);

    (void)unused;
    uses_note_removal(w.uses, 7);
    assert_int_equal(held_of(w.held, A), 100);
    assert_int_equal(held_of(w.held, B), 100);
    uses_end(of_a);
    assert_int_equal(held_of(w.held, A), 0);
    assert_int_equal(held_of(w.held, B), 100);
    uses_end(of_b);
    assert_int_equal(held_of(w.held, B), 0);
    end(&w);
}

/* Between its opening and that. */
static void what_was_removed_before_counts_at_once(void **unused)
{
    const struct stat st = object(7, 100, 0);
    struct world w = begin();
    struct use *use = uses_begin(w.uses, A, &st);

    (void)unused;
    assert_int_equal(held_of(w.held, A), 100);
    uses_note_removal(w.uses, 7);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(use);
    assert_int_equal(held_of(w.held, A), 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_until_the_last_use_ends),
        cmocka_unit_test(it_counts_for_each_tenant),
        cmocka_unit_test(what_was_removed_before_counts_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
