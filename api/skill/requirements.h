/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a requirements.txt and a script's block (PEP 723) say, cut by one grammar into what they
 * require. What becomes of it is up to who asks: needs.h looks it up, wheels/wanted.h resolves
 * it. Pure text, a stranger's.
 */
#ifndef SKILLVM_API_SKILL_REQUIREMENTS_H
#define SKILLVM_API_SKILL_REQUIREMENTS_H

#include "base/err.h"

#include <stddef.h>

/* The line that begins a script's block. */
#define REQUIREMENTS_BLOCK_BEGIN "# /// script"

enum requirements_kind {
    REQUIREMENTS_NAMED,  /* "requests>=2; marker" */
    REQUIREMENTS_PLACE,  /* the same by a file or an address: "NAME @ URL", "./x.whl" */
    REQUIREMENTS_OPTION, /* "-r more.txt" */
    REQUIREMENTS_PYTHON, /* the version of Python in a block: ">=3.11" */
};

struct requirements_line {
    enum requirements_kind kind;
    char *text;    /* without comments and the space around it; who takes it may change it */
    char *options; /* behind a requirement: "--hash=…"; NULL: none */
    unsigned line; /* where it begins, from 1 */
};

/* A result other than 0 ends the reading and is its result. */
typedef int requirements_take(void *ctx, const struct requirements_line *line);

/*
 * Each of a requirements.txt, as pip reads it: a "#" behind white space begins a comment, a
 * line that ends with a backslash is one with the next. 0; what take returned; -ENOMEM.
 */
int requirements_read_file(const char *text, size_t len, requirements_take *take, void *ctx);
/*
 * Each of `dependencies` in the block of a script, if it has a whole one, and
 * `requires-python`. As above, and -EINVAL with err where these are not what they should be.
 */
int requirements_read_script(const char *text, size_t len, requirements_take *take, void *ctx,
                             struct err *err);

#endif
