/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages beside what else is kept: what they take, other ones of the same skill, what is
 * known of its tools, and the image of a run.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/packages_world.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 280 KiB that do not become much less. */
static const char *incompressible(void)
{
    static char content[280 * 1024 + 1];
    uint32_t seed = 1;

    for (size_t i = 0; i < sizeof(content) - 1; i++) {
        seed = seed * 1664525 + 1013904223;
        content[i] = (char)('#' + (seed >> 24) % 64);
    }
    return content;
}

static struct bytes large_skill(const char *name)
{
    static const char *const names[] = {"a", "b", "c"};
    static const char *const files[] = {"wheels/a-1.0-py3-none-any.whl",
                                        "wheels/b-1.0-py3-none-any.whl",
                                        "wheels/c-1.0-py3-none-any.whl"};
    struct part parts[4] = {{NULL, {NULL, 0}}};

    for (size_t i = 0; i < 3; i++)
        parts[i] = (struct part){files[i], make_wheel(names[i], "", incompressible())};
    return make_skill(name, "", parts);
}

/* A tenant that may store so much; *ret gets its header. */
static void make_tenant(const struct world *w, const char *name, unsigned bytes, char ret[64])
{
    char json[128];

    snprintf(json, sizeof(json), "{\"name\":\"%s\",\"limits\":{\"storage_bytes\":%u}}", name,
             bytes);
    expect(harness_request(&w->h, "POST", "/v1/admin/tenants",
                           "Content-Type: application/json\r\n", json, strlen(json)),
           201, name);
    snprintf(ret, 64, "X-Tenant-ID: %s\r\n" TYPE, name);
}

static struct answer send_as(const struct world *w, const char *headers, const char *path,
                             struct bytes body)
{
    struct answer a = harness_request(&w->h, "POST", path, headers, body.data, body.len);

    free(body.data);
    return a;
}

/* What is there at one time counts: copies of wheels come one after another. */
static void what_is_there_at_once_counts(void **state)
{
    const struct world *w = *state;
    char headers[2][64];

    make_tenant(w, "roomy", 4400000, headers[0]);
    make_tenant(w, "narrow", 3300000, headers[1]);
    expect(send_as(w, headers[0], PUSH, large_skill("large")), 201, "\"name\":\"c\"");
    expect(send_as(w, headers[1], PUSH, large_skill("large")), 413, "storage_bytes: ");
}

static struct bytes wants_big(void)
{
    struct part parts[] = {{"requirements.txt", text("big\n")}, {NULL, {NULL, 0}}};

    return make_skill("same", "import big\n", parts);
}

/* The same skill with other packages is another push: it has to fit, and the audit has it. */
static void other_packages_are_a_push(void **state)
{
    const struct world *w = *state;
    struct bytes file = {calloc(1, 1900000), 1900000};
    char headers[64];

    make_tenant(w, "full", 2 << 20, headers);
    expect(send_as(w, headers, PUSH, wants_big()), 201, "\"packages\":[]");
    put_in_house(w, "big-1.0-py3-none-any.whl", make_wheel("big", "", incompressible()));
    expect(send_as(w, headers, "/v1/files?name=f", file), 201, "file_");
    expect(send_as(w, headers, PUSH "?replace=true", wants_big()), 413, "storage_bytes: ");
    expect(harness_request(&w->h, "GET", "/v1/skills/same/1", headers, NULL, 0), 200,
           "\"packages\":[]");
    expect(harness_request(&w->h, "PATCH", "/v1/admin/tenants/full",
                           "Content-Type: application/json\r\n",
                           "{\"limits\":{\"storage_bytes\":0}}", 30),
           200, "full");
    expect(send_as(w, headers, PUSH "?replace=true", wants_big()), 201, "\"name\":\"big\"");
    expect(harness_get(&w->h, "/v1/admin/audit"), 200, " replaces ");
}

#define PARSED                                                                                 \
    "import argparse\n#probe:{\"version\":1,\"doc\":\"Own words.\",\"parser\":{"               \
    "\"description\":null,\"actions\":[{\"kind\":\"store\",\"dest\":\"count\","                \
    "\"options\":[\"--count\"],\"nargs\":null,\"type\":\"integer\",\"required\":false,"        \
    "\"help\":\"how often\"}]}}\n"

static struct bytes parsed_skill(void)
{
    struct part parts[] = {{"requirements.txt", text("late\n")}, {NULL, {NULL, 0}}};

    return make_skill("parsed", PARSED, parts);
}

/*
 * What was found of a script without its packages is nothing that is known of it with them: who
 * has no time to look learns nothing.
 */
static void what_is_known_of_a_tool_is_known_with_its_packages(void **state)
{
    static const char burn[] =
        "{\"skill\":\"burner\",\"env\":{\"FAKE\":\"burn\",\"FAKE_DATA\":\"100\"}}";
    static const char limits[] = "{\"limits\":{\"cpu_ms_per_day\":1}}";
    const struct world *w = *state;
    struct part none[] = {{NULL, {NULL, 0}}};
    char headers[64];
    struct answer a;

    expect(send_skill(w, PUSH, parsed_skill()), 201, "\"packages\":[]");
    expect(harness_get(&w->h, "/v1/tools"), 200, "how often");
    make_tenant(w, "poor", 0, headers);
    expect(send_as(w, headers, PUSH, parsed_skill()), 201, "\"packages\":[]");
    expect(harness_request(&w->h, "PATCH", "/v1/admin/tenants/poor",
                           "Content-Type: application/json\r\n", limits, strlen(limits)),
           200, "poor");
    expect(send_as(w, headers, PUSH, make_skill("burner", "", none)), 201, "burner");
    expect(harness_request(&w->h, "POST", "/v1/executions",
                           "X-Tenant-ID: poor\r\nContent-Type: application/json\r\n", burn,
                           strlen(burn)),
           200, "success");
    expect(harness_request(&w->h, "GET", "/v1/tools", headers, NULL, 0), 200, "how often");
    put_in_house(w, "late-1.0-py3-none-any.whl", make_wheel("late", "", ""));
    expect(send_as(w, headers, PUSH "?replace=true", parsed_skill()), 201, "\"name\":\"late\"");
    a = harness_request(&w->h, "GET", "/v1/tools", headers, NULL, 0);
    has(&a, "\"name\":\"parsed\"");
    assert_null(strstr(a.body, "how often"));
    answer_finish(&a);
    expect(harness_get(&w->h, "/v1/tools"), 200, "how often");
}

/* They were chosen for the image python: what cannot go with another is refused before it runs.
 */
static void they_go_with_the_image_that_it_runs_in(void **state)
{
    const struct world *w = *state;
    struct answer a;

    expect(send_skill(w, PUSH, good_skill("good")), 201, "\"image\":\"python\"");
    expect(harness_run(&w->h, "{\"skill\":\"good\"}"), 200, "\"warnings\":[]");
    a = harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"newer\"}");
    assert_int_equal(a.status, 200);
    has(&a, "\"warnings\":[\"the image newer has yaml-one 6.1; its packages were chosen where "
            "there was 6.0\"]");
    answer_finish(&a);
    expect(harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"bare\"}"), 400,
           "the image bare has no yaml-one: its packages were chosen for another");
    expect(harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"old\"}"), 400,
           "the image old has Python 3.9 and not 3.11: its packages were chosen for another");
    expect(harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"pypy\"}"), 400,
           "the image pypy has PyPy and not CPython: its packages were chosen for another");
    expect(harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"alone\"}"), 400,
           "the image alone looks for no packages of a skill: its packages were chosen for");
    a = harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"old\",\"script\":\"main.sh\"}");
    assert_int_equal(a.status, 200);
    has(&a, "\"warnings\":[\"the image old has Python 3.9 and not 3.11");
    answer_finish(&a);
}

#define SMALLEST "\"image_reason\":\"smallest of 7 that takes its packages and has yaml\""

/* The image and the reason are the same wherever they are told, and the run is accepted. */
static void gets(const struct world *w, struct bytes skill, const char *name, const char *why)
{
    struct bytes again = {malloc(skill.len), skill.len};
    char path[128], run[64];
    struct answer a;

    memcpy(again.data, skill.data, skill.len);
    expect(send_skill(w, PUSH "/validate", again), 200, why);
    expect(send_skill(w, PUSH, skill), 201, why);
    snprintf(run, sizeof(run), "{\"skill\":\"%s\"}", name);
    snprintf(path, sizeof(path), PUSH "/%s/latest/inspect", name);
    for (int i = 0; i < 2; i++) {
        a = harness_run(&w->h, run);
        assert_int_equal(a.status, 200);
        has(&a, why);
        has(&a, "\"warnings\":[]");
        answer_finish(&a);
    }
    a = harness_get(&w->h, path);
    has(&a, why);
    has(&a, "\"warnings\":[]");
    answer_finish(&a);
    expect(harness_get(&w->h, "/v1/tools"), 200, name);
}

/* A skill with a wheel of its one module. */
static struct bytes skill_with(const char *name, const char *module, const char *requires)
{
    char file[64], script[64];
    struct part parts[] = {{file, make_wheel(module, requires, "")}, {NULL, {NULL, 0}}};

    snprintf(file, sizeof(file), "wheels/%s-1.0-py3-none-any.whl", module);
    snprintf(script, sizeof(script), "import %s, yaml\n", module);
    return make_skill(name, script, parts);
}

/* Pushed anew, a skill keeps its packages, and its image; or both are chosen anew. */
static void what_is_kept_keeps_its_image(void **state)
{
    static const char without[] = "\"image\":\"large\"", with[] = "\"image\":\"python\"";
    static const char run[] = "{\"skill\":\"kept\"}";
    const struct world *w = *state;
    struct bytes skills[3];

    for (int i = 0; i < 3; i++) {
        struct part parts[] = {{"requirements.txt", text("heavy\nlate\n")}, {NULL, {NULL, 0}}};

        skills[i] = make_skill("kept", "import heavy, yaml\n", parts);
    }
    expect(send_skill(w, PUSH, skills[0]), 201, without);
    expect(harness_run(&w->h, run), 200, without);
    put_in_house(w, "late-1.0-py3-none-any.whl", make_wheel("late", "", ""));
    put_in_house(w, "heavy-1.0-py3-none-any.whl", make_wheel("heavy", "", ""));
    expect(send_skill(w, PUSH, skills[1]), 201, without);
    expect(harness_run(&w->h, run), 200, without);
    expect(send_skill(w, PUSH "?replace=true", skills[2]), 201, with);
    expect(harness_run(&w->h, run), 200, with);
}

/* Where requirements are met by the wheelhouse, or the skill brings wheels. */
static void an_image_that_takes_none_is_passed_over(void **state)
{
    static const char alone[] = "\"image\":\"alone\",\"image_reason\":\"none of 7 has all: "
                                "this one lacks rare\"";
    static const char python[] = "\"image\":\"python\"," SMALLEST;
    static const char run[] = "{\"skill\":\"passing\"}";
    const struct world *w = *state;
    struct bytes skills[3];
    struct answer a;

    gets(w, skill_with("lasting", "solid", ""), "lasting", python);
    for (int i = 0; i < 3; i++) {
        struct part parts[] = {{"requirements.txt", text("solid\nrare\n")}, {NULL, {NULL, 0}}};

        skills[i] = make_skill("passing", "import solid, yaml\n", parts);
    }
    expect(send_skill(w, PUSH, skills[0]), 201, alone);
    expect(harness_run(&w->h, run), 200, alone);
    put_in_house(w, "rare-1.0-py3-none-any.whl", make_wheel("rare", "", ""));
    a = send_skill(w, PUSH "?replace=true", skills[1]);
    has(&a, alone);
    assert_null(strstr(a.body, "it runs without packages"));
    answer_finish(&a);
    put_in_house(w, "solid-1.0-py3-none-any.whl", make_wheel("solid", "", ""));
    expect(send_skill(w, PUSH "?replace=true", skills[2]), 201, python);
    expect(harness_run(&w->h, run), 200, python);
}

/* Changes what images a tenant may use. */
static void allow(const struct world *w, const char *name, const char *images)
{
    char path[64], json[64];

    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", name);
    snprintf(json, sizeof(json), "{\"limits\":{\"images\":%s}}", images);
    expect(harness_request(&w->h, "PATCH", path, "Content-Type: application/json\r\n", json,
                           strlen(json)),
           200, name);
}

/* Also one that may be used only later, where the image that it has had them all. */
static void what_they_are_chosen_for_is_kept(void **state)
{
    static const char run[] = "{\"skill\":\"moving\"}", large[] = "\"image\":\"large\"";
    const struct world *w = *state;
    struct part parts[] = {{"requirements.txt", text("deep\n")}, {NULL, {NULL, 0}}};
    char headers[64];

    make_tenant(w, "moved", 0, headers);
    allow(w, "moved", "[\"large\",\"python\"]");
    expect(send_as(w, headers, PUSH, make_skill("moving", "import deep\n", parts)), 201, large);
    allow(w, "moved", "null");
    expect(harness_request(&w->h, "POST", "/v1/executions",
                           "X-Tenant-ID: moved\r\nContent-Type: application/json\r\n", run,
                           strlen(run)),
           200, large);
}

/* What packages hold no image needs to have that they go with. */
static void what_they_hold_no_image_needs(void **state)
{
    const struct world *w = *state;

    gets(w, good_skill("reasoned"), "reasoned", "\"image\":\"python\"," SMALLEST);
    gets(w, skill_with("light", "heavy", "Requires-Dist: yaml-one\n"), "light",
         "\"image\":\"python\"," SMALLEST);
}

/* Where they take something from the image, another one has to have just that. */
static void what_they_take_of_an_image_it_keeps(void **state)
{
    const struct world *w = *state;

    gets(w, skill_with("rooted", "heavy", "Requires-Dist: deep\n"), "rooted",
         "\"image\":\"large\"," SMALLEST);
    gets(w, skill_with("versioned", "fresh", "Requires-Dist: yaml-one>=6.1\n"), "versioned",
         "\"image\":\"newer\"," SMALLEST);
    /* As of the other Python that they are for. */
    gets(w, skill_with("vintage", "aged", ""), "vintage", "\"image\":\"old\"," SMALLEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_at_once_counts),
        cmocka_unit_test(other_packages_are_a_push),
        cmocka_unit_test(what_is_known_of_a_tool_is_known_with_its_packages),
    };
    const struct CMUnitTest of_images[] = {
        cmocka_unit_test(they_go_with_the_image_that_it_runs_in),
        cmocka_unit_test(an_image_that_takes_none_is_passed_over),
        cmocka_unit_test(what_they_are_chosen_for_is_kept),
        cmocka_unit_test(what_they_hold_no_image_needs),
        cmocka_unit_test(what_they_take_of_an_image_it_keeps),
        cmocka_unit_test(what_is_kept_keeps_its_image),
    };
    int failed = cmocka_run_group_tests(tests, packages_start, finish);

    return failed + cmocka_run_group_tests(of_images, packages_start_with_images, finish);
}
