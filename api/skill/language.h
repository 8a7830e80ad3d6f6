/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programming languages, as far as one can be told from a file's name, from what somebody calls
 * it, or from a first line: also those that do not run here, so that they can be named.
 */
#ifndef SKILLVM_API_SKILL_LANGUAGE_H
#define SKILLVM_API_SKILL_LANGUAGE_H

#include <stddef.h>

/* Everything is static. */
struct language {
    const char *lang;       /* what runs it: "python", "bash" or "node"; NULL: nothing does */
    const char *shown;      /* for a person */
    const char *extensions; /* words, without their dots */
    const char *names;      /* words, in lower case */
    const char *remedy; /* what can be done with a file of it that nothing runs, else NULL */
};

/* By the extension of a path. NULL where that is none of a language's. */
const struct language *language_of_path(const char *path);
/* By a name such as "python3" or "Bash". NULL where nothing is called that. */
const struct language *language_of_name(const char *name);
/*
 * The interpreter that a first line names ("#!/usr/bin/env python3"), without its folder:
 * *ret_len bytes, borrowed from the text. NULL without one.
 */
const char *language_interpreter(const char *text, size_t len, size_t *ret_len);
/* By the interpreter that a first line names ("#!/usr/bin/env python3"). NULL without one. */
const struct language *language_of_text(const char *text, size_t len);

#endif
