/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that comes without a skill: which language it is in, and the smallest skill that runs
 * it, a SKILL.md and one script. The same code in the same language is the same skill, byte for
 * byte. Nothing here reads files or runs anything.
 */
#ifndef SKILLVM_API_SKILL_CODE_H
#define SKILLVM_API_SKILL_CODE_H

#include "api/skill/archive.h"
#include "api/skill/language.h"
#include "api/skill/skill.h"
#include "base/err.h"

#include <stddef.h>

/* As much of a file as imports are read from. */
#define CODE_BYTES_MAX (256u * 1024u)
/* Bytes of its tar that are not the code's, at most. */
#define CODE_TAR_EXTRA 4096u

/*
 * What runs code of a language (NULL: an unknown one), as of struct language. what is how a
 * message calls the code ("main.ts"). 0; -EINVAL with the language's name and what to do.
 */
int code_check_language(const struct language *language, const char *what,
                        const char **ret_lang, struct err *err);
/*
 * What runs code: the language that name says where it is not NULL, else the first line's, else
 * Python. As above.
 */
int code_language(const char *name, const char *text, size_t len, const char **ret_lang,
                  struct err *err);

/*
 * Writes the canonical tar of code (UTF-8 without NUL) to tar_fd, an empty file, and gives what
 * skill_archive_reload() gives for it. lang is "python", "bash" or "node"; code of the
 * last that imports or exports is an ES module, main.mjs. 0; -EFBIG; -ENOMEM; -errno.
 * The caller finishes both on success.
 */
int code_make_skill(const char *lang, const char *text, size_t len, int tar_fd,
                    struct skill_archive *ret_archive, struct skill *ret_skill,
                    struct err *err);

#endif
