/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of needs.c share; nobody else includes it. */
#ifndef SKILLVM_API_SKILL_NEEDS_INTERNAL_H
#define SKILLVM_API_SKILL_NEEDS_INTERNAL_H

#include "api/skill/imports.h"
#include "api/skill/needs.h"
#include "base/buf.h"
#include "base/text.h"

#define NEEDS_USES_MAX 8192u /* that are looked at */
#define NEEDS_SEATS    4096u /* of a table that never has more than NEEDS_ITEMS_MAX in it */
/* Seats that one goes past to find its own: only names made for it sit so close together. */
#define NEEDS_PASSED_MAX 64u

struct needs_file {
    const struct archive_entry_info *entry;
    size_t at; /* in texts */
    size_t len;
};

/* The last name of an entry's path. */
struct needs_name {
    const char *text;
    bool is_dir;
};

/* A file in some folder that is a module, were the folder on the path. */
struct needs_module {
    const char *name; /* "NAME.py" or "NAME/__init__.py": the end of path */
    const char *path;
};

struct needs_reader {
    const struct skill_archive *archive;
    const struct skill *skill;
    struct needs needs;
    struct needs_name *names;     /* of the archive's entries, sorted */
    struct needs_module *modules; /* of all folders, sorted; NULL: nobody asked yet */
    size_t n_modules;
    uint16_t seats[NEEDS_SEATS]; /* index in items plus one; 0: free */
    struct needs_file files[NEEDS_FILES_MAX];
    size_t n_files;
    bool *wanted;                  /* for each entry of the archive */
    struct buf texts;              /* of all files, one behind the other */
    struct skill_strings asked;    /* programs that are looked for, sorted */
    struct skill_strings defined;  /* shell functions, sorted */
    struct skill_strings opaque;   /* files that read commands from outside the skill, sorted */
    struct skill_strings packages; /* "FOLDER NAME" of each package.json, sorted */
    struct skill_strings optional; /* packages of Node's that one may do without, sorted */
    unsigned uses;                 /* so far */
};

/*
 * Adds a copy of *item, whose strings are borrowed, unless it is there: then it only stays
 * guarded if this one is too. 0 or -ENOMEM.
 */
int needs_add(struct needs_reader *r, const struct needs_item *item);
/* In a folder whose files are not the skill's own, or are not run by its users. */
bool needs_is_aside(const char *path);
/* Chooses what is read, code before all else. Returns how many bytes that is. */
uint64_t needs_choose(const struct skill_archive *archive, bool *ret_wanted, bool *ret_all);
/* Sorts the archive's entries by their names, for the two below: a skill may have as many of
 * these as it names things. 0 or -ENOMEM. */
int needs_sort_names(struct needs_reader *r);
/* Whether the skill has a file of this name, in whatever folder. */
bool needs_has_file(const struct needs_reader *r, const char *name);
/* The same of a file or a folder, in capitals or not. */
bool needs_has_name(const struct needs_reader *r, const char *name);

/* The first of the files that would be this module if its folder were on the path, borrowed in
 * *ret, or NULL. 0 or -ENOMEM. */
int needs_find_module(struct needs_reader *r, const char *module, const char **ret);

/* The lines of a requirements.txt. */
int needs_read_requirements(struct needs_reader *r, const char *file, const char *text,
                            size_t len);
/* The block of PEP 723 in a script. */
int needs_read_script_block(struct needs_reader *r, const char *file, const char *text,
                            size_t len);
/* What a package.json depends on, and what it calls its own. */
int needs_read_package(struct needs_reader *r, const char *file, const char *text, size_t len);
/* That Node is wanted in a version of a range, as of semver.h. */
int needs_add_node(struct needs_reader *r, const char *file, unsigned line, const char *range);
/* What a script of JavaScript imports, as of imports_walk(). */
int needs_add_import(struct needs_reader *r, const struct imports_use *use);
/* The hosts of URLs in a line, but for those that only name something, as a namespace does. */
int needs_read_hosts(struct needs_reader *r, const char *file, unsigned n,
                     struct text_span line);
/* A host that a script asks. */
int needs_add_connection(struct needs_reader *r, const char *host, const char *file,
                         unsigned line);
/* Hosts in URLs, and what looks like a secret. */
int needs_read_text(struct needs_reader *r, const char *file, const char *text, size_t len);
/* What SKILL.md asks for in its fields. */
int needs_read_fields(struct needs_reader *r);

/* The module that a package, its name in the form of PEP 503, is imported as. */
void needs_module_name(const char *package, char ret[NEEDS_TEXT_MAX + 1]);

/* Where a thing is from in an image. */
enum needs_from needs_from_in(const struct image_manifest *image,
                              const struct needs_item *item);
/* The minor version of Python 3 that ">=3.12,<4" asks for; 0: any. NULL is fine. */
unsigned needs_python_minor(const char *version);
/* Whether an image's Python is one that a requirement is for, by its marker. */
bool needs_applies(const struct image_manifest *image, const struct needs_item *item);
/*
 * Which version an image has of a package or of Node, "" where nobody knows; and whether it is
 * one that is asked for: 1 or 0, or -EINVAL where that cannot be known.
 */
int needs_compare_version(const struct image_manifest *image, const struct needs_item *item,
                          char ret_version[NEEDS_VERSION_SIZE]);
/* Of those that the image has, in versions that are not asked for: after needs_count_missing.
 */
size_t needs_count_unfit(const struct needs *needs);
/* Whether the skill cannot do without a thing that images differ in. */
bool needs_is_needed(const struct needs_item *item);
/* Whether there is any such thing. */
bool needs_knows(const struct needs *needs);
/* Whether a thing before says the same. */
bool needs_is_repeated(const struct needs *needs, size_t at);
/*
 * Says of each thing where it is from in the image of that place, and counts what it needs and
 * is not there.
 */
size_t needs_count_missing(struct needs *needs, const struct image_list *images,
                           unsigned place);
/* Names an image that has what is missing. */
void needs_find_help(struct needs_item *item, const struct image_list *images,
                     image_set_t allowed);

#endif
