/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tools are called. Every API takes 1 to 64 letters, digits, '_' and '-': skills and
 * scripts are called what they like. The same skills always give the same names.
 */
#ifndef SKILLVM_API_TOOLS_TOOL_NAMES_H
#define SKILLVM_API_TOOLS_TOOL_NAMES_H

#include <stddef.h>

#define TOOL_NAME_SIZE 65u /* with its NUL */

/* What a tool is: a skill's entry, or one of its scripts. Borrowed. */
struct tool_identity {
    const char *skill;
    const char *script; /* path in the skill; NULL: its entry */
};

/*
 * Writes text to out with '_' for every character but letters and digits of ASCII and those of
 * extra, at most size - 1 bytes. Returns out.
 */
char *tool_name_clean(const char *text, const char *extra, char *out, size_t size);

/*
 * Names n tools that are all different. A skill's entry has the skill's name, a script
 * <skill>__<script> with its path without "scripts/" and its extension. One that is too long,
 * one that a tool of skillvm's own has, and one that is like another's, ends with a part of the
 * SHA-256 of skill and script; only a skill whose own name it is keeps it. 0, -ENOMEM or -EIO.
 */
int tool_names_assign(const struct tool_identity *tools, size_t n,
                      char (*ret_names)[TOOL_NAME_SIZE]);

#endif
