/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that a shell's text starts by a literal name, found in the text of a stranger's:
 * the first words of commands, also within pipes, conditions, substitutions and the branches of
 * a case. What a word is made of at run time is nobody's name. It must never run or expand
 * anything. Its time is linear, its memory bounded by SHELL_DEPTH_MAX.
 */
#ifndef SKILLVM_API_SKILL_SHELL_SCAN_H
#define SKILLVM_API_SKILL_SHELL_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define SHELL_NAME_MAX  64u /* a longer word is no program */
#define SHELL_DEPTH_MAX 64u /* of what stands in one another; more is refused */

enum shell_kind {
    SHELL_PROGRAM, /* is started; no builtin of bash's */
    SHELL_ASKED,   /* is looked for: command -v, which, type, hash */
    SHELL_DEFINED, /* a function or an alias of that name, here or further down */
    SHELL_SOURCED, /* a file of commands, by the last part of its path as far as it is literal
                    */
    SHELL_HOST,    /* of a URL that curl, wget or git is given to ask */
};

struct shell_found {
    enum shell_kind kind;
    unsigned line;    /* from 1 */
    const char *name; /* borrowed for the call; of a program's path its last part */
};

typedef int (*shell_found_fn)(void *user, const struct shell_found *found);

/*
 * Calls found for each in the order of the text. 0; what found returned, if negative, at once;
 * -EINVAL, before any call, for what is no text or does not end what it begins.
 */
int shell_scan(const char *text, size_t len, shell_found_fn found, void *user);
/* True for what can be a program's name: letters, digits and "._+-", not all digits. */
bool shell_is_program(const char *name);
/* Without the folder of the system's that it is in, if it is in one. */
const char *shell_program_name(const char *path);

#endif
