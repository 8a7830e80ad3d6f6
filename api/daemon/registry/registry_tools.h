/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What introspection found of a skill's scripts. By digest: the same content has the same
 * parameters, whoever registered it. Goes with the last skill of its digest.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TOOLS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TOOLS_H

#include "api/daemon/registry/registry.h"

/*
 * Stores the description of a script's parameters (JSON, api/tools/parser.h), or that there is
 * none (NULL). script is "" for the skill's own entry. 0 also when no skill has that digest any
 * more; -EIO.
 */
int registry_tool_schema_put(struct registry *registry, const char *skill_digest,
                             const char *script, const char *schema, struct err *err);
/*
 * 0 with *ret the caller's, NULL where introspection found nothing; -ENOENT when nobody looked
 * yet; -ENOMEM; -EIO.
 */
int registry_tool_schema_get(struct registry *registry, const char *skill_digest,
                             const char *script, char **ret, struct err *err);

#endif
