/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/archive.h"

#include "api/skill/entry.h"
#include "api/skill/file_names.h"
#include "api/skill/frontmatter.h"
#include "api/skill/ingest.h"
#include "api/skill/language.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_paths(const void *a, const void *b)
{
    const struct archive_entry_info *x = a, *y = b;

    return strcmp(x->path, y->path);
}

int skill_archive_add(struct skill_archive *archive, const struct archive_entry_info *entry)
{
    struct archive_entry_info *entries =
        array_room(archive->entries, archive->n_entries, sizeof(*entries));
    struct archive_entry_info copy = *entry;

    if (!entries)
        return -ENOMEM;
    archive->entries = entries;
    copy.path = strdup(entry->path);
    copy.target = entry->target ? strdup(entry->target) : NULL;
    entries[archive->n_entries++] = copy;
    return copy.path && (copy.target || !entry->target) ? 0 : -ENOMEM;
}

bool skill_archive_is_wheel(const struct archive_entry_info *entry)
{
    const size_t folder = sizeof(WHEELS_FOLDER);

    return entry->type == ARCHIVE_ENTRY_FILE && strlen(entry->path) > folder + 4 &&
           strncmp(entry->path, WHEELS_FOLDER "/", folder) == 0 &&
           !strchr(entry->path + folder, '/') && text_ends_with(entry->path, ".whl");
}

void skill_archive_sort(struct skill_archive *archive)
{
    qsort(archive->entries, archive->n_entries, sizeof(*archive->entries), compare_paths);
}

const struct archive_entry_info *skill_archive_find(const struct skill_archive *archive,
                                                    const char *path)
{
    const struct archive_entry_info key = {.path = (char *)(uintptr_t)path};

    if (archive->n_entries == 0)
        return NULL;
    return bsearch(&key, archive->entries, archive->n_entries, sizeof(key), compare_paths);
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        depth++;
    return depth;
}

/* Its name, also in lower case. */
static bool is_skill_md(const char *name)
{
    return strcmp(name, "SKILL.md") == 0 || strcmp(name, "skill.md") == 0;
}

/* The SKILL.md in a folder that is nearest to the root: a skill may hold examples of skills. */
static const char *find_nested(const struct skill_archive *archive)
{
    const char *nested = NULL;

    for (size_t i = 0; i < archive->n_entries; i++) {
        const char *path = archive->entries[i].path, *slash = strrchr(path, '/');

        if (slash && is_skill_md(slash + 1) && (!nested || depth_of(path) < depth_of(nested)))
            nested = path;
    }
    return nested;
}

/* True when every entry is the folder of this name, of n bytes, or in it. */
static bool is_around_all(const struct skill_archive *archive, const char *folder, size_t n)
{
    for (size_t i = 0; i < archive->n_entries; i++) {
        const struct archive_entry_info *entry = &archive->entries[i];
        bool is_folder = entry->type == ARCHIVE_ENTRY_DIR && strlen(entry->path) == n;

        if (strncmp(entry->path, folder, n) != 0 || !(entry->path[n] == '/' || is_folder))
            return false;
    }
    return true;
}

static void take_off(char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (strncmp(path, folder, n) == 0 && path[n] == '/')
        memmove(path, path + n + 1, strlen(path + n + 1) + 1);
}

/* The folder that is around all, of n bytes, is no entry any more. */
static void take_off_all(struct skill_archive *archive, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < archive->n_entries; i++) {
        struct archive_entry_info *entry = &archive->entries[i];

        if (!entry->path[n]) {
            skill_archive_entry_finish(entry);
            continue;
        }
        take_off(entry->path, archive->folder);
        if (entry->hard_link)
            take_off(entry->target, archive->folder);
        archive->entries[kept++] = *entry;
    }
    archive->n_entries = kept;
}

static bool has_path(const struct skill_archive *archive, const char *path)
{
    for (size_t i = 0; i < archive->n_entries; i++) {
        if (strcmp(archive->entries[i].path, path) == 0)
            return true;
    }
    return false;
}

/*
 * Finds the skill's root: SKILL.md at the top, or in the one folder that holds everything,
 * which is then taken off every name.
 */
static int find_root(struct ingest *in, struct err *err)
{
    struct skill_archive *archive = &in->archive;
    const char *nested = find_nested(archive);
    size_t n;

    if (has_path(archive, "SKILL.md") || has_path(archive, "skill.md"))
        return 0;
    if (!nested)
        return err_set(err, EINVAL, "there is no SKILL.md in the archive");
    n = strcspn(nested, "/");
    if (!is_skill_md(nested + n + 1) || !is_around_all(archive, nested, n))
        return err_set(err, EINVAL,
                       "SKILL.md must be in the archive's root or in the one folder that "
                       "holds everything; it is at \"%s\"",
                       names_shown(nested).text);
    archive->folder = strndup(nested, n);
    if (!archive->folder)
        return -ENOMEM;
    take_off_all(archive, n);
    return 0;
}

/* What is called skill.md is SKILL.md in the tar, where everybody looks for it. */
static int name_skill_md(struct ingest *in, struct err *err)
{
    struct skill_archive *archive = &in->archive;

    (void)err;
    if (has_path(archive, "SKILL.md"))
        return 0;
    archive->is_lower_case = true;
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): moved up, entries are not those before. */
    for (size_t i = 0; i < archive->n_entries; i++) {
        struct archive_entry_info *entry = &archive->entries[i];

        if (strcmp(entry->path, "skill.md") == 0)
            strcpy(entry->path, "SKILL.md");
        if (entry->target && strcmp(entry->target, "skill.md") == 0 &&
            (entry->hard_link || !strchr(entry->path, '/')))
            strcpy(entry->target, "SKILL.md");
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    return 0;
}

/*
 * By their folders, then by their names but for capitals: of two paths that are the same but
 * for those, there are folders on the way that differ in a name, or the two are in one folder.
 */
static int compare_folded(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const size_t x_len = (size_t)(basename(x) - x), y_len = (size_t)(basename(y) - y);
    int r = memcmp(x, y, x_len < y_len ? x_len : y_len);

    if (r == 0 && x_len == y_len)
        return names_case_compare(x + x_len, y + y_len);
    return r ? r : x_len < y_len ? -1 : 1;
}

static int check_collisions(struct ingest *in, struct err *err)
{
    size_t n = in->archive.n_entries;
    _cleanup_free_ const char **sorted = calloc(n, sizeof(*sorted));

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = in->archive.entries[i].path;
    qsort(sorted, n, sizeof(*sorted), compare_folded);
    for (size_t i = 1; i < n; i++) {
        if (compare_folded(&sorted[i - 1], &sorted[i]) == 0)
            return err_set(err, EINVAL,
                           "entries \"%s\" and \"%s\" have the same name but for upper and "
                           "lower case",
                           names_shown(sorted[i - 1]).text, names_shown(sorted[i]).text);
    }
    return 0;
}

static int read_skill_md(struct ingest *in, struct err *err)
{
    const struct archive_entry_info *entry = skill_archive_find(&in->archive, "SKILL.md");
    size_t len;

    if (!entry || entry->type != ARCHIVE_ENTRY_FILE)
        return err_set(err, EINVAL, "SKILL.md is not a regular file");
    if (entry->size > FRONTMATTER_FILE_MAX)
        return err_set(err, EFBIG, "SKILL.md is over %u bytes", FRONTMATTER_FILE_MAX);
    len = (size_t)entry->size;
    in->archive.skill_md = calloc(1, len + 1);
    in->archive.skill_md_len = len;
    if (!in->archive.skill_md)
        return -ENOMEM;
    return ingest_read_content(in, entry->offset, in->archive.skill_md, len, err);
}

size_t skill_archive_begin_bytes(const struct archive_entry_info *entry)
{
    const size_t scripts = strlen("scripts/");
    const char *name = basename(entry->path);
    const size_t folder = (size_t)(name - entry->path);

    /* Of the many that a skill may bring in folders nobody runs one by its name alone. */
    if (entry->type != ARCHIVE_ENTRY_FILE ||
        (strchr(name, '.') && folder > 0 &&
         (folder != scripts || memcmp(entry->path, "scripts/", scripts) != 0)))
        return 0;
    return entry->size < ARCHIVE_BEGIN_MAX ? (size_t)entry->size : ARCHIVE_BEGIN_MAX;
}

static int read_begins(struct ingest *in, struct err *err)
{
    for (size_t i = 0; i < in->archive.n_entries; i++) {
        struct archive_entry_info *entry = &in->archive.entries[i];
        const size_t n = skill_archive_begin_bytes(entry);
        char text[ARCHIVE_BEGIN_MAX];
        int r = n > 0 ? ingest_read_content(in, entry->offset, text, n, err) : 0;

        if (r < 0)
            return r;
        entry->begins = language_of_text(text, n);
    }
    return 0;
}

/* Judges the list as a whole, and writes it. */
static int write_skill(struct ingest *in, struct err *err)
{
    static int (*const steps[])(struct ingest * in, struct err * err) = {
        find_root,     name_skill_md, ingest_arrange, check_collisions,
        read_skill_md, read_begins,   ingest_write,
    };
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        result = steps[i](in, err);
    return result;
}

int skill_archive_ingest(int in_fd, const struct archive_limits *limits,
                         const struct archive_spool *spool, int tar_fd,
                         struct skill_archive *ret, struct err *err)
{
    struct ingest in;
    int result = ingest_read(in_fd, limits, spool, &in, err);

    if (result < 0)
        return result;
    in.tar_fd = tar_fd;
    result = write_skill(&in, err);
    if (result < 0)
        skill_archive_finish(&in.archive);
    else
        *ret = in.archive;
    ingest_close_spool(&in);
    return result == -ENOMEM ? err_no_memory(err) : result;
}

static int check_name(const struct skill_archive *archive, struct skill *skill)
{
    const char *folder = archive->folder;

    if (skill->name && (!folder || strcmp(folder, skill->name) == 0))
        return 0;
    if (skill->name)
        return skill_warn(&skill->warnings, "the folder is called \"%s\" but the skill \"%s\"",
                          names_shown(folder).text, names_shown(skill->name).text);
    skill->name = strdup(folder ? folder : "unnamed-skill");
    if (!skill->name)
        return -ENOMEM;
    return skill_warn(&skill->warnings, "SKILL.md has no name; it is called \"%s\"",
                      names_shown(skill->name).text);
}

static int describe(const struct skill_archive *archive, struct skill *skill, struct err *err)
{
    int result = frontmatter_parse(archive->skill_md, archive->skill_md_len, skill, err);

    if (result == 0 && archive->is_lower_case)
        result = skill_warn(&skill->warnings,
                            "skill.md should be called SKILL.md, as which it is taken");
    if (result < 0)
        return result;
    result = check_name(archive, skill);
    return result < 0 ? result : skill_entry_check_language(skill, archive);
}

int skill_archive_load(int in_fd, const struct archive_limits *limits,
                       const struct archive_spool *spool, int tar_fd,
                       struct skill_archive *ret_archive, struct skill *ret_skill,
                       struct err *err)
{
    struct skill_archive archive;
    struct skill skill = {0};
    int result = skill_archive_ingest(in_fd, limits, spool, tar_fd, &archive, err);

    if (result < 0)
        return result;
    result = describe(&archive, &skill, err);
    if (result < 0) {
        skill_finish(&skill);
        skill_archive_finish(&archive);
        return result == -ENOMEM ? err_no_memory(err) : result;
    }
    *ret_archive = archive;
    *ret_skill = skill;
    return 0;
}

void skill_archive_entry_finish(struct archive_entry_info *entry)
{
    free(entry->path);
    free(entry->target);
}

void skill_archive_finish(struct skill_archive *archive)
{
    for (size_t i = 0; i < archive->n_entries; i++)
        skill_archive_entry_finish(&archive->entries[i]);
    free(archive->entries);
    free(archive->skill_md);
    free(archive->folder);
    *archive = (struct skill_archive){0};
}
