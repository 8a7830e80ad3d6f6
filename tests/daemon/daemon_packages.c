/* SPDX-License-Identifier: Apache-2.0 */
/* Skills that bring wheels: at a push, in an answer and a result, on disk, and in the guest. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/packages_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESOLVED                                                                               \
    "\"packages\":[{\"name\":\"base\",\"version\":\"1.0\",\"from\":\"skill\","                 \
    "\"file\":\"base-1.0-py3-none-any.whl\"},"                                                 \
    "{\"name\":\"top\",\"version\":\"1.0\",\"from\":\"skill\","                                \
    "\"file\":\"top-1.0-py3-none-any.whl\"},"                                                  \
    "{\"name\":\"yaml-one\",\"version\":\"6.0\",\"from\":\"image\",\"file\":null}]"

static unsigned objects(const struct world *w)
{
    return harness_count_files(&w->h, "objects");
}

static void packages_are_kept_told_and_given(void **state)
{
    const struct world *w = *state;
    unsigned before = objects(w);
    struct answer a = send_skill(w, PUSH, good_skill("good"));

    assert_int_equal(a.status, 201);
    has(&a, RESOLVED);
    has(&a, "\"warnings\":[]");
    answer_finish(&a);
    assert_int_equal(objects(w), before + 2);
    a = harness_run(&w->h, "{\"skill\":\"good\"}");
    assert_int_equal(a.status, 200);
    has(&a, RESOLVED);
    assert_true(answer_number(&a, "packages_bytes") > 0);
    answer_finish(&a);
    a = harness_get(&w->h, "/v1/skills/good/latest/inspect");
    has(&a, RESOLVED);
    has(&a, "{\"module\":\"top\",\"from\":\"skill\"");
    has(&a, "\"warnings\":[]");
    answer_finish(&a);
    /* Another skill with the same packages has the same object of them. */
    expect(send_skill(w, PUSH, good_skill("twin")), 201, "\"name\":\"twin\"");
    assert_int_equal(objects(w), before + 3);
    expect(harness_request(&w->h, "DELETE", "/v1/skills/good/1", "", NULL, 0), 204, "");
    assert_int_equal(objects(w), before + 2);
    expect(harness_run(&w->h, "{\"skill\":\"twin\"}"), 200, "\"status\":\"success\"");
    expect(harness_request(&w->h, "DELETE", "/v1/skills/twin/1", "", NULL, 0), 204, "");
    assert_int_equal(objects(w), before);
}

static void what_cannot_be_had_is_refused(void **state)
{
    const struct world *w = *state;
    unsigned before = objects(w);
    struct part parts[] = {
        {"wheels/x-1.0-cp312-cp312-manylinux2014_x86_64.whl", make_wheel("x", "", "")},
        {NULL, {NULL, 0}}};
    struct part others[] = {{"scripts/requirements.txt", text("six\n")},
                            {"requirements.txt", text("x\nabsent>=2\n")},
                            {"wheels/x-1.0-py3-none-any.whl", make_wheel("x", "", "")},
                            {NULL, {NULL, 0}}};
    struct part busy[] = {{"wheels/x-1.0-py3-none-any.whl", make_busy_wheel("x")},
                          {NULL, {NULL, 0}}};
    struct part broken[] = {{"wheels/x-1.0-py3-none-any.whl", text("no zip")},
                            {NULL, {NULL, 0}}};

    expect(send_skill(w, PUSH, make_skill("other", "", parts)), 400,
           "wheels/x-1.0-cp312-cp312-manylinux2014_x86_64.whl is for CPython 3.12 (cp312); the "
           "image has CPython 3.11; put one that fits, for CPython 3.11 on Linux x86_64 into "
           "wheels/, or change what is required");
    expect(send_skill(w, PUSH, make_skill("lacking", "", others)), 400,
           "absent>=2, which requirements.txt line 2 requires, is not there");
    expect(send_skill(w, "/v1/skills/validate", make_skill("broken", "", broken)), 400,
           "wheels/x-1.0-py3-none-any.whl is no zip archive");
    expect(send_skill(w, PUSH, make_skill("busy", "", busy)), 400,
           "wheels/x-1.0-py3-none-any.whl has more than 10 entries (limits.packages_entries)");
    assert_int_equal(objects(w), before);
    harness_assert_clean(&w->h);
}

/* Text that is no bomb, and its NUL. */
static char *make_text(size_t len)
{
    char *content = malloc(len + 1);

    assert_non_null(content);
    for (size_t i = 0; i < len; i++)
        content[i] = (char)('a' + (i * i / 7 + i) % 26);
    content[len] = '\0';
    return content;
}

/* What does not become smaller, so that its wheel is over the limit by itself. */
static char *make_noise(size_t len)
{
    char *content = malloc(len + 1);
    uint32_t seed = 1;

    assert_non_null(content);
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        content[i] = (char)(1 + (seed >> 24) % 255);
    }
    content[len] = '\0';
    return content;
}

static void what_they_hold_has_limits(void **state)
{
    const struct world *w = *state;
    unsigned before = objects(w);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static const char *const files[] = {
        "wheels/a-1.0-py3-none-any.whl", "wheels/b-1.0-py3-none-any.whl",
        "wheels/c-1.0-py3-none-any.whl", "wheels/d-1.0-py3-none-any.whl",
        "wheels/e-1.0-py3-none-any.whl"};
    struct part many[6] = {{NULL, {NULL, 0}}};
    struct part large[] = {{"wheels/large-1.0-py3-none-any.whl", {NULL, 0}}, {NULL, {NULL, 0}}};
    struct part packed[] = {{"wheels/packed-1.0-py3-none-any.whl", {NULL, 0}},
                            {NULL, {NULL, 0}}};
    char *content = make_text(1u << 20), *noise = make_noise(1u << 20);

    for (size_t i = 0; i < 5; i++)
        many[i] = (struct part){files[i], make_wheel(names[i], "", "x = 1\n")};
    large[0].content = make_wheel("large", "", content);
    packed[0].content = make_wheel("packed", "", noise);
    free(content);
    free(noise);
    expect(send_skill(w, PUSH, make_skill("many", "", many)), 413, "more than 10 entries");
    expect(send_skill(w, PUSH, make_skill("large", "", large)), 413,
           "wheels/large-1.0-py3-none-any.whl: the archive expands to more than 1048576 bytes; "
           "all wheels of a skill together have limits.packages_bytes and "
           "limits.packages_entries: bring fewer or smaller ones, or have the operator raise");
    expect(
        send_skill(w, PUSH, make_skill("packed", "", packed)), 413,
        "wheels/packed-1.0-py3-none-any.whl: the archive expands to more than 1048576 bytes");
    assert_int_equal(objects(w), before);
}

/* A skill without wheels may do without what its requirements.txt names. */
static void the_wheelhouse_is_for_everybody(void **state)
{
    const struct world *w = *state;
    struct part none[] = {{"requirements.txt", text("house\n")}, {NULL, {NULL, 0}}};
    struct part again[] = {{"requirements.txt", text("house\n")}, {NULL, {NULL, 0}}};
    struct part third[] = {{"requirements.txt", text("house\n")}, {NULL, {NULL, 0}}};
    struct answer a;

    expect(send_skill(w, PUSH, make_skill("tenant", "import house\n", none)), 201,
           "it runs without packages of the wheelhouse: house, which requirements.txt line 1 "
           "requires, is not there");
    put_in_house(w, "house-1.0-py3-none-any.whl", make_wheel("house", "", ""));
    put_in_house(w, "notes.txt", text("no wheel"));
    /* What is there keeps what it was given, until it is replaced. */
    expect(send_skill(w, PUSH, make_skill("tenant", "import house\n", again)), 201,
           "\"packages\":[]");
    a = harness_run(&w->h, "{\"skill\":\"tenant\"}");
    has(&a, "\"packages\":[]");
    answer_finish(&a);
    a = send_skill(w, PUSH "?replace=true", make_skill("tenant", "import house\n", third));
    assert_int_equal(a.status, 201);
    has(&a, "\"from\":\"wheelhouse\",\"file\":\"house-1.0-py3-none-any.whl\"");
    has(&a, "\"replaced\":\"sha256:");
    has(&a, "\"warnings\":[]");
    answer_finish(&a);
    a = harness_run(&w->h, "{\"skill\":\"tenant\"}");
    has(&a, "\"name\":\"house\"");
    answer_finish(&a);
}

static struct bytes skill_with(const char *name, const char *content)
{
    struct part parts[] = {
        {"wheels/heavy-1.0-py3-none-any.whl", make_wheel("heavy", "", content)},
        {NULL, {NULL, 0}}};

    return make_skill(name, "import heavy\n", parts);
}

/* Runs it until its packages are there before it is, which they are not at first. */
static void await_held(const struct world *w, const char *name)
{
    char body[64];
    bool is_held = false;

    snprintf(body, sizeof(body), "{\"skill\":\"%s\"}", name);
    for (unsigned i = 0; !is_held; i++) {
        struct answer a = harness_run(&w->h, body);

        assert_int_equal(a.status, 200);
        has(&a, "\"status\":\"success\"");
        is_held = answer_has(&a, "\"packages_bytes\":0");
        assert_true(i > 0 || !is_held);
        assert_true(i < 1000);
        answer_finish(&a);
        usleep(10000);
    }
}

static struct answer delete_skill(const struct world *w, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/skills/%s/1", name);
    return harness_request(&w->h, "DELETE", path, "", NULL, 0);
}

/* The same packages are sent once, to the guest of a snapshot, which who has them shares. */
static void large_packages_are_in_a_snapshot(void **state)
{
    const struct world *w = *state;
    char *content = make_text(300000);
    unsigned before = harness_count_files(&w->h, "snapshots");

    expect(send_skill(w, PUSH, skill_with("heavy", content)), 201, "heavy");
    await_held(w, "heavy");
    assert_int_equal(harness_count_files(&w->h, "snapshots"), before + 1);
    expect(send_skill(w, PUSH, skill_with("brother", content)), 201, "brother");
    expect(harness_run(&w->h, "{\"skill\":\"brother\"}"), 200, "\"packages_bytes\":0,");
    expect(send_skill(w, PUSH, skill_with("stranger", "x = 1\n")), 201, "stranger");
    for (unsigned i = 0; i < 3; i++) {
        struct answer a = harness_run(&w->h, "{\"skill\":\"stranger\"}");

        assert_true(answer_number(&a, "packages_bytes") > 0);
        answer_finish(&a);
    }
    free(content);
    /* With the last who has them they go. */
    expect(delete_skill(w, "heavy"), 204, "");
    expect(harness_run(&w->h, "{\"skill\":\"brother\"}"), 200, "\"packages_bytes\":0,");
    expect(delete_skill(w, "brother"), 204, "");
    harness_until(harness_count_files(&w->h, "snapshots") <= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_are_kept_told_and_given),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(what_they_hold_has_limits),
        cmocka_unit_test(the_wheelhouse_is_for_everybody),
        cmocka_unit_test(large_packages_are_in_a_snapshot),
    };

    return cmocka_run_group_tests(tests, packages_start, finish);
}
