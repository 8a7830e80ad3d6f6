/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill's Python entry imports from outside the skill when it starts, read from its
 * sources and never by running them: a hint on what is worth having in memory before it runs.
 * The skill's own modules are followed to their files, as an interpreter would find them with
 * the entry's folder (or, for a module, the skill's root) first on its path. It must never
 * decide what a skill may import: what it misses the skill imports by itself.
 */
#ifndef SKILLVM_API_SKILL_IMPORTS_H
#define SKILLVM_API_SKILL_IMPORTS_H

#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "api/skill/skill.h"
#include "base/err.h"

/* What is over a limit is left out. */
#define IMPORTS_FILES_MAX      64u           /* files that are followed, the entry included */
#define IMPORTS_FILE_BYTES_MAX (256u * 1024) /* of one file */
#define IMPORTS_BYTES_MAX      (1024u * 1024)
#define IMPORTS_NAMES_MAX      512u

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

#endif
