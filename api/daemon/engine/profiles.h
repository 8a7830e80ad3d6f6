/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which import profile an execution has: read from the sources of its skill the first time, and
 * remembered by the skill's content and the entry, the same for whoever has that skill.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_PROFILES_H
#define SKILLVM_API_DAEMON_ENGINE_PROFILES_H

#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "api/skill/profile.h"
#include "api/skill/skill.h"

struct profiles;

/* Of an image that offers these modules (sorted; taken over). NULL: no memory. */
struct profiles *profiles_create(struct skill_strings *modules);
/* NULL is fine. */
void profiles_destroy(struct profiles *profiles);

/*
 * The profile of an entry of the skill in tar_fd, the canonical tar of that digest; "" where it
 * imports nothing that the image offers, and where its sources cannot be read: it is a hint.
 */
void profiles_look(struct profiles *profiles, const char *digest, int tar_fd,
                   const struct skill_archive *archive, const struct skill_entry *entry,
                   char ret_name[PROFILE_NAME_SIZE]);

#endif
