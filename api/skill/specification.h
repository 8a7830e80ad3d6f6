/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Agent Skills specification's own validator, rule for rule: stricter than loading, which
 * takes what it understands. Names are compared in the normal form NFKC and may be of any
 * script. libunistring stays inside specification.c.
 */
#ifndef SKILLVM_API_SKILL_SPECIFICATION_H
#define SKILLVM_API_SKILL_SPECIFICATION_H

#include "api/skill/skill.h"

/*
 * Checks a SKILL.md in a folder of this name (NULL: not known) and adds a sentence to errors
 * for each rule that is broken. 0 or -ENOMEM.
 */
int specification_check(const char *skill_md, size_t len, const char *folder,
                        struct skill_strings *errors);

#endif
