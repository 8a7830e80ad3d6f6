/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of strangers: what is taken, into which bytes, and what is refused by which rule. */
#include "api/skill/archive.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/take_archive.h"

static const struct member plain[] = {
    {.path = "scripts/main.py", .content = "print(1)\n", .mode = 0755},
    {.path = "SKILL.md", .content = SKILL_MD},
    {.path = "empty"},
    {.path = "link", .link = "scripts/main.py"},
    {0},
};

static void same_digest_from_all(void **state)
{
    /* A tar begins with a name, and this one as what bzip2 makes does. */
    static const struct member wrapped[] = {
        {.path = "BZhang/", .type = AE_IFDIR, .mode = 0700},
        {.path = "./BZhang/SKILL.md", .content = SKILL_MD, .mode = 0600},
        {.path = "BZhang/empty"},
        {.path = "BZhang/link", .link = "./scripts/../scripts/main.py"},
        {.path = "BZhang/scripts/", .type = AE_IFDIR},
        {.path = "BZhang/scripts/main.py", .content = "print(1)\n", .mode = 0711},
        {0},
    };
    struct skill_archive first = take(ZIP, plain, -1);
    (void)state;

    assert_int_equal(first.n_entries, 5);
    assert_string_equal(first.entries[0].path, "SKILL.md");
    assert_string_equal(first.entries[1].path, "empty");
    assert_string_equal(first.entries[2].path, "link");
    assert_string_equal(first.entries[2].target, "scripts/main.py");
    assert_string_equal(first.entries[3].path, "scripts");
    assert_int_equal(first.entries[3].type, ARCHIVE_ENTRY_DIR);
    assert_string_equal(first.entries[4].path, "scripts/main.py");
    assert_true(first.entries[4].executable);
    assert_int_equal(first.entries[4].size, 9);
    assert_string_equal(first.skill_md, SKILL_MD);
    assert_null(first.folder);
    for (enum kind kind = TAR; kind <= TAR_XZ; kind++) {
        struct skill_archive other = take(kind, plain, -1);
        assert_string_equal(other.digest, first.digest);
        skill_archive_finish(&other);
    }

    struct skill_archive in_folder = take(TAR, wrapped, -1);
    assert_string_equal(in_folder.folder, "BZhang");
    assert_int_equal(in_folder.n_entries, 5);
    assert_string_not_equal(in_folder.digest, first.digest); /* the link's text differs */
    skill_archive_finish(&in_folder);
    skill_archive_finish(&first);
}

/* The canonical bytes must never change: a digest is a skill's name in the object store. */
static void known_bytes(void **state)
{
    static const struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "\xc3\xa9.txt", .content = "x"},
        {0},
    };
    int tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive = take(ZIP, members, tar_fd), again;
    struct stat st;
    (void)state;

    assert_int_equal(fstat(tar_fd, &st), 0);
    assert_int_equal(st.st_size, archive.tar_bytes);
    assert_int_equal(archive.tar_bytes, 512 * (2 + 2 + 2 + 2));
    assert_string_equal(archive.digest,
                        "4551513be2354276174170a2189cbca74f1217346fc7f6d8066412b2dd472300");

    char hex[SHA256_HEX_SIZE];
    assert_int_equal(sha256_of_fd(tar_fd, hex), 0);
    assert_string_equal(hex, archive.digest);

    /* A canonical tar is an archive like any other and its own canonical form. */
    assert_int_equal(
        skill_archive_ingest(tar_fd, &archive_limits_default, NULL, -1, &again, NULL), 0);
    assert_string_equal(again.digest, archive.digest);
    skill_archive_finish(&again);
    skill_archive_finish(&archive);
    close(tar_fd);
}

static void known_format(void **state)
{
    /* tar(1) and libarchive must agree with our own writer about long and odd names. */
    char path[400] = "", target[300] = "";
    (void)state;

    for (unsigned i = 0; i < 12; i++)
        strcat(path, "a-long-folder-name-of-30-bytes/");
    strcat(path, "f");
    memset(target, 'x', sizeof(target) - 1);
    const struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = path, .content = "deep"},
        {.path = "l", .link = target},
        {0},
    };
    int tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive = take(TAR, members, tar_fd), again;
    const struct archive_entry_info *entry = skill_archive_find(&archive, path);

    assert_non_null(entry);
    assert_int_equal(entry->size, 4);
    assert_null(skill_archive_find(&archive, "a-long"));
    assert_int_equal(
        skill_archive_ingest(tar_fd, &archive_limits_default, NULL, -1, &again, NULL), 0);
    assert_string_equal(again.digest, archive.digest);
    assert_string_equal(skill_archive_find(&again, "l")->target, target);
    skill_archive_finish(&again);
    skill_archive_finish(&archive);
    close(tar_fd);
}

static void litter_is_dropped(void **state)
{
    static const struct member members[] = {
        {.path = "trial/SKILL.md", .content = SKILL_MD},
        {.path = "trial/.DS_Store", .content = "x"},
        {.path = "__MACOSX/trial/._SKILL.md", .content = "x"},
        {0},
    };
    struct skill_archive archive = take(ZIP, members, -1);
    (void)state;

    assert_int_equal(archive.n_entries, 1);
    skill_archive_finish(&archive);
}

static void skills_within(void **state)
{
    static const struct member members[] = {
        {.path = "trial/examples/inner/SKILL.md", .content = "inner"},
        {.path = "trial/SKILL.md", .content = SKILL_MD},
        {0},
    };
    struct skill_archive archive = take(ZIP, members, -1);
    (void)state;

    assert_string_equal(archive.skill_md, SKILL_MD);
    assert_non_null(skill_archive_find(&archive, "examples/inner/SKILL.md"));
    skill_archive_finish(&archive);
}

static void refused_names(void **state)
{
    static const struct {
        const char *path;
        const char *rule;
    } bad[] = {
        {"../x", "\"..\" in a path"}, {"a/../../x", "\"..\" in a path"},
        {"/etc/passwd", "absolute"},  {"a\\b", "backslash"},
        {"a\nb", "control"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct member members[] = {
            {.path = "SKILL.md", .content = SKILL_MD},
            {.path = bad[i].path, .content = "x"},
            {0},
        };
        refuse(TAR_GZ, members, -EINVAL, bad[i].rule);
        /* In a zip a backslash is what old packers write for a slash. */
        if (!strchr(bad[i].path, '\\'))
            refuse(ZIP, members, -EINVAL, bad[i].rule);
    }
}

static void nul_in_zip_name(void **state)
{
    static const struct member members[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "main.py+.txt", .content = "x"},
        {0},
    };
    int fd = make_archive(ZIP, members);
    struct skill_archive archive;
    struct err err = {0};
    struct stat st;
    (void)state;

    fstat(fd, &st);
    char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(bytes != MAP_FAILED);
    for (char *at = bytes; (at = memchr(at, '+', (size_t)(bytes + st.st_size - at)));)
        *at = '\0';
    munmap(bytes, (size_t)st.st_size);
    assert_int_equal(
        skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, &err), -EINVAL);
    assert_non_null(strstr(err.message, "\"main.py"));
    assert_non_null(strstr(err.message, "NUL"));
    close(fd);
}

static void refused_kinds(void **state)
{
    static const unsigned types[] = {AE_IFCHR, AE_IFBLK, AE_IFIFO};
    (void)state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const struct member members[] = {
            {.path = "SKILL.md", .content = SKILL_MD},
            {.path = "dev", .type = types[i]},
            {0},
        };
        refuse(TAR, members, -EINVAL, "\"dev\": devices");
    }
}

static void refused_pairs(void **state)
{
    static const struct member twice[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "a", .content = "1"},
        {.path = "./a", .content = "2"},
        {0},
    };
    static const struct member cases[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "lib/a", .content = "1"},
        {.path = "LIB/b", .content = "2"},
        {0},
    };
    static const struct member file_and_folder[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "a", .content = "1"},
        {.path = "a/b", .content = "2"},
        {0},
    };
    (void)state;

    refuse(ZIP, twice, -EINVAL, "\"a\" is in the archive twice");
    refuse(ZIP, cases, -EINVAL, "upper and lower case");
    refuse(ZIP, file_and_folder, -EINVAL, "not a folder");
}

static void no_skill_md(void **state)
{
    static const struct member none[] = {{.path = "main.py", .content = "x"}, {0}};
    static const struct member deep[] = {{.path = "a/b/SKILL.md", .content = SKILL_MD}, {0}};
    static const struct member beside[] = {
        {.path = "a/SKILL.md", .content = SKILL_MD},
        {.path = "b/x", .content = "x"},
        {0},
    };
    static const struct member folder[] = {{.path = "SKILL.md", .type = AE_IFDIR}, {0}};
    (void)state;

    refuse(ZIP, none, -EINVAL, "no SKILL.md");
    refuse(ZIP, deep, -EINVAL, "a/b/SKILL.md");
    refuse(TAR, beside, -EINVAL, "a/SKILL.md");
    refuse(TAR, folder, -EINVAL, "not a regular file");
}

static void no_archive(void **state)
{
    static const char *const texts[] = {"", "hello, this is no archive", "PK\3\4"};
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct skill_archive archive;
        struct err err = {0};
        int fd = memfd_create("text", MFD_CLOEXEC);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
        int result =
            skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, &err);
        assert_int_equal(result, -EINVAL);
        assert_true(err.message[0] != '\0');
        close(fd);
    }
}

/* Cut anywhere, an archive is refused or whole, and never crashes anything. */
static void cut_short(void **state)
{
    for (enum kind kind = ZIP; kind <= TAR_XZ; kind++) {
        int fd = make_archive(kind, plain);
        struct stat st;
        fstat(fd, &st);
        for (off_t size = st.st_size - 1; size >= 0; size -= kind == TAR ? 97 : 1) {
            struct skill_archive archive;
            assert_int_equal(ftruncate(fd, size), 0);
            if (skill_archive_ingest(fd, &archive_limits_default, NULL, -1, &archive, NULL) ==
                0)
                skill_archive_finish(&archive);
        }
        close(fd);
    }
    (void)state;
}

static void limits(void **state)
{
    struct member many[502] = {{.path = "SKILL.md", .content = SKILL_MD}};
    char names[501][16];
    static const struct member bomb[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "zeros", .zeros = 260u << 20},
        {0},
    };
    static const struct member small_bomb[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "zeros", .zeros = 8u << 20},
        {0},
    };
    static const struct member page[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "zeros", .zeros = 900u << 10},
        {0},
    };
    struct archive_limits tiny = archive_limits_default, few = archive_limits_default;
    (void)state;
    few.entries = 500;

    for (size_t i = 1; i < 500; i++) {
        snprintf(names[i], sizeof(names[i]), "f%zu", i);
        many[i].path = names[i];
    }
    struct skill_archive archive = take(ZIP, many, -1);
    assert_int_equal(archive.n_entries, 500);
    skill_archive_finish(&archive);
    many[500].path = "one-more";
    refuse_with(&few, ZIP, many, -EFBIG, "500 entries");
    /* Folders that are only implied count too. */
    many[500].path = NULL;
    many[499].path = "d/f";
    refuse_with(&few, TAR, many, -EFBIG, "500 entries");

    tiny.archive_bytes = 400u << 20;
    refuse_with(&tiny, TAR, bomb, -EFBIG, "expands to more than");
    refuse(TAR_XZ, bomb, -EFBIG, "expands to more than");
    refuse(ZIP, small_bomb, -EFBIG, "100 times");
    refuse(TAR_GZ, small_bomb, -EFBIG, "100 times");
    archive = take(ZIP, page, -1);
    assert_int_equal(archive.expanded_bytes, strlen(SKILL_MD) + (900u << 10));
    skill_archive_finish(&archive);

    /* A folder within the other limits comes as a plain tar. */
    assert_true(archive_limits_default.archive_bytes >
                archive_limits_default.expanded_bytes +
                    archive_limits_default.entries * (uint64_t)(512 + 512));
    tiny.archive_bytes = 100;
    refuse_with(&tiny, ZIP, plain, -EFBIG, "over 100 bytes");
    tiny = archive_limits_default;
    tiny.expanded_bytes = 10;
    refuse_with(&tiny, ZIP, plain, -EFBIG, "more than 10 bytes");
    /* Each file by itself would fit. */
    archive = take(ZIP, plain, -1);
    tiny.expanded_bytes = archive.expanded_bytes - 1;
    skill_archive_finish(&archive);
    refuse_with(&tiny, ZIP, plain, -EFBIG, "expands to more than");
}

static void load(void **state)
{
    static const struct member wrapped[] = {
        {.path = "other/SKILL.md", .content = SKILL_MD},
        {0},
    };
    static const struct member nameless[] = {
        {.path = "other/SKILL.md", .content = "---\ndescription: d\n---\n"},
        {0},
    };
    static const struct member broken[] = {
        {.path = "SKILL.md", .content = "---\nname: [\n---\n"},
        {0},
    };
    struct skill_archive archive;
    struct skill skill;
    struct err err = {0};
    int fd = make_archive(ZIP, wrapped);
    (void)state;

    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, -1, &archive, &skill, NULL), 0);
    assert_string_equal(skill.name, "trial");
    assert_string_equal(skill.instructions, "body");
    assert_int_equal(skill.warnings.len, 1);
    skill_finish(&skill);
    skill_archive_finish(&archive);
    close(fd);

    fd = make_archive(ZIP, nameless);
    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, -1, &archive, &skill, NULL), 0);
    assert_string_equal(skill.name, "other");
    skill_finish(&skill);
    skill_archive_finish(&archive);
    close(fd);

    fd = make_archive(ZIP, broken);
    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, -1, &archive, &skill, &err),
        -EINVAL);
    assert_non_null(strstr(err.message, "SKILL.md: line"));
    close(fd);
}

static void reload(void **state)
{
    struct member members[] = {
        {.path = "a/first", .zeros = 100000},
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "scripts/main.py", .content = "print(1)\n", .mode = 0755},
        {.path = "zlink", .link = "scripts/main.py"},
        {0},
    };
    int fd = make_archive(ZIP, members), tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive, again;
    struct skill skill, skill_again;
    struct stat st;
    (void)state;

    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, tar_fd, &archive, &skill, NULL),
        0);
    assert_int_equal(skill_archive_reload(tar_fd, archive.digest, &again, &skill_again, NULL),
                     0);
    assert_int_equal(again.n_entries, archive.n_entries);
    for (size_t i = 0; i < again.n_entries; i++) {
        assert_string_equal(again.entries[i].path, archive.entries[i].path);
        assert_int_equal(again.entries[i].type, archive.entries[i].type);
        assert_int_equal(again.entries[i].size, archive.entries[i].size);
        assert_int_equal(again.entries[i].executable, archive.entries[i].executable);
        assert_true(!again.entries[i].target == !archive.entries[i].target);
    }
    assert_string_equal(again.digest, archive.digest);
    assert_string_equal(again.skill_md, archive.skill_md);
    assert_string_equal(skill_again.name, skill.name);
    skill_finish(&skill_again);
    skill_archive_finish(&again);

    assert_int_equal(fstat(tar_fd, &st), 0);
    for (off_t size = st.st_size - 1024; size >= 0; size -= 4001) {
        struct err err = {0};
        assert_int_equal(ftruncate(tar_fd, size), 0);
        if (skill_archive_reload(tar_fd, archive.digest, &again, &skill_again, &err) == 0) {
            skill_finish(&skill_again);
            skill_archive_finish(&again);
        } else {
            assert_true(err.message[0] != '\0');
        }
    }
    skill_finish(&skill);
    skill_archive_finish(&archive);
    close(tar_fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_digest_from_all),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(known_format),
        cmocka_unit_test(litter_is_dropped),
        cmocka_unit_test(skills_within),
        cmocka_unit_test(refused_names),
        cmocka_unit_test(nul_in_zip_name),
        cmocka_unit_test(refused_kinds),
        cmocka_unit_test(refused_pairs),
        cmocka_unit_test(no_skill_md),
        cmocka_unit_test(no_archive),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(limits),
        cmocka_unit_test(load),
        cmocka_unit_test(reload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
