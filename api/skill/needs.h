/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill needs, read and never run: the modules that its Python and JavaScript import,
 * the programs that its scripts start by a literal name, what requirements.txt, PEP 723,
 * package.json and SKILL.md ask for, the languages of its scripts, the hosts that it names, and
 * what looks like a secret. What the image does not have becomes a warning with a remedy. It is
 * a reader's opinion: nothing is refused for it, and what cannot be known is not warned about.
 */
#ifndef SKILLVM_API_SKILL_NEEDS_H
#define SKILLVM_API_SKILL_NEEDS_H

#include "api/json/json_write.h"
#include "api/skill/archive.h"
#include "api/skill/image_choice.h"
#include "api/skill/skill.h"
#include "base/err.h"

/* What is over a limit is left out, and the answer says so. */
#define NEEDS_ITEMS_MAX      1024u
#define NEEDS_WARNINGS_MAX   32u
#define NEEDS_FILES_MAX      512u          /* that are read */
#define NEEDS_FILE_BYTES_MAX (256u * 1024) /* of one */
#define NEEDS_BYTES_MAX      (2u * 1024 * 1024)
#define NEEDS_TEXT_MAX       128u /* of a name or a host */
#define NEEDS_WANTED_MAX     256u /* of a requirement whose version is compared */
#define NEEDS_VERSION_SIZE   48u

enum needs_kind {
    NEEDS_MODULE,
    NEEDS_PROGRAM,
    NEEDS_PACKAGE,     /* a requirement: name, and detail as it asks for a version */
    NEEDS_NODE_MODULE, /* and the same of Node's */
    NEEDS_NODE_PACKAGE,
    NEEDS_LANGUAGE, /* of a script; "Python" and "Node.js" also in a version, the detail */
    NEEDS_FIELD,    /* of SKILL.md: name, and detail its value */
    NEEDS_HOST,
    NEEDS_SECRET, /* name is masked */
};

enum needs_from {
    NEEDS_UNKNOWN, /* there is no manifest of the image, or nobody looked yet */
    NEEDS_STANDARD,
    NEEDS_IMAGE,
    NEEDS_OWN, /* the skill's */
    NEEDS_MISSING,
    NEEDS_NOT_ASKED, /* the requirement's marker leaves this image's Python out */
};

/* Whether another image has it. */
enum needs_help {
    NEEDS_NO_HELP,
    NEEDS_HELP_HERE,
    NEEDS_HELP_FORBIDDEN, /* it may not be used */
    NEEDS_HELP_AWAY,      /* it can be built */
};

struct needs_item {
    enum needs_kind kind;
    enum needs_from from;
    char *name;
    char *detail;          /* or NULL */
    unsigned python_minor; /* of a language: the least of Python 3 that detail asks for */
    char *wanted;          /* a requirement of Python's as it stands, or NULL */
    char *file;
    unsigned line;   /* from 1 */
    bool guarded;    /* the skill expects that it may not be there */
    bool own;        /* the skill brings it */
    bool brought;    /* packages of the skill's do, in the images that they go with */
    bool scarce;     /* an image that was looked at does not have it */
    bool connects;   /* of a host: a script asks it */
    bool declared;   /* and `network` permits it */
    char *elsewhere; /* of a module that is not its own: a file of that name off the path */
    /* Which the image has, and whether it is known not to be one that is asked for. */
    char version[NEEDS_VERSION_SIZE]; /* "": nobody knows */
    bool unfit;
    /* Of what is missing or unfit. */
    enum needs_help help;
    char helper[IMAGE_NAME_SIZE]; /* the image that has it */
};

struct needs {
    struct needs_item *items; /* one for each kind, name and file */
    size_t len;
    bool truncated;
    bool says_hosts;   /* which it means to reach: of others nobody is told */
    bool has_packages; /* wheels of its own, or those that were chosen for it */
    image_set_t go;    /* that packages which the skill brings go with */
    /* That was looked in. */
    char image[IMAGE_NAME_SIZE];
    char why[IMAGE_WHY_SIZE];
    bool known;            /* what it has */
    uint64_t memory_bytes; /* that a skill has in it by default; 0: the usual */
    size_t missing;        /* that the skill cannot do without */
    /* Of the images that are not here the one that has the most of that, or "". */
    char away[IMAGE_NAME_SIZE];
    bool has_python;
    bool has_node;
    char runs[32]; /* the languages that it runs, for a person */
};

/* How many bytes needs_read() holds for its time, at most: those of the files that it reads. */
uint64_t needs_bytes(const struct skill_archive *archive);
/*
 * Reads the skill in the canonical tar in tar_fd; where things are from is not known before
 * needs_look(). 0; -ENOMEM, or what reading tar_fd gave. The caller finishes *ret on success.
 */
int needs_read(int tar_fd, const struct skill_archive *archive, const struct skill *skill,
               struct needs *ret, struct err *err);
void needs_finish(struct needs *needs);
#define _cleanup_needs_ __attribute__((cleanup(needs_finish)))

/*
 * Looks in the image that was chosen where things are from, and among the others, of which only
 * the allowed may be used, which one would help.
 */
void needs_look(struct needs *needs, const struct image_list *images, image_set_t allowed,
                const struct image_choice *choice);
/*
 * What packages that a skill brings have, as a list of what is in them, is its own in the
 * images that they go with: for the choice of one, and for needs_look().
 */
void needs_bring(struct needs *needs, const struct image_manifest *brought, image_set_t go);
/* Adds a sentence for each thing that is missing or not declared, with file, line and remedy. 0
 * or -ENOMEM. */
int needs_warn(const struct needs *needs, struct skill_strings *warnings);
/* The members of what `skillvm skill inspect -o json` shows, into an open object. */
void needs_write(const struct needs *needs, struct json_writer *w);

/*
 * Why a run in the image of that place failed, by what it printed last: a module or a program
 * that the image does not have. 1 with a sentence with the remedy in ret; else 0. log need not
 * be text.
 */
int needs_explain(const struct image_list *images, image_set_t allowed, unsigned place,
                  const char *log, size_t len, char *ret, size_t size);

#endif
