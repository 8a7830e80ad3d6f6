/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SKILL.md: YAML front matter between two `---` lines, then the body. Lenient, as the Agent
 * Skills clients are: what can be understood is used and a warning says what was odd; refused
 * is only what has no usable front matter or no description. The text is hostile: size, depth,
 * count and aliases are bounded before anything is built.
 */
#ifndef SKILLVM_API_SKILL_FRONTMATTER_H
#define SKILLVM_API_SKILL_FRONTMATTER_H

#include "api/skill/skill.h"
#include "base/err.h"

#define FRONTMATTER_FILE_MAX  (1024u * 1024u) /* bytes of a SKILL.md */
#define FRONTMATTER_YAML_MAX  (64u * 1024u)   /* bytes between the `---` lines */
#define FRONTMATTER_DEPTH_MAX 16u
#define FRONTMATTER_NODES_MAX 2000u

/*
 * Parses len bytes of a SKILL.md into *ret_skill (uninitialised; the caller finishes it on
 * success). 0; -EINVAL (invalid_skill) with the line where there is one; -EFBIG (too_large);
 * -ENOMEM.
 */
int frontmatter_parse(const char *text, size_t len, struct skill *ret_skill, struct err *err);

/*
 * Finds the YAML between the `---` lines, borrowed from text, and the line it begins at,
 * from 1. Empty lines and a byte order mark may come before. 0 or -EINVAL.
 */
int frontmatter_find(const char *text, size_t len, const char **ret_yaml, size_t *ret_len,
                     unsigned *ret_line, struct err *err);

#endif
