/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which import profile an execution has, and whether its script runs as a module: read from the
 * sources of its skill the first time, and remembered by the skill's content and the entry, the
 * same for whoever has that skill.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_PROFILES_H
#define SKILLVM_API_DAEMON_ENGINE_PROFILES_H

#include "api/daemon/engine/memo.h"
#include "api/daemon/machine/images.h"
#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "api/skill/profile.h"
#include "api/skill/skill.h"

/* Which remembers them; NULL: no memory. */
struct memo *profiles_create(void);

/*
 * The profile of an entry of the skill in tar_fd, the canonical tar of that digest, in the
 * image of that place of images; "" where it imports nothing that the image offers, and where
 * its sources cannot be read: it is a hint. A script that as_module() makes a module is one on
 * return. 0, or as as_module().
 */
int profiles_look(struct memo *profiles, const struct images *images, unsigned place,
                  const char *digest, int tar_fd, const struct skill_archive *archive,
                  struct skill_entry *entry, char ret_name[PROFILE_NAME_SIZE], struct err *err);

#endif
