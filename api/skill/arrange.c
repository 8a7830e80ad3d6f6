/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same for every list of entries that becomes a canonical tar. */
#include "api/skill/file_names.h"
#include "api/skill/ingest.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the last component off a path; "" is left of one that is alone. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash ? slash : path) = '\0';
    return slash != NULL;
}

static int sort(struct ingest *in, struct err *err)
{
    (void)err;
    skill_archive_sort(&in->archive);
    return 0;
}

static bool is_below(const char *path, const char *folder, size_t n)
{
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/*
 * Folders that entries imply are entries too, so that the tar does not depend on the packer. Of
 * a sorted list what lies in a folder stands together: only its first entry is looked at.
 */
static int add_parents(struct ingest *in, struct err *err)
{
    const struct skill_archive given = in->archive;

    for (size_t i = 0; i < given.n_entries; i++) {
        const char *before = i > 0 ? in->archive.entries[i - 1].path : "";
        char path[NAMES_PATH_MAX + 1];
        const struct archive_entry_info dir = {.type = ARCHIVE_ENTRY_DIR, .path = path};

        strcpy(path, in->archive.entries[i].path);
        while (cut_last(path) && !is_below(before, path, strlen(path))) {
            const struct skill_archive known = {.entries = in->archive.entries,
                                                .n_entries = given.n_entries};
            int result = skill_archive_find(&known, path) ? 0 : ingest_add(in, &dir, err);

            if (result < 0)
                return result;
        }
    }
    return sort(in, err);
}

/* Two folders of one name are one; anything else twice is refused. */
static int merge_duplicates(struct ingest *in, struct err *err)
{
    struct archive_entry_info *entries = in->archive.entries;
    size_t kept = 0;

    for (size_t i = 1; i < in->archive.n_entries; i++) {
        const struct archive_entry_info *entry = &entries[i], *before = entry - 1;

        if (strcmp(before->path, entry->path) == 0 &&
            (before->type != ARCHIVE_ENTRY_DIR || entry->type != ARCHIVE_ENTRY_DIR))
            return err_set(err, EINVAL, "entry \"%s\" is in the archive twice",
                           names_shown(entry->path).text);
    }
    for (size_t i = 1; i < in->archive.n_entries; i++) {
        if (strcmp(entries[kept].path, entries[i].path) == 0)
            skill_archive_entry_finish(&entries[i]);
        else
            entries[++kept] = entries[i];
    }
    in->archive.n_entries = in->archive.n_entries > 0 ? kept + 1 : 0;
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
#define LINK_LOOKS_MAX (1u << 20) /* of all links together */
#define LOOK_WORK      16u        /* of one, where to pass over a "." or ".." is 1 */

/*
 * Follows a link as the kernel would, over the archive's own entries: a link may lead through
 * another one, so looking at the text of ".." alone would not do. Each part of a path on the
 * way is some of the work that is left.
 */
static int check_link(const struct skill_archive *archive,
                      const struct archive_entry_info *link, uint32_t *work_left,
                      struct err *err)
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
        if (*work_left < LOOK_WORK)
            return err_set(err, EFBIG, "the links of the archive lead over more than %u names",
                           LINK_LOOKS_MAX);
        (*work_left)--;
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
        *work_left -= LOOK_WORK - 1;
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
    uint32_t work_left = LINK_LOOKS_MAX * LOOK_WORK;
    int result = 0;

    for (size_t i = 0; result == 0 && i < in->archive.n_entries; i++) {
        if (in->archive.entries[i].hard_link)
            result = resolve_hard_link(in, &in->archive.entries[i], err);
    }
    for (size_t i = 0; result == 0 && i < in->archive.n_entries; i++) {
        struct archive_entry_info *entry = &in->archive.entries[i];

        if (entry->type == ARCHIVE_ENTRY_LINK)
            result = check_link(&in->archive, entry, &work_left, err);
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

/* From here on the content is where it was written to: the spool goes. */
static int write_content(const struct ingest *in, struct archive_entry_info *entry,
                         struct tar_out *out, struct err *err)
{
    static const char zero[TAR_BLOCK];
    const uint64_t at = out->bytes;
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
    entry->offset = at;
    return out_write(out, zero, tar_padding(entry->size), err);
}

static int write_entry(const struct ingest *in, struct archive_entry_info *entry,
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

int ingest_write(struct ingest *in, struct err *err)
{
    struct tar_out out = {.fd = in->tar_fd, .sha = sha256_create()};
    int result = out.sha ? write_all(in, &out, err) : -ENOMEM;

    if (out.sha)
        sha256_hex(out.sha, in->archive.digest);
    in->archive.tar_bytes = out.bytes;
    sha256_destroy(out.sha);
    return result;
}

int ingest_arrange(struct ingest *in, struct err *err)
{
    static int (*const steps[])(struct ingest * in, struct err * err) = {
        sort, add_parents, merge_duplicates, check_parents, check_links,
    };
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        result = steps[i](in, err);
    return result;
}
