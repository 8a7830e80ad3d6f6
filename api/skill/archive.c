/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/archive.h"

#include "api/skill/frontmatter.h"
#include "api/skill/ingest.h"
#include "api/skill/names.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_paths(const void *a, const void *b)
{
    const struct ingest_entry *x = a, *y = b;

    return strcmp(x->path, y->path);
}

static const struct ingest_entry *find(const struct ingest *in, const char *path)
{
    struct ingest_entry key = {.path = (char *)(uintptr_t)path};

    return bsearch(&key, in->entries, in->n, sizeof(*in->entries), compare_paths);
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        depth++;
    return depth;
}

/* The length of the first path component when there is a slash after it, else 0. */
static size_t first_component(const char *path)
{
    size_t n = strcspn(path, "/");

    return path[n] == '/' ? n : 0;
}

/*
 * Finds the skill's root: SKILL.md at the top, or in the one folder that holds everything,
 * which is then taken off every name.
 */
static int find_root(struct ingest *in, char **ret_folder, struct err *err)
{
    const struct ingest_entry *nested = NULL;
    size_t depth = SIZE_MAX, n;

    for (size_t i = 0; i < in->n; i++) {
        const char *path = in->entries[i].path;
        if (strcmp(path, "SKILL.md") == 0)
            return 0;
        const char *slash = strrchr(path, '/');
        /* The one nearest to the root: a skill may hold examples that are skills. */
        if (slash && strcmp(slash, "/SKILL.md") == 0 && depth_of(path) < depth) {
            nested = &in->entries[i];
            depth = depth_of(path);
        }
    }
    if (!nested)
        return err_set(err, EINVAL, "there is no SKILL.md in the archive");

    n = first_component(nested->path);
    for (size_t i = 0; i < in->n && n; i++) {
        const struct ingest_entry *entry = &in->entries[i];
        bool is_folder = entry->type == ARCHIVE_ENTRY_DIR && strlen(entry->path) == n;
        if (strncmp(entry->path, nested->path, n) != 0 || !(entry->path[n] == '/' || is_folder))
            n = 0;
    }
    if (n == 0 || strcmp(nested->path + n + 1, "SKILL.md") != 0) {
        char shown[NAMES_SHOWN_MAX];
        return err_set(err, EINVAL,
                       "SKILL.md must be in the archive's root or in the one folder that "
                       "holds everything; it is at \"%s\"",
                       names_show(nested->path, shown));
    }

    char *folder = strndup(nested->path, n);
    if (!folder)
        return -ENOMEM;
    for (size_t i = 0; i < in->n;) {
        struct ingest_entry *entry = &in->entries[i];
        if (!entry->path[n]) {
            ingest_remove(in, i);
            continue;
        }
        memmove(entry->path, entry->path + n + 1, strlen(entry->path + n + 1) + 1);
        if (entry->hard_link && strncmp(entry->target, folder, n) == 0 &&
            entry->target[n] == '/')
            memmove(entry->target, entry->target + n + 1, strlen(entry->target + n + 1) + 1);
        i++;
    }
    *ret_folder = folder;
    return 0;
}

/* Folders that entries imply are entries too, so that the tar does not depend on the packer. */
static int add_parents(struct ingest *in, struct err *err)
{
    size_t given = in->n;

    for (size_t i = 0; i < given; i++) {
        char path[NAMES_PATH_MAX + 1];
        strcpy(path, in->entries[i].path);
        for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
            *slash = '\0';
            bool there = false;
            for (size_t j = 0; j < in->n && !there; j++)
                there = strcmp(in->entries[j].path, path) == 0;
            if (there)
                continue;
            struct ingest_entry dir = {.type = ARCHIVE_ENTRY_DIR, .path = path};
            int result = ingest_add(in, &dir, err);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

static int compare_folded(const void *a, const void *b)
{
    const struct ingest_entry *x = *(const struct ingest_entry *const *)a;
    const struct ingest_entry *y = *(const struct ingest_entry *const *)b;

    return names_case_compare(x->path, y->path);
}

static int check_collisions(const struct ingest *in, struct err *err)
{
    char shown[NAMES_SHOWN_MAX], other[NAMES_SHOWN_MAX];
    const struct ingest_entry **sorted = calloc(in->n, sizeof(struct ingest_entry *));
    int result = 0;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < in->n; i++)
        sorted[i] = &in->entries[i];
    qsort(sorted, in->n, sizeof(struct ingest_entry *), compare_folded);
    for (size_t i = 1; i < in->n && !result; i++) {
        if (names_case_compare(sorted[i - 1]->path, sorted[i]->path) == 0)
            result = err_set(err, EINVAL,
                             "entries \"%s\" and \"%s\" have the same name but for upper and "
                             "lower case",
                             names_show(sorted[i - 1]->path, shown),
                             names_show(sorted[i]->path, other));
    }
    free(sorted);
    return result;
}

/* Sorted input. Two folders of one name are one; anything else twice is refused. */
static int merge_duplicates(struct ingest *in, struct err *err)
{
    char shown[NAMES_SHOWN_MAX];

    for (size_t i = 1; i < in->n;) {
        if (strcmp(in->entries[i - 1].path, in->entries[i].path) != 0) {
            i++;
            continue;
        }
        if (in->entries[i - 1].type != ARCHIVE_ENTRY_DIR ||
            in->entries[i].type != ARCHIVE_ENTRY_DIR)
            return err_set(err, EINVAL, "entry \"%s\" is in the archive twice",
                           names_show(in->entries[i].path, shown));
        ingest_remove(in, i);
    }
    return 0;
}

static int check_parents(const struct ingest *in, struct err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        char path[NAMES_PATH_MAX + 1];
        strcpy(path, in->entries[i].path);
        char *slash = strrchr(path, '/');
        if (!slash)
            continue;
        *slash = '\0';
        const struct ingest_entry *parent = find(in, path);
        if (!parent || parent->type != ARCHIVE_ENTRY_DIR) {
            char shown[NAMES_SHOWN_MAX];
            return err_set(err, EINVAL,
                           "entry \"%s\": it lies below something that is not a "
                           "folder",
                           names_show(in->entries[i].path, shown));
        }
    }
    return 0;
}

#define LINK_STEPS_MAX 40u

/*
 * Follows a link as the kernel would, over the archive's own entries: a link may lead through
 * another one, so looking at the text of ".." alone would not do.
 */
static int check_link(const struct ingest *in, const struct ingest_entry *link, struct err *err)
{
    char shown[NAMES_SHOWN_MAX], target[NAMES_SHOWN_MAX];
    char at[NAMES_PATH_MAX + 1];         /* where the walk stands, "" is the root */
    char todo[2 * (NAMES_PATH_MAX + 1)]; /* what is still to be walked */
    char next[2 * (NAMES_PATH_MAX + 1)];
    unsigned steps = 0;

    names_show(link->path, shown);
    names_show(link->target, target);
    strcpy(at, link->path);
    char *slash = strrchr(at, '/');
    *(slash ? slash : at) = '\0';
    strcpy(todo, link->target);

    for (char *part = todo; *part;) {
        size_t n = strcspn(part, "/");
        char *rest = part + n + (part[n] == '/');

        if (n == 0 || (n == 1 && part[0] == '.')) {
            part = rest;
            continue;
        }
        if (n == 2 && part[0] == '.' && part[1] == '.') {
            if (!at[0])
                return err_set(err, EINVAL, "entry \"%s\": the link to \"%s\" leaves the skill",
                               shown, target);
            slash = strrchr(at, '/');
            *(slash ? slash : at) = '\0';
            part = rest;
            continue;
        }

        size_t at_len = strlen(at);
        if (at_len + n + 2 > sizeof(at))
            return err_set(err, EINVAL, "entry \"%s\": the link to \"%s\" is too long", shown,
                           target);
        size_t old_len = at_len;
        if (at_len)
            at[at_len++] = '/';
        memcpy(at + at_len, part, n);
        at[at_len + n] = '\0';
        const struct ingest_entry *entry = find(in, at);
        if (entry && entry->type == ARCHIVE_ENTRY_LINK) {
            size_t target_len = strlen(entry->target), rest_len = strlen(rest);
            if (++steps > LINK_STEPS_MAX || target_len + rest_len + 2 > sizeof(next))
                return err_set(err, EINVAL,
                               "entry \"%s\": the link to \"%s\" leads in a circle or through "
                               "too many links",
                               shown, target);
            memcpy(next, entry->target, target_len);
            next[target_len] = '/';
            memcpy(next + target_len + 1, rest, rest_len + 1);
            at[old_len] = '\0';
            strcpy(todo, next);
            part = todo;
            continue;
        }
        part = rest;
    }
    return 0;
}

static int check_links(struct ingest *in, struct err *err)
{
    char shown[NAMES_SHOWN_MAX], target[NAMES_SHOWN_MAX];

    for (size_t i = 0; i < in->n; i++) {
        struct ingest_entry *entry = &in->entries[i];
        if (entry->hard_link) {
            const struct ingest_entry *file = find(in, entry->target);
            if (!file || file->type != ARCHIVE_ENTRY_FILE || file->hard_link)
                return err_set(err, EINVAL, "entry \"%s\": the hard link to \"%s\" has no file",
                               names_show(entry->path, shown),
                               names_show(entry->target, target));
            entry->size = file->size;
            entry->offset = file->offset;
            entry->executable = file->executable;
            in->expanded += file->size;
            if (in->expanded > in->limits->expanded_bytes)
                return err_set(err, EFBIG, "the archive expands to more than %llu bytes",
                               (unsigned long long)in->limits->expanded_bytes);
        }
    }
    for (size_t i = 0; i < in->n; i++) {
        if (in->entries[i].type != ARCHIVE_ENTRY_LINK)
            continue;
        int result = check_link(in, &in->entries[i], err);
        if (result < 0)
            return result;
    }
    return 0;
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

static int write_content(const struct ingest *in, const struct ingest_entry *entry,
                         struct tar_out *out, struct err *err)
{
    static const char zero[TAR_BLOCK];
    char chunk[16384];

    for (uint64_t done = 0; done < entry->size;) {
        uint64_t left = entry->size - done;
        size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
        ssize_t got = fd_pread_full(in->spool_fd, chunk, n, entry->offset + done);
        if (got != (ssize_t)n)
            return err_set_errno(err, got < 0 ? (int)-got : EIO, "cannot read spooled content");
        int result = out_write(out, chunk, n, err);
        if (result < 0)
            return result;
        done += n;
    }
    return out_write(out, zero, tar_padding(entry->size), err);
}

static int write_tar(const struct ingest *in, struct tar_out *out, struct err *err)
{
    static const char trailer[TAR_TRAILER];
    _cleanup_buf_ struct buf header = buf_init(64 * 1024);
    int result = 0;

    for (size_t i = 0; i < in->n && !result; i++) {
        const struct ingest_entry *entry = &in->entries[i];
        bool is_file = entry->type == ARCHIVE_ENTRY_FILE;
        bool is_link = entry->type == ARCHIVE_ENTRY_LINK;
        struct tar_header h = {
            .path = entry->path,
            .target = is_link ? entry->target : NULL,
            .type = is_file   ? TAR_FILE
                    : is_link ? TAR_LINK
                              : TAR_DIR,
            .mode = is_link                         ? 0777
                    : is_file && !entry->executable ? 0644
                                                    : 0755,
            .size = is_file ? entry->size : 0,
        };
        buf_clear(&header);
        result = tar_put_header(&header, &h);
        if (result < 0)
            return result;
        result = out_write(out, header.data, header.len, err);
        if (result < 0)
            return result;
        if (is_file)
            result = write_content(in, entry, out, err);
    }
    return result < 0 ? result : out_write(out, trailer, sizeof(trailer), err);
}

static int read_skill_md(const struct ingest *in, struct skill_archive *archive,
                         struct err *err)
{
    const struct ingest_entry *entry = find(in, "SKILL.md");

    if (!entry || entry->type != ARCHIVE_ENTRY_FILE)
        return err_set(err, EINVAL, "SKILL.md is not a regular file");
    if (entry->size > FRONTMATTER_FILE_MAX)
        return err_set(err, EFBIG, "SKILL.md is over %u bytes", FRONTMATTER_FILE_MAX);
    archive->skill_md = malloc((size_t)entry->size + 1);
    if (!archive->skill_md)
        return -ENOMEM;
    ssize_t n =
        fd_pread_full(in->spool_fd, archive->skill_md, (size_t)entry->size, entry->offset);
    if (n != (ssize_t)entry->size)
        return err_set_errno(err, n < 0 ? (int)-n : EIO, "cannot read spooled content");
    archive->skill_md[n] = '\0';
    archive->skill_md_len = (size_t)n;
    return 0;
}

/* Moves the names over; the ingest keeps none of them. */
static int take_entries(struct ingest *in, struct skill_archive *archive)
{
    archive->entries = calloc(in->n, sizeof(*archive->entries));
    if (!archive->entries)
        return -ENOMEM;
    archive->n_entries = in->n;
    for (size_t i = 0; i < in->n; i++) {
        struct ingest_entry *from = &in->entries[i];
        struct archive_entry_info *to = &archive->entries[i];
        to->path = from->path;
        to->type = from->type;
        to->executable = from->executable;
        to->size = from->size;
        if (from->type == ARCHIVE_ENTRY_LINK) {
            to->target = from->target;
            from->target = NULL;
        }
        from->path = NULL;
    }
    return 0;
}

static void sort(struct ingest *in)
{
    qsort(in->entries, in->n, sizeof(*in->entries), compare_paths);
}

int skill_archive_ingest(int in_fd, const struct archive_limits *limits, int tar_fd,
                         struct skill_archive *ret, struct err *err)
{
    struct ingest in;
    struct skill_archive archive = {0};
    struct tar_out out = {.fd = tar_fd};
    int result = ingest_read(in_fd, limits, &in, err);

    if (result < 0)
        return result;
    result = find_root(&in, &archive.folder, err);
    if (result < 0)
        goto out;
    result = add_parents(&in, err);
    if (result < 0)
        goto out;
    sort(&in);
    result = merge_duplicates(&in, err);
    if (result < 0)
        goto out;
    result = check_collisions(&in, err);
    if (result < 0)
        goto out;
    result = check_parents(&in, err);
    if (result < 0)
        goto out;
    result = check_links(&in, err);
    if (result < 0)
        goto out;
    result = read_skill_md(&in, &archive, err);
    if (result < 0)
        goto out;

    out.sha = sha256_create();
    if (!out.sha) {
        result = -ENOMEM;
        goto out;
    }
    result = write_tar(&in, &out, err);
    if (result < 0)
        goto out;
    sha256_hex(out.sha, archive.digest);
    archive.tar_bytes = out.bytes;
    archive.expanded_bytes = in.expanded;
    result = take_entries(&in, &archive);
out:
    if (result < 0)
        skill_archive_finish(&archive);
    else
        *ret = archive;
    sha256_destroy(out.sha);
    ingest_finish(&in);
    return result == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : result;
}

int skill_archive_load(int in_fd, const struct archive_limits *limits, int tar_fd,
                       struct skill_archive *ret_archive, struct skill *ret_skill,
                       struct err *err)
{
    struct skill_archive archive;
    struct skill skill = {0};
    int result = skill_archive_ingest(in_fd, limits, tar_fd, &archive, err);

    if (result < 0)
        return result;
    result = frontmatter_parse(archive.skill_md, archive.skill_md_len, &skill, err);
    if (result < 0)
        goto fail;
    if (!skill.name) {
        const char *name = archive.folder ? archive.folder : "unnamed-skill";
        char shown[NAMES_SHOWN_MAX];
        skill.name = strdup(name);
        result = -ENOMEM;
        if (!skill.name ||
            skill_strings_add(&skill.warnings, "SKILL.md has no name; it is called \"%s\"",
                              names_show(name, shown)))
            goto fail;
    } else if (archive.folder && strcmp(archive.folder, skill.name) != 0) {
        char shown[NAMES_SHOWN_MAX], other[NAMES_SHOWN_MAX];
        result = skill_strings_add(
            &skill.warnings, "the folder is called \"%s\" but the skill \"%s\"",
            names_show(archive.folder, shown), names_show(skill.name, other));
        if (result < 0)
            goto fail;
    }
    *ret_archive = archive;
    *ret_skill = skill;
    return 0;
fail:
    skill_finish(&skill);
    skill_archive_finish(&archive);
    return result == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : result;
}

const struct archive_entry_info *skill_archive_find(const struct skill_archive *archive,
                                                    const char *path)
{
    size_t low = 0, high = archive->n_entries;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, archive->entries[middle].path);
        if (order == 0)
            return &archive->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
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
