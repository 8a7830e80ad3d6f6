/* SPDX-License-Identifier: Apache-2.0 */
/* Registers and forgets the skills of a cluster, at all its nodes. */
#ifndef SKILLVM_API_DAEMON_ENGINE_SKILL_CHANGES_H
#define SKILLVM_API_DAEMON_ENGINE_SKILL_CHANGES_H

#include "api/daemon/engine/changes.h"

/*
 * As of registry_skill_put, and -EAGAIN as of changes_make: what takes several changes may then
 * have been begun, which changes nothing of what is there. Its objects are at the servers.
 */
int skill_changes_put(struct changes *changes, struct registry *registry, const char *tenant,
                      const struct registry_skill *skill, bool replace, char **ret_previous,
                      struct err *err);
/* As of registry_skill_delete, and -EAGAIN as above. */
int skill_changes_delete(struct changes *changes, struct registry *registry, const char *tenant,
                         const struct registry_skill *skill, struct err *err);

#endif
