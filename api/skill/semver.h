/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of Node's packages and the ranges that package.json asks for, as npm reads them.
 * Pure text, a stranger's: it never looks at a file.
 */
#ifndef SKILLVM_API_SKILL_SEMVER_H
#define SKILLVM_API_SKILL_SEMVER_H

#define SEMVER_TEXT_MAX 256u /* of a range, and of a version */

/*
 * Whether a version, "18.20.4", is in a range: "^1.2", "~1.2.3", ">=1 <3 || 4.x", "1.2 - 1.4",
 * "" for any. 1 or 0; -EINVAL where one of them is none, as a tag or an address is.
 */
int semver_has(const char *range, const char *version);

#endif
