/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/packages_world.h"
#include "tests/unit/fake_built.h"
#include "tests/unit/make_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MD "---\nname: %s\ndescription: A skill of a test.\nversion: \"1\"\n---\n"

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
struct bytes make_wheel(const char *name, const char *requires, const char *content)
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
struct bytes make_busy_wheel(const char *name)
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

/* A tar of a skill with these files, which are freed. */
struct bytes make_skill(const char *name, const char *script, struct part *parts)
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

struct bytes text(const char *content)
{
    return (struct bytes){strdup(content), strlen(content)};
}

struct answer send_skill(const struct world *w, const char *path, struct bytes skill)
{
    struct answer a = harness_request(&w->h, "POST", path, TYPE, skill.data, skill.len);

    free(skill.data);
    return a;
}

/* With "top", which requires "base" of its wheels. */
struct bytes good_skill(const char *name)
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

void has(const struct answer *a, const char *part)
{
    if (!strstr(a->body, part))
        fail_msg("no %s in %s", part, a->body);
}

void put_in_house(const struct world *w, const char *file, struct bytes wheel)
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
    static const char *const names[] = {"newer", "bare", "old", "large", "pypy", "alone"};
    static const char *const manifests[] = {
        "language python 3.11.2\nprogram bash\nmodule yaml\npackage yaml-one 6.1\n"
        "module fresh\n",
        "language python 3.11.2\nprogram bash\n",
        "language python 3.9.2\nprogram bash\nmodule yaml\npackage yaml-one 6.0\n"
        "module aged\n",
        "language python 3.11.2\nprogram bash\nmodule yaml\npackage yaml-one 6.0\n"
        "module heavy\nmodule solid\nmodule deep\npackage deep 1.0\n",
        "language python 3.11\npypy 3.11\nprogram bash\n",
        "language python 3.11.2\nalone python\nprogram bash\nmodule yaml\npackage yaml-one "
        "6.0\nmodule solid\nmodule deep\npackage deep 1.0\n"};
    char file[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(file, sizeof(file), "%s.erofs", names[i]);
        fake_built(h->dir, file, "restore, and larger");
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

int packages_start(void **state)
{
    return begin(state, false);
}

int packages_start_with_images(void **state)
{
    return begin(state, true);
}

int finish(void **state)
{
    struct world *w = *state;
    static const char *const files[] = {"house-1.0-py3-none-any.whl",
                                        "big-1.0-py3-none-any.whl",
                                        "late-1.0-py3-none-any.whl",
                                        "heavy-1.0-py3-none-any.whl",
                                        "notes.txt",
                                        "rare-1.0-py3-none-any.whl",
                                        "solid-1.0-py3-none-any.whl"};
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
