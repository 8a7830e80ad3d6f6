/* SPDX-License-Identifier: Apache-2.0 */
/* Skills that bring wheels: at a push, in an answer and a result, on disk, and in the guest. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"
#include "tests/unit/make_archive.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define expect harness_expect
#define MD     "---\nname: %s\ndescription: A skill of a test.\nversion: \"1\"\n---\n"
#define TYPE   "Content-Type: application/octet-stream\r\n"
#define PUSH   "/v1/skills"

struct world {
    struct harness h;
    char house[128];
};

/* Content that may hold NULs. */
struct bytes {
    char *data;
    size_t len;
};

static struct bytes read_whole(int fd)
{
    struct bytes b = {.len = (size_t)lseek(fd, 0, SEEK_END)};

    b.data = malloc(b.len);
    assert_non_null(b.data);
    assert_int_equal(pread(fd, b.data, b.len, 0), b.len);
    close(fd);
    return b;
}

/* A wheel with one module that has its own name. */
static struct bytes make_wheel(const char *name, const char *requires, const char *content)
{
    char module[128], info[160], metadata[512];
    const struct member members[] = {
        {.path = module, .content = content}, {.path = info, .content = metadata}, {0}};

    snprintf(module, sizeof(module), "%s.py", name);
    snprintf(info, sizeof(info), "%s-1.0.dist-info/METADATA", name);
    snprintf(metadata, sizeof(metadata), "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n%s",
             name, requires);
    return read_whole(make_archive(ZIP, members));
}

/* One with more entries than packages may have in this world. */
static struct bytes make_busy_wheel(const char *name)
{
    char info[160], metadata[256];
    const struct member members[] = {{.path = "0"},
                                     {.path = "1"},
                                     {.path = "2"},
                                     {.path = "3"},
                                     {.path = "4"},
                                     {.path = "5"},
                                     {.path = "6"},
                                     {.path = "7"},
                                     {.path = "8"},
                                     {.path = "9"},
                                     {.path = info, .content = metadata},
                                     {0}};

    snprintf(info, sizeof(info), "%s-1.0.dist-info/METADATA", name);
    snprintf(metadata, sizeof(metadata), "Name: %s\nVersion: 1.0\n", name);
    return read_whole(make_archive(ZIP, members));
}

struct part {
    const char *path;
    struct bytes content;
};

/* A tar of a skill with these files, which are freed. */
static struct bytes make_skill(const char *name, const char *script, struct part *parts)
{
    int fd = memfd_create("skill", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    char md[256];
    struct part fixed[] = {{"SKILL.md", {md, 0}},
                           {"main.py", {strdup(script), strlen(script)}}};

    snprintf(md, sizeof(md), MD, name);
    fixed[0].content = (struct bytes){strdup(md), strlen(md)};
    archive_write_set_format_pax_restricted(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < 2 || parts[i - 2].path; i++) {
        const struct part *part = i < 2 ? &fixed[i] : &parts[i - 2];
        struct archive_entry *entry = archive_entry_new();

        archive_entry_set_pathname(entry, part->path);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)part->content.len);
        assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
        archive_write_data(a, part->content.data, part->content.len);
        archive_entry_free(entry);
        free(part->content.data);
    }
    archive_write_close(a);
    archive_write_free(a);
    return read_whole(fd);
}

static struct bytes text(const char *content)
{
    return (struct bytes){strdup(content), strlen(content)};
}

static struct answer send_skill(const struct world *w, const char *path, struct bytes skill)
{
    struct answer a = harness_request(&w->h, "POST", path, TYPE, skill.data, skill.len);

    free(skill.data);
    return a;
}

/* With "top", which requires "base" of its wheels. */
static struct bytes good_skill(const char *name)
{
    struct part parts[] = {
        {"requirements.txt", text("top  # and what it requires\n")},
        {"main.sh", text("true\n")},
        {"wheels/base-1.0-py3-none-any.whl", make_wheel("base", "", "VALUE = 1\n")},
        {"wheels/top-1.0-py3-none-any.whl",
         make_wheel("top", "Requires-Dist: base>=1\nRequires-Dist: yaml-one\n",
                    "import base\n")},
        {NULL, {NULL, 0}}};

    return make_skill(name, "import top, base, yaml\n", parts);
}

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

static void has(const struct answer *a, const char *part)
{
    if (!strstr(a->body, part))
        fail_msg("no %s in %s", part, a->body);
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
    has(&a, "\"packages_bytes\":");
    assert_null(strstr(a.body, "\"packages_bytes\":0,"));
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
           "image has CPython 3.11");
    expect(send_skill(w, PUSH, make_skill("lacking", "", others)), 400,
           "absent>=2, which requirements.txt line 2 requires, is not there");
    expect(send_skill(w, "/v1/skills/validate", make_skill("broken", "", broken)), 400,
           "wheels/x-1.0-py3-none-any.whl is no zip archive");
    expect(send_skill(w, PUSH, make_skill("busy", "", busy)), 400,
           "wheels/x-1.0-py3-none-any.whl has more than 10 entries");
    assert_int_equal(objects(w), before);
    harness_assert_clean(&w->h);
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
    char *content = malloc((1u << 20) + 1);

    assert_non_null(content);
    /* Text that is no bomb. */
    for (size_t i = 0; i < 1u << 20; i++)
        content[i] = (char)('a' + (i * i / 7 + i) % 26);
    content[1u << 20] = '\0';
    for (size_t i = 0; i < 5; i++)
        many[i] = (struct part){files[i], make_wheel(names[i], "", "x = 1\n")};
    large[0].content = make_wheel("large", "", content);
    free(content);
    expect(send_skill(w, PUSH, make_skill("many", "", many)), 413, "more than 10 entries");
    expect(send_skill(w, PUSH, make_skill("large", "", large)), 413,
           "wheels/large-1.0-py3-none-any.whl: the archive expands to more than 1048576 bytes");
    assert_int_equal(objects(w), before);
}

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

static void put_in_house(const struct world *w, const char *file, struct bytes wheel)
{
    char path[256];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", w->house, file);
    out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(wheel.data, 1, wheel.len, out), wheel.len);
    assert_int_equal(fclose(out), 0);
    free(wheel.data);
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
    a = harness_run(&w->h, "{\"skill\":\"good\",\"image\":\"old\",\"script\":\"main.sh\"}");
    assert_int_equal(a.status, 200);
    has(&a, "\"warnings\":[\"the image old has Python 3.9 and not 3.11");
    answer_finish(&a);
}

static void put(const struct harness *h, const char *name, const char *content)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", h->dir, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_images(const struct harness *h)
{
    static const char *const names[] = {"newer", "bare", "old"};
    static const char *const manifests[] = {
        "language python 3.11.2\nprogram bash\nmodule yaml\npackage yaml-one 6.1\n",
        "language python 3.11.2\nprogram bash\n",
        "language python 3.9.2\nprogram bash\nmodule yaml\npackage yaml-one 6.0\n"};
    char file[64];

    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof(file), "%s.erofs", names[i]);
        put(h, file, "restore, and larger");
        snprintf(file, sizeof(file), "%s.manifest", names[i]);
        put(h, file, manifests[i]);
    }
}

static int begin(void **state, bool many_images)
{
    struct world *w = calloc(1, sizeof(*w));
    char path[256], settings[512];

    *state = w;
    harness_init(&w->h, "boot", "restore");
    snprintf(w->house, sizeof(w->house), "%s/house", w->h.dir);
    assert_int_equal(mkdir(w->house, 0700), 0);
    put(&w->h, "python.manifest",
        "language python 3.11.2\nprogram bash\nstandard json\nmodule yaml\n"
        "package yaml-one 6.0\n");
    if (many_images)
        put_images(&w->h);
    snprintf(settings, sizeof(settings),
             "wheelhouse: %s\nlimits: {packages_entries: 10, packages_bytes: 1MiB}\n",
             w->house);
    put(&w->h, "skillvmd.yaml", settings);
    snprintf(path, sizeof(path), "%s/skillvmd.yaml", w->h.dir);
    harness_start(&w->h, (const char *const[]){"--config", path, NULL});
    harness_wait_ready(&w->h);
    return 0;
}

static int start(void **state)
{
    return begin(state, false);
}

static int start_with_images(void **state)
{
    return begin(state, true);
}

static int finish(void **state)
{
    struct world *w = *state;
    static const char *const files[] = {"house-1.0-py3-none-any.whl",
                                        "big-1.0-py3-none-any.whl", "late-1.0-py3-none-any.whl",
                                        "notes.txt"};
    char path[256];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", w->house, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(w->house);
    harness_assert_clean(&w->h);
    assert_int_equal(harness_stop(&w->h, 15), 0);
    harness_finish(&w->h);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_are_kept_told_and_given),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(what_they_hold_has_limits),
        cmocka_unit_test(what_is_there_at_once_counts),
        cmocka_unit_test(the_wheelhouse_is_for_everybody),
        cmocka_unit_test(other_packages_are_a_push),
        cmocka_unit_test(what_is_known_of_a_tool_is_known_with_its_packages),
    };

    const struct CMUnitTest of_images[] = {
        cmocka_unit_test(they_go_with_the_image_that_it_runs_in),
    };
    int failed = cmocka_run_group_tests(tests, start, finish);

    return failed + cmocka_run_group_tests(of_images, start_with_images, finish);
}
