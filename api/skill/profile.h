/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import profiles: which modules of an image a skill would find worth having in memory. A
 * profile is its name, the modules sorted and joined by "+" ("decimal+sqlite3"), which is also
 * the payload of PROTO_WARM; "" is the image's plain snapshot. It holds names that the image's
 * own recipe lists and nothing else of a skill's, so tenants may share what is made from it.
 *
 * How one is used:
 *   once      profile_list_read() of the file beside the image (python.modules)
 *   a skill   imports_read(), then profile_make(); both are kept with the skill's digest and
 *             entry, being the same for the same bytes
 *   a machine boots as for the plain snapshot; after READY the host sends PROTO_WARM with the
 *             name, waits for PROTO_WARMED, closes, and makes the snapshot
 *   the key   of that snapshot has the profile's name beside what shapes the plain one
 */
#ifndef SKILLVM_API_SKILL_PROFILE_H
#define SKILLVM_API_SKILL_PROFILE_H

#include "api/skill/skill.h"
#include "base/err.h"

#define PROFILE_NAME_SIZE      200u /* of a profile's name, with its NUL: also fits a file name */
#define PROFILE_LIST_MAX       128u  /* modules an image may offer */
#define PROFILE_LIST_BYTES_MAX 8192u /* of the file that lists them */

/*
 * Reads the modules an image offers: one name a line, in any order. 0 with *ret sorted, each
 * once; -EINVAL with the line for what is no such list; -EFBIG over a limit; -errno. The
 * caller finishes *ret on success. A daemon that finds no file takes an empty list.
 */
int profile_list_read(int fd, struct skill_strings *ret, struct err *err);
/*
 * The profile of a skill: of the modules in offered (sorted) those that its imports (sorted, of
 * imports_read()) name, or that are packages around one named. Those that do not fit any more
 * are left out, in order, so that equal imports give an equal name.
 */
void profile_make(const struct skill_strings *offered, const struct skill_strings *imports,
                  char ret_name[PROFILE_NAME_SIZE]);

#endif
