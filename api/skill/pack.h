/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder on the caller's own disk becomes a tar for upload. Trusts the folder no further than
 * it must: links that lead out of it are refused, sockets and devices too, .git is left out.
 * The daemon checks everything again: this is a convenience, not a barrier.
 */
#ifndef SKILLVM_API_SKILL_PACK_H
#define SKILLVM_API_SKILL_PACK_H

#include "api/skill/archive.h"
#include "base/err.h"

/*
 * Writes the folder at path (with a SKILL.md in it) to out_fd as a tar with one wrapping folder
 * that bears the folder's real name. Left out: .git, __pycache__, .DS_Store, and editors' swap
 * files. 0; -ENOENT or -ENOTDIR (no such folder), -EINVAL (no SKILL.md, a link out, a special
 * file), -EFBIG (over limits), -errno.
 */
int pack_folder(const char *path, const struct archive_limits *limits, int out_fd,
                struct err *err);

#endif
