/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill's Python takes from outside the skill, read from its sources and never by
 * running them. The skill's own modules are followed to their files, as an interpreter would
 * find them with the script's folder (or, for a module, the skill's root) first on its path. It
 * must never decide what a skill may import: what it misses the skill imports by itself.
 *
 *   imports_read()   what an entry imports when it starts: a hint on what is worth having in
 *                    memory before it runs
 *   imports_walk()   all that its scripts name anywhere: for a person who wants to know whether
 *                    it is there
 */
#ifndef SKILLVM_API_SKILL_IMPORTS_H
#define SKILLVM_API_SKILL_IMPORTS_H

#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "api/skill/imports_scan.h"
#include "api/skill/skill.h"
#include "base/err.h"

/* What is over a limit is left out. */
#define IMPORTS_FILES_MAX      64u           /* files that are followed, the entry included */
#define IMPORTS_FILE_BYTES_MAX (256u * 1024) /* of one file */
#define IMPORTS_BYTES_MAX      (1024u * 1024)
#define IMPORTS_NAMES_MAX      512u
#define IMPORTS_LOOKED_UP_MAX  8192u /* names that are looked for in the skill's folders */
#define IMPORTS_WALK_FILES_MAX 256u  /* of imports_walk */
#define IMPORTS_FOLDERS_MAX    32u   /* that are added to the path */

/*
 * Reads the entry (of skill_entry_resolve()) and what it leads to from the canonical tar in
 * tar_fd, whose list archive is. Fills *ret with dotted names, sorted by their bytes, each
 * once: a name of the image's or of nobody's. `from a import b` gives "a" and "a.b", because
 * only running tells whether b is a module. Nothing for an entry in another language; a file
 * that is no source (see imports_scan.h), is a link, or is too large gives nothing. 0; -ENOMEM,
 * or what reading tar_fd gave. The caller finishes *ret on success.
 */
int imports_read(int tar_fd, const struct skill_archive *archive,
                 const struct skill_entry *entry, struct skill_strings *ret, struct err *err);

/* One thing that a file of the skill names; strings are borrowed for the call. */
struct imports_use {
    const char *file;
    const struct imports_found *found;
    const char *module; /* of an import: its absolute name; NULL where it has none */
    bool own;           /* of an import: a file of the skill's */
};

struct imports_walk {
    const struct skill_archive *archive;
    const char *const *scripts; /* paths of files that may be run by themselves */
    size_t n_scripts;
    /* The text of a file, borrowed until the next: NULL for what cannot be had. */
    const char *(*text)(void *user, const char *path, size_t *ret_len);
    int (*use)(void *user,
               const struct imports_use *use); /* what it returns, if negative, ends it */
    void *user;
};

/*
 * Tells each use in the scripts and in what they lead to, file by file. A script finds modules
 * in its folder, in the skill's root, and in the folders that sources add to the path. 0, or
 * what use returned; -ENOMEM.
 */
int imports_walk(const struct imports_walk *walk);

#endif
