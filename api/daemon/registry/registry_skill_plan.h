/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills as changes that every node of a cluster makes: one at a time, so that what takes two
 * rows takes two of them, of which the first alone is whole too.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SKILL_PLAN_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SKILL_PLAN_H

#include "api/daemon/registry/registry_changes.h"

/*
 * What has to be changed to register a skill, as of registry_skill_put. 0: the change that does
 * it, with the digest of what it takes the place of or "" in ret_previous; 1: one to be made
 * besides; -EALREADY: there is nothing to change any more; as of registry_skill_put.
 */
int registry_skill_plan(struct registry *registry, const char *tenant,
                        const struct registry_skill *skill, bool replace, struct change *ret,
                        char ret_previous[CHANGE_DIGEST_SIZE], struct err *err);
/*
 * What the rows of a tenant's skills and files take of the bucket of changes, about and rather
 * too much: names are short. 0 or -EIO.
 */
int registry_owned_rows_bytes(struct registry *registry, const char *tenant, uint64_t *ret,
                              struct err *err);
/* The change that forgets one, as of registry_skill_delete. */
int registry_skill_plan_delete(struct registry *registry, const char *tenant,
                               const struct registry_skill *skill, struct change *ret,
                               struct err *err);
/*
 * How large an object can be that a cluster shares (some skill, uploaded file or session names
 * it, or it is the files or the result of an execution), at most; 0 where that is not known.
 * It looks at all that name it. 0 or -EIO.
 */
int registry_object_bytes(struct registry *registry, const char *digest, uint64_t *ret,
                          struct err *err);

/* Who names an object: skills, files and sessions; executions. */
struct registry_naming {
    bool by_changes, by_executions;
};

/* However many name it, this costs the same. 0 or -EIO. */
int registry_object_naming(struct registry *registry, const char *digest,
                           struct registry_naming *ret, struct err *err);

#endif
