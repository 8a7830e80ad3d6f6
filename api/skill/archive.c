/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/archive.h"

#include "api/skill/frontmatter.h"
#include "api/skill/ingest.h"
#include "api/skill/names.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

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
        reallocarray(archive->entries, archive->n_entries + 1, sizeof(*entries));
    struct archive_entry_info copy = *entry;

    if (!entries)
        return -ENOMEM;
    archive->entries = entries;
    copy.path = strdup(entry->path);
    copy.target = entry->target ? strdup(entry->target) : NULL;
    entries[archive->n_entries++] = copy;
    return copy.path && (copy.target || !entry->target) ? 0 : -ENOMEM;
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

/* Takes the last component off a path; "" is left of one that is alone. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash ? slash : path) = '\0';
    return slash != NULL;
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
    for (size_t i = 0; i < archive->n_entries;) {
        struct archive_entry_info *entry = &archive->entries[i];

        if (!entry->path[n]) {
            ingest_remove(in, i);
            continue;
        }
        take_off(entry->path, archive->folder);
        if (entry->hard_link)
            take_off(entry->target, archive->folder);
        i++;
    }
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
    for (size_t i = 0; i < archive->n_entries; i++) {
        struct archive_entry_info *entry = &archive->entries[i];

        if (strcmp(entry->path, "skill.md") == 0)
            strcpy(entry->path, "SKILL.md");
        if (entry->target && strcmp(entry->target, "skill.md") == 0 &&
            (entry->hard_link || !strchr(entry->path, '/')))
            strcpy(entry->target, "SKILL.md");
    }
    return 0;
}

/* Folders that entries imply are entries too, so that the tar does not depend on the packer. */
static int add_parents(struct ingest *in, struct err *err)
{
    size_t given = in->archive.n_entries;

    for (size_t i = 0; i < given; i++) {
        char path[NAMES_PATH_MAX + 1];
        const struct archive_entry_info dir = {.type = ARCHIVE_ENTRY_DIR, .path = path};

        strcpy(path, in->archive.entries[i].path);
        while (cut_last(path)) {
            int result = has_path(&in->archive, path) ? 0 : ingest_add(in, &dir, err);

            if (result < 0)
                return result;
        }
    }
    return 0;
}

static int sort(struct ingest *in, struct err *err)
{
    (void)err;
    qsort(in->archive.entries, in->archive.n_entries, sizeof(*in->archive.entries),
          compare_paths);
    return 0;
}

/* Two folders of one name are one; anything else twice is refused. */
static int merge_duplicates(struct ingest *in, struct err *err)
{
    for (size_t i = 1; i < in->archive.n_entries;) {
        const struct archive_entry_info *entry = &in->archive.entries[i];

        if (strcmp(entry[-1].path, entry->path) != 0) {
            i++;
            continue;
        }
        if (entry[-1].type != ARCHIVE_ENTRY_DIR || entry->type != ARCHIVE_ENTRY_DIR)
            return err_set(err, EINVAL, "entry \"%s\" is in the archive twice",
                           names_shown(entry->path).text);
        ingest_remove(in, i);
    }
    return 0;
}

static int compare_folded(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return names_case_compare(*x, *y);
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
        if (names_case_compare(sorted[i - 1], sorted[i]) == 0)
            return err_set(err, EINVAL,
                           "entries \"%s\" and \"%s\" have the same name but for upper and "
                           "lower case",
                           names_shown(sorted[i - 1]).text, names_shown(sorted[i]).text);
    }
    return 0;
}

static int check_parents(struct ingest *in, struct err *err)
{
    for (size_t i = 0; i < in->archive.n_entries; i++) {
        const struct archive_entry_info *entry = &in->archive.entries[i], *parent;
        char path[NAMES_PATH_MAX + 1];

        strcpy(path, entry->path);
        if (!cut_last(path))
            continue;
        parent = skill_archive_find(&in->archive, path);
        if (!parent || parent->type != ARCHIVE_ENTRY_DIR)
            return names_refuse(err, EINVAL, entry->path,
                                "it lies below something that is not a folder");
    }
    return 0;
}

static int refuse_link(const struct archive_entry_info *link, const char *what, struct err *err)
{
    return names_refuse(err, EINVAL, link->path, "the link to \"%s\" %s",
                        names_shown(link->target).text, what);
}

#define LINK_STEPS_MAX 40u

/*
 * Follows a link as the kernel would, over the archive's own entries: a link may lead through
 * another one, so looking at the text of ".." alone would not do.
 */
static int check_link(const struct skill_archive *archive,
                      const struct archive_entry_info *link, struct err *err)
{
    char at[NAMES_PATH_MAX + 1];         /* where the walk stands, "" is the root */
    char todo[2 * (NAMES_PATH_MAX + 1)]; /* what is still to be walked */
    char next[2 * (NAMES_PATH_MAX + 1)];
    unsigned steps = 0;

    strcpy(at, link->path);
    cut_last(at);
    strcpy(todo, link->target);
    for (const char *part = todo, *rest; *part; part = rest) {
        const struct archive_entry_info *entry;
        size_t n = strcspn(part, "/"), at_len = strlen(at);

        rest = part + n + (part[n] == '/');
        if (n == 0 || (n == 1 && part[0] == '.'))
            continue;
        if (n == 2 && part[0] == '.' && part[1] == '.') {
            if (!at[0])
                return refuse_link(link, "leaves the skill", err);
            cut_last(at);
            continue;
        }
        if (at_len + n + 2 > sizeof(at))
            return refuse_link(link, "is too long", err);
        (void)snprintf(at + at_len, sizeof(at) - at_len, "%s%.*s", at_len ? "/" : "", (int)n,
                       part);
        entry = skill_archive_find(archive, at);
        if (!entry || entry->type != ARCHIVE_ENTRY_LINK)
            continue;
        if (++steps > LINK_STEPS_MAX || strlen(entry->target) + strlen(rest) + 2 > sizeof(next))
            return refuse_link(link, "leads in a circle or through too many links", err);
        strcpy(stpcpy(stpcpy(next, entry->target), "/"), rest);
        at[at_len] = '\0';
        rest = strcpy(todo, next);
    }
    return 0;
}

/* A hard link is a file with the content of another one. */
static int resolve_hard_link(struct ingest *in, struct archive_entry_info *entry,
                             struct err *err)
{
    const struct archive_entry_info *file = skill_archive_find(&in->archive, entry->target);

    if (!file || file->type != ARCHIVE_ENTRY_FILE || file->hard_link)
        return names_refuse(err, EINVAL, entry->path, "the hard link to \"%s\" has no file",
                            names_shown(entry->target).text);
    entry->size = file->size;
    entry->offset = file->offset;
    entry->executable = file->executable;
    in->archive.expanded_bytes += file->size;
    if (in->archive.expanded_bytes > in->limits->expanded_bytes)
        return err_set(err, EFBIG, "the archive expands to more than %llu bytes",
                       (unsigned long long)in->limits->expanded_bytes);
    return 0;
}

static int check_links(struct ingest *in, struct err *err)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < in->archive.n_entries; i++) {
        if (in->archive.entries[i].hard_link)
            result = resolve_hard_link(in, &in->archive.entries[i], err);
    }
    for (size_t i = 0; result == 0 && i < in->archive.n_entries; i++) {
        struct archive_entry_info *entry = &in->archive.entries[i];

        if (entry->type == ARCHIVE_ENTRY_LINK)
            result = check_link(&in->archive, entry, err);
        else
            free(steal_ptr(&entry->target));
    }
    return result;
}

struct tar_out {
    int fd; /* -1: only hashed */
    struct sha256 *sha;
    uint64_t bytes;
};

static int out_write(struct tar_out *out, const void *data, size_t len, struct err *err)
{
    sha256_update(out->sha, data, len);
    out->bytes += len;
    if (out->fd < 0 || len == 0)
        return 0;
    int result = fd_write_full(out->fd, data, len);
    if (result < 0)
        return err_set_errno(err, -result, "cannot write the skill's tar");
    return 0;
}

/* Asks before so many bytes are written. */
static int grow(const struct ingest *in, const struct tar_out *out, uint64_t bytes,
                struct err *err)
{
    return out->fd < 0 ? 0 : ingest_grow(in, bytes, err);
}

static int write_content(const struct ingest *in, const struct archive_entry_info *entry,
                         struct tar_out *out, struct err *err)
{
    static const char zero[TAR_BLOCK];
    char chunk[16384];

    for (uint64_t done = 0; done < entry->size;) {
        uint64_t left = entry->size - done;
        size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
        int result = ingest_read_content(in, entry->offset + done, chunk, n, err);

        if (result < 0)
            return result;
        result = out_write(out, chunk, n, err);
        if (result < 0)
            return result;
        done += n;
    }
    return out_write(out, zero, tar_padding(entry->size), err);
}

static int write_entry(const struct ingest *in, const struct archive_entry_info *entry,
                       struct tar_out *out, struct err *err)
{
    _cleanup_buf_ struct buf blocks = buf_init(64 * 1024);
    bool is_file = entry->type == ARCHIVE_ENTRY_FILE;
    struct tar_header header = {
        .path = entry->path,
        .target = entry->target,
        .type = (enum tar_type)entry->type,
        .mode = is_file && !entry->executable ? 0644 : 0755,
        .size = entry->size,
    };
    int result;

    if (entry->type == ARCHIVE_ENTRY_LINK)
        header.mode = 0777;
    result = tar_put_header(&blocks, &header);
    if (result < 0)
        return result;
    result = grow(in, out, blocks.len + entry->size + tar_padding(entry->size), err);
    if (result < 0)
        return result;
    result = out_write(out, blocks.data, blocks.len, err);
    return result < 0 || !is_file ? result : write_content(in, entry, out, err);
}

static int write_all(const struct ingest *in, struct tar_out *out, struct err *err)
{
    static const char trailer[TAR_TRAILER];
    int result = grow(in, out, sizeof(trailer), err);

    for (size_t i = 0; i < in->archive.n_entries && result == 0; i++)
        result = write_entry(in, &in->archive.entries[i], out, err);
    return result < 0 ? result : out_write(out, trailer, sizeof(trailer), err);
}

static int write_tar(struct ingest *in, struct err *err)
{
    struct tar_out out = {.fd = in->tar_fd, .sha = sha256_create()};
    int result = out.sha ? write_all(in, &out, err) : -ENOMEM;

    if (out.sha)
        sha256_hex(out.sha, in->archive.digest);
    in->archive.tar_bytes = out.bytes;
    sha256_destroy(out.sha);
    return result;
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

/* Judges the list as a whole, and writes it. */
static int run_steps(struct ingest *in, struct err *err)
{
    static int (*const steps[])(struct ingest * in, struct err * err) = {
        find_root,        name_skill_md, add_parents, sort,          merge_duplicates,
        check_collisions, check_parents, check_links, read_skill_md, write_tar,
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
    result = run_steps(&in, err);
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
        return skill_strings_add(&skill->warnings,
                                 "the folder is called \"%s\" but the skill \"%s\"",
                                 names_shown(folder).text, names_shown(skill->name).text);
    skill->name = strdup(folder ? folder : "unnamed-skill");
    if (!skill->name)
        return -ENOMEM;
    return skill_strings_add(&skill->warnings, "SKILL.md has no name; it is called \"%s\"",
                             names_shown(skill->name).text);
}

static int describe(const struct skill_archive *archive, struct skill *skill, struct err *err)
{
    int result = frontmatter_parse(archive->skill_md, archive->skill_md_len, skill, err);

    if (result == 0 && archive->is_lower_case)
        result = skill_strings_add(&skill->warnings,
                                   "skill.md should be called SKILL.md, as which it is taken");
    return result < 0 ? result : check_name(archive, skill);
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

void skill_archive_finish(struct skill_archive *archive)
{
    for (size_t i = 0; i < archive->n_entries; i++) {
        free(archive->entries[i].path);
        free(archive->entries[i].target);
    }
    free(archive->entries);
    free(archive->skill_md);
    free(archive->folder);
    *archive = (struct skill_archive){0};
}
