/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a tool's arguments in JSON to the command line that its script's parser takes. What
 * comes from a caller is always a value and never an option of its own making.
 */
#ifndef SKILLVM_API_TOOLS_ARGUMENTS_H
#define SKILLVM_API_TOOLS_ARGUMENTS_H

#include "api/skill/skill.h"
#include "api/tools/parser.h"
#include "base/err.h"

#include <stddef.h>

/*
 * Appends the command line for arguments, a JSON object as text that was checked, to ret (argv
 * without the script's name). Null is the same as absent. 0; -EINVAL naming the argument that
 * is missing, unknown, of another type, no choice, or that a command line cannot express;
 * -ENOMEM.
 */
int arguments_to_argv(const struct parser *parser, const char *arguments, size_t len,
                      struct skill_strings *ret, struct err *err);

#endif
