/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a skill is found out once, for those who may use the same images. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/choices.h"

#include <errno.h>
#include <string.h>

#define DIGEST(first) first "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efc"

static struct images images = {
    .n = 3,
    .known = {.n = 4,
              .n_here = 3,
              .list = {{"python", 10, true, {.known = true, .python_minor = 11}},
                       {"data", 20, true, {.known = true, .python_minor = 11}},
                       {"node", 15, true, {.known = true}},
                       {"away", 5, false, {.known = true, .python_minor = 13}}}}};

static struct needs_item python = {
    .kind = NEEDS_LANGUAGE, .name = (char[]){"Python"}, .file = (char[]){"main.py"}, .line = 1};

static image_set_t allowed(const char *names)
{
    struct tenant_limits limits = tenant_limits_default();

    snprintf(limits.images, sizeof(limits.images), "%s", names);
    return choices_allowed(&images.known, &limits);
}

static void is_remembered(void **state)
{
    struct memo *choices = choices_create();
    struct needs needs = {.items = &python, .len = 1};
    struct image_choice made, found = {0};

    (void)state;
    assert_non_null(choices);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", IMAGE_SET_ALL, &found), 0);
    choices_make(choices, &images, DIGEST("aaa"), "python", IMAGE_SET_ALL, &needs, &made);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", IMAGE_SET_ALL, &found), 1);
    assert_int_equal(found.place, 0);
    assert_string_equal(found.why, "smallest of 3 that has Python");
    assert_string_equal(made.why, found.why);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "bash", IMAGE_SET_ALL, &found), 0);
    /* Not for others, whose images are others, and not of another skill in the same place. */
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", allowed("data node"), &found),
        0);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa") "0", "python", IMAGE_SET_ALL, &found),
        0);
    choices_make(choices, &images, DIGEST("aaa"), "python", allowed("data node"), &needs,
                 &made);
    assert_int_equal(made.place, 1);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", allowed("node data"), &found),
        1);
    assert_int_equal(found.place, 1);
    memo_destroy(choices);
    memo_destroy(NULL);
}

/* Nothing is read where there is nothing to choose. */
static void is_clear(void **state)
{
    struct memo *choices = choices_create();
    struct image_choice found = {0};

    (void)state;
    assert_non_null(choices);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", allowed("node"), &found), 1);
    assert_int_equal(found.place, 2);
    assert_string_equal(found.why, "the only one to choose from");
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", allowed("away"), &found),
        -EACCES);
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", allowed("nod"), &found),
        -EACCES);
    images.known.list[0].manifest.known = false;
    assert_int_equal(
        choices_recall(choices, &images, DIGEST("aaa"), "python", IMAGE_SET_ALL, &found), 1);
    assert_int_equal(found.place, 0);
    assert_string_equal(found.why, "nothing is known of what it has");
    images.known.list[0].manifest.known = true;
    memo_destroy(choices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_remembered),
        cmocka_unit_test(is_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
