/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of needs.c share; nobody else includes it. */
#ifndef SKILLVM_API_SKILL_NEEDS_INTERNAL_H
#define SKILLVM_API_SKILL_NEEDS_INTERNAL_H

#include "api/skill/needs.h"
#include "base/buf.h"

#define NEEDS_USES_MAX 8192u /* that are looked at: each costs a search of the archive */
#define NEEDS_SEATS    4096u /* of a table that never has more than NEEDS_ITEMS_MAX in it */

struct needs_file {
    const struct archive_entry_info *entry;
    size_t at; /* in texts */
    size_t len;
};

struct needs_reader {
    const struct skill_archive *archive;
    const struct skill *skill;
    const struct image_manifest *manifest;
    struct needs needs;
    uint16_t seats[NEEDS_SEATS]; /* index in items plus one; 0: free */
    struct needs_file files[NEEDS_FILES_MAX];
    size_t n_files;
    bool *wanted;                 /* for each entry of the archive */
    struct buf texts;             /* of all files, one behind the other */
    struct skill_strings asked;   /* programs that are looked for, sorted */
    struct skill_strings defined; /* shell functions, sorted */
    struct skill_strings opaque;  /* files that read commands from outside the skill, sorted */
    unsigned uses;                /* so far */
};

/*
 * Adds a copy of *item, whose strings are borrowed, unless it is there: then it only stays
 * guarded if this one is too. 0 or -ENOMEM.
 */
int needs_add(struct needs_reader *r, const struct needs_item *item);
/* Where a program comes from. */
enum needs_from needs_program_from(const struct needs_reader *r, const char *name);

/* The lines of a requirements.txt. */
int needs_read_requirements(struct needs_reader *r, const char *file, const char *text,
                            size_t len);
/* The block of PEP 723 in a script. */
int needs_read_script_block(struct needs_reader *r, const char *file, const char *text,
                            size_t len);
/* Hosts in URLs, and what looks like a secret. */
int needs_read_text(struct needs_reader *r, const char *file, const char *text, size_t len);
/* What SKILL.md asks for in its fields. */
int needs_read_fields(struct needs_reader *r);

/* The module that a package is imported as, where that is not its own name; else NULL. */
const char *needs_module_of(const char *package);

#endif
