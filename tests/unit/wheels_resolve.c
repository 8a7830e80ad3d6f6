/* SPDX-License-Identifier: Apache-2.0 */
/* Which wheels are chosen for which requirements, and what is said where there is no choice. */
#include "api/wheels/resolve.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A wheel by its file, and the lines of METADATA beside name and version. */
struct given {
    enum wheel_from from;
    const char *file; /* of the image "NAME VERSION" */
    const char *lines;
};

struct world {
    const struct given *given;
};

static unsigned loads;

static int load(void *ctx, struct wheel *wheel, struct err *err)
{
    struct world *world = ctx;
    _cleanup_free_ char *text = NULL;
    const char *lines = world->given[wheel->place].lines;

    loads++;
    wheel->work = 1024;
    if (lines && strcmp(lines, "damaged") == 0)
        return err_set(err, EINVAL, "is damaged");
    assert_true(asprintf(&text, "Name: %s\nVersion: %s\n%s", wheel->name, wheel->version_text,
                         lines ? lines : "") > 0);
    return metadata_parse(text, strlen(text), &wheel->metadata, err);
}

static int digest(void *ctx, struct wheel *wheel, struct err *err)
{
    (void)ctx;
    (void)err;
    memset(wheel->sha256, 'a' + (int)wheel->place, 64);
    return 0;
}

static void add(struct wheel_list *list, const struct given *given, size_t place)
{
    struct wheel wheel = {
        .from = given->from, .place = place, .file = (char *)(uintptr_t)given->file};
    char why[TAGS_WHY_SIZE];
    struct tags_wheel tags;
    const char *space = strchr(given->file, ' ');

    if (given->from == WHEEL_OF_IMAGE) {
        assert_int_equal(tags_normalize(given->file, (size_t)(space - given->file), wheel.name),
                         0);
        strcpy(wheel.version_text, space + 1);
        assert_int_equal(pep440_parse(space + 1, strlen(space + 1), &wheel.version), 0);
    } else {
        assert_int_equal(tags_parse(given->file, &tags, NULL), 0);
        wheel.rank = tags_rank(&tags, 11, why);
        wheel.why = wheel.rank < 0 ? why : NULL;
        wheel.version = tags.version;
        strcpy(wheel.name, tags.name);
        strcpy(wheel.version_text, tags.version_text);
    }
    assert_int_equal(wheel_list_add(list, &wheel), 0);
}

/* What is chosen, as "NAME VERSION …", or the message. */
static const char *choose(const struct given *given, const char *const *wanted)
{
    static char said[4096];
    struct world world = {.given = given};
    _cleanup_wheel_list_ struct wheel_list list = {.n = 0};
    _cleanup_wanted_ struct wanted_list wants = {.n = 0};
    struct resolve resolve = {.wheels = &list,
                              .wanted = &wants,
                              .python = {11, 2},
                              .load = load,
                              .digest = digest,
                              .ctx = &world};
    struct resolved resolved = {.n = 0};
    struct err err = {0};

    for (size_t i = 0; given[i].file; i++)
        add(&list, &given[i], i);
    for (; *wanted; wanted++) {
        const char *hash = strstr(*wanted, " --hash ");
        size_t len = hash ? (size_t)(hash - *wanted) : strlen(*wanted);

        if (wanted_add(&wants, "requirements.txt", *wanted, len, &err) < 0)
            fail_msg("%s", err.message);
        if (hash)
            skill_strings_insert(&wants.items[wants.n - 1].requirement.sha256, hash + 8, 9);
    }
    said[0] = '\0';
    if (resolve_run(&resolve, &resolved, &err) < 0)
        return strcpy(said, err.message);
    for (size_t i = 0; i < resolved.n; i++) {
        const struct wheel *wheel = &list.items[resolved.wheels[i]];

        sprintf(said + strlen(said), "%s%s %s", i ? ", " : "", wheel->name,
                wheel->version_text);
    }
    free(resolved.wheels);
    return said;
}

#define WANTED(...)                 ((const char *const[]){__VA_ARGS__, NULL})
#define expect(given, wanted, said) assert_string_equal(choose(given, wanted), said)

static void says(const char *said, const char *part)
{
    if (!strstr(said, part))
        fail_msg("\"%s\" does not say \"%s\"", said, part);
}

static void the_best_of_each_is_chosen(void **state)
{
    static const struct given given[] = {
        {WHEEL_OF_SKILL, "top-1.0-py3-none-any.whl", "Requires-Dist: base>=1,<3\n"},
        {WHEEL_OF_SKILL, "top-1.2-py3-none-any.whl",
         "Requires-Dist: base>=1,<3\nRequires-Dist: gone; os_name == 'nt'\n"},
        {WHEEL_OF_SKILL, "top-1.3-cp312-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "top-1.4-py3-none-any.whl", "Requires-Python: >=3.12\n"},
        {WHEEL_OF_SKILL, "top-1.5-py3-none-any.whl", "damaged"},
        {WHEEL_OF_SKILL, "base-2.0-py3-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "base-3.0-py3-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "base-2.1rc1-py3-none-any.whl", NULL},
        {WHEEL_OF_HOUSE, "base-2.9-py3-none-any.whl", NULL},
        {WHEEL_OF_IMAGE, "pyyaml 6.0", NULL},
        {WHEEL_OF_HOUSE, "pyyaml-6.1-py3-none-any.whl", NULL},
        {WHEEL_OF_HOUSE, "six-1.16-py3-none-any.whl", NULL},
        {WHEEL_OF_HOUSE, "six-2.0a1-py3-none-any.whl", NULL},
        {0, NULL, NULL}};

    (void)state;
    expect(given, WANTED("top"), "base 2.1rc1, top 1.2");
    expect(given, WANTED("top", "base<2.1rc1"), "base 2.0, top 1.2");
    expect(given, WANTED("Top==1.0", "PyYAML>=5", "six"),
           "base 2.1rc1, pyyaml 6.0, six 1.16, top 1.0");
    expect(given, WANTED("PyYAML>6"), "pyyaml 6.1");
    expect(given, WANTED("six>=2.0a0"), "six 2.0a1");
    expect(given, WANTED("six>1.16"), "six 2.0a1");
    expect(given, WANTED("six; python_version < '3'"), "");
}

static void choices_are_taken_back(void **state)
{
    /* The newest a needs a c that b does not go with. */
    static const struct given given[] = {
        {WHEEL_OF_SKILL, "a-2-py3-none-any.whl", "Requires-Dist: c>=2\n"},
        {WHEEL_OF_SKILL, "a-1-py3-none-any.whl", "Requires-Dist: c\n"},
        {WHEEL_OF_SKILL, "b-1-py3-none-any.whl", "Requires-Dist: c<2\nRequires-Dist: d\n"},
        {WHEEL_OF_SKILL, "c-1-py3-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "c-2-py3-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "d-2-py3-none-any.whl", "Requires-Dist: nowhere\n"},
        {WHEEL_OF_SKILL, "d-1-py3-none-any.whl", NULL},
        {0, NULL, NULL}};

    (void)state;
    expect(given, WANTED("a", "b"), "a 1, b 1, c 1, d 1");
    expect(given, WANTED("b", "a"), "a 1, b 1, c 1, d 1");
    says(choose(given, WANTED("a==2", "b")),
         "c>=2, which a-2-py3-none-any.whl requires, cannot be had: c-2-py3-none-any.whl is "
         "version 2, and b-1-py3-none-any.whl requires c<2; c-1-py3-none-any.whl is version 1; "
         "put one that fits, for CPython 3.11 on Linux x86_64 into wheels/, or change what is "
         "required");
}

static void circles_and_extras(void **state)
{
    static const struct given given[] = {
        {WHEEL_OF_SKILL, "a-1-py3-none-any.whl", "Requires-Dist: b[x]\n"},
        {WHEEL_OF_SKILL, "b-1-py3-none-any.whl",
         "Requires-Dist: a[y]\nRequires-Dist: b[z]; extra == 'x'\nRequires-Dist: c; extra == "
         "'z'\n"},
        {WHEEL_OF_SKILL, "c-1-py3-none-any.whl", "Requires-Dist: a\n"},
        {WHEEL_OF_IMAGE, "requests 2.28.1", NULL},
        {0, NULL, NULL}};

    (void)state;
    expect(given, WANTED("a"), "a 1, b 1, c 1");
    expect(given, WANTED("c", "b"), "a 1, b 1, c 1");
    says(choose(given, WANTED("requests[socks]")), "comes without extras");
}

static void messages_say_what_is_missing(void **state)
{
    static const struct given given[] = {
        {WHEEL_OF_SKILL, "numpy-1.26.4-cp312-cp312-manylinux2014_x86_64.whl", NULL},
        {WHEEL_OF_SKILL, "numpy-1.26.4-cp311-cp311-win_amd64.whl", NULL},
        {WHEEL_OF_SKILL, "numpy-1.20-py3-none-any.whl", NULL},
        {WHEEL_OF_SKILL, "top-1-py3-none-any.whl", "Requires-Dist: numpy>=1.21\n"},
        {WHEEL_OF_SKILL, "bad-1-py3-none-any.whl", "damaged"},
        {WHEEL_OF_SKILL, "six-1-py3-none-any.whl", NULL},
        {0, NULL, NULL}};
    const char *said = choose(given, WANTED("top"));

    (void)state;
    says(said, "numpy>=1.21, which top-1-py3-none-any.whl requires, cannot be had: ");
    says(said, "numpy-1.26.4-cp312-cp312-manylinux2014_x86_64.whl is for CPython 3.12 (cp312); "
               "the image has CPython 3.11");
    says(said, "numpy-1.26.4-cp311-cp311-win_amd64.whl is for the platform win_amd64");
    says(said, "numpy-1.20-py3-none-any.whl is version 1.20");
    says(choose(given, WANTED("bad")), "bad-1-py3-none-any.whl is damaged");
    says(choose(given, WANTED("pandas>=2")),
         "pandas>=2, which requirements.txt requires, is not there: put a wheel of it for "
         "CPython 3.11 on Linux x86_64 into wheels/");
    says(choose(given, WANTED("six --hash bbbb")), "six-1-py3-none-any.whl has another hash");
    expect(
        given,
        WANTED("six --hash ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
        "six 1");
}

/* No choice goes together, and there are more of them than anybody can try. */
static void a_search_without_an_end_ends(void **state)
{
    struct given given[24 * 24 + 1];
    char files[24 * 24][64], lines[24 * 24][64];
    size_t n = 0;

    (void)state;
    memset(given, 0, sizeof(given));
    for (unsigned name = 0; name < 24; name++)
        for (unsigned version = 0; version < 24; version++, n++) {
            snprintf(files[n], sizeof(files[n]), "p%u-%u-py3-none-any.whl", name, version);
            if (name == 23)
                snprintf(lines[n], sizeof(lines[n]), "Requires-Dist: p0>99\n");
            else
                snprintf(lines[n], sizeof(lines[n]), "Requires-Dist: p%u\n", name + 1);
            given[n] = (struct given){WHEEL_OF_SKILL, files[n], lines[n]};
        }
    says(choose(given, WANTED("p0")), "it takes too long to choose its packages");
}

/* Requirements that nobody needs, as long as METADATA may be, with long markers. */
static char *make_long(void)
{
    struct buf text = buf_init(1u << 20);

    while (text.len < METADATA_BYTES_MAX - 4096) {
        (void)buf_printf(&text, "Requires-Dist: none; ");
        for (unsigned i = 0; i < 180; i++)
            (void)buf_printf(&text, "extra<''or ");
        (void)buf_printf(&text, "os_name == 'nt'\n");
    }
    assert_non_null(buf_cstr(&text));
    return (char *)text.data;
}

/* Reading it, choosing of it and taking it back all count, not only versions that are tried. */
static void what_is_read_is_work(void **state)
{
    enum { N = 50 };
    struct given chain[N + 1] = {{0, NULL, NULL}}, broken[N + 1] = {{0, NULL, NULL}};
    _cleanup_free_ char *text = make_long();
    char files[2][N][64], *lines[2][N];

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        snprintf(files[0][i], sizeof(files[0][i]), "p%u-1-py3-none-any.whl", i);
        snprintf(files[1][i], sizeof(files[1][i]), "p-%u-py3-none-any.whl", i);
        assert_true(asprintf(&lines[0][i], "Requires-Dist: p%u[a,b,c,d]\n%s", i + 1, text) > 0);
        assert_true(asprintf(&lines[1][i], "%sRequires-Dist: !\n", text) > 0);
        chain[i] = (struct given){WHEEL_OF_SKILL, files[0][i], lines[0][i]};
        broken[i] = (struct given){WHEEL_OF_SKILL, files[1][i], lines[1][i]};
    }
    loads = 0;
    says(choose(chain, WANTED("p0")), "it takes too long to choose its packages");
    assert_in_range(loads, 2, 12);
    loads = 0;
    says(choose(broken, WANTED("p")), "it takes too long to choose its packages");
    assert_in_range(loads, 2, 40);
    for (unsigned i = 0; i < N; i++) {
        free(lines[0][i]);
        free(lines[1][i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_each_is_chosen),
        cmocka_unit_test(choices_are_taken_back),
        cmocka_unit_test(circles_and_extras),
        cmocka_unit_test(messages_say_what_is_missing),
        cmocka_unit_test(a_search_without_an_end_ends),
        cmocka_unit_test(what_is_read_is_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
