/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ingests a skill archive of a stranger's (zip, tar, tar.gz/.xz/.zst/.bz2) and writes the one
 * canonical tar that the rest of skillvm knows: ustar with pax records, sorted by name, the
 * wrapping folder removed, owner 0, time 0, modes 0644 or 0755, only folders, regular files and
 * symbolic links that stay inside. Equal content gives equal bytes and so an equal digest.
 * It writes nothing but that tar: no entry ever becomes a path on the host.
 */
#ifndef SKILLVM_API_SKILL_ARCHIVE_H
#define SKILLVM_API_SKILL_ARCHIVE_H

#include "api/skill/sha256.h"
#include "api/skill/skill.h"
#include "api/skill/tar.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEELS_FOLDER "wheels" /* of a skill */

struct archive_limits {
    uint64_t archive_bytes;  /* the archive as it was handed in */
    uint64_t expanded_bytes; /* the sum of all files' content */
    uint32_t entries;        /* files, folders and links */
    uint32_t ratio;          /* expanded : archive, from 1 MiB expanded on */
};

/* What the settings of a daemon can allow. */
#define ARCHIVE_BYTES_MOST   (512u << 20)
#define ARCHIVE_ENTRIES_MOST 50000u

/* 288 MiB, 256 MiB, 20,000 entries, 100:1. */
extern const struct archive_limits archive_limits_default;
/* 512 MiB, 512 MiB, 50,000 entries, 100:1: for who sends to a daemon, which has the say. */
extern const struct archive_limits archive_limits_most;

struct language;

enum archive_entry_type {
    ARCHIVE_ENTRY_FILE = TAR_FILE,
    ARCHIVE_ENTRY_DIR = TAR_DIR,
    ARCHIVE_ENTRY_LINK = TAR_LINK,
};

struct archive_entry_info {
    char *path; /* owned, relative, no trailing slash, UTF-8 */
    enum archive_entry_type type;
    bool executable; /* files only */
    bool hard_link;  /* files only: it came as another name of one */
    uint64_t size;   /* files only */
    uint64_t offset; /* files only: in the canonical tar; in the spool until that is written */
    char *target;    /* owned, links only, as it stands in the archive; else NULL */
    /* Files only: by their first line, in the root and scripts/, and elsewhere without a dot in
       the name; else NULL. Static. */
    const struct language *begins;
};

/* What an ingested archive holds. */
struct skill_archive {
    struct archive_entry_info
        *entries; /* sorted by path (bytes), folders that were implied too */
    size_t n_entries;
    char digest[SHA256_HEX_SIZE]; /* of the canonical tar */
    uint64_t tar_bytes;           /* length of the canonical tar */
    uint64_t expanded_bytes;
    char *skill_md; /* owned, NUL-terminated content of SKILL.md */
    size_t skill_md_len;
    char *folder;       /* owned name of the wrapping folder, or NULL */
    bool is_lower_case; /* SKILL.md came as skill.md */
};

/*
 * Where the content of an archive waits while it is judged, and who is asked before it takes
 * more room, and before the canonical tar does.
 */
struct archive_spool {
    int fd; /* a new empty file, read and write; borrowed */
    /* Whether so many bytes more may be written: 0, or the error that ends it. */
    int (*grow)(void *ctx, uint64_t bytes, struct err *err);
    void *ctx;
};

/*
 * Reads the archive in in_fd (a regular file or memfd, from offset 0; its offset is moved)
 * and writes the canonical tar to tar_fd at its current offset; tar_fd -1 only checks. tar_fd
 * must be a seekable file the caller throws away on failure. Without a spool the content waits
 * in memory that the caller has to spare. The caller finishes *ret.
 *
 * Errors: -EFBIG (a limit), -EINVAL (not an archive we read, a rule of docs/skill-contract.md
 * broken, damaged, or no SKILL.md); the message names the entry and the
 * rule. Other values: the spool may not grow, reading or writing failed.
 */
int skill_archive_ingest(int in_fd, const struct archive_limits *limits,
                         const struct archive_spool *spool, int tar_fd,
                         struct skill_archive *ret, struct err *err);

/*
 * Ingest and front matter in one step, with the warnings that need both (a folder whose name is
 * not the skill's; a missing name is taken from the folder, if there is one). Both outputs are
 * the caller's to finish on success.
 */
int skill_archive_load(int in_fd, const struct archive_limits *limits,
                       const struct archive_spool *spool, int tar_fd,
                       struct skill_archive *ret_archive, struct skill *ret_skill,
                       struct err *err);

#define ARCHIVE_BEGIN_MAX 128u
/* How much of a file it takes to know what it begins as; 0: nobody asks. */
size_t skill_archive_begin_bytes(const struct archive_entry_info *entry);

/*
 * What skill_archive_load() gave for a canonical tar of its own making, which the caller has
 * kept under its digest and trusts: reads headers, SKILL.md and first lines and nothing else,
 * hashes nothing. tar_bytes, expanded_bytes and folder stay empty. -EINVAL for what is no such
 * tar; -errno.
 */
int skill_archive_reload(int tar_fd, const char *digest, struct skill_archive *ret_archive,
                         struct skill *ret_skill, struct err *err);

/* Adds a copy of *entry to the end of the list. 0 or -ENOMEM. */
int skill_archive_add(struct skill_archive *archive, const struct archive_entry_info *entry);
/* Frees what an entry owns, for who takes it out of the list. */
void skill_archive_entry_finish(struct archive_entry_info *entry);
/* Whether it is a Python package that the skill brings: a file "NAME.whl" in WHEELS_FOLDER. */
bool skill_archive_is_wheel(const struct archive_entry_info *entry);
/* By their paths, as skill_archive_find() needs them. */
void skill_archive_sort(struct skill_archive *archive);
/* The entry with this path, borrowed, or NULL. */
const struct archive_entry_info *skill_archive_find(const struct skill_archive *archive,
                                                    const char *path);

/* Frees everything and zeroes it; safe on a zeroed or finished one. */
void skill_archive_finish(struct skill_archive *archive);
#define _cleanup_skill_archive_ __attribute__((cleanup(skill_archive_finish)))

#endif
