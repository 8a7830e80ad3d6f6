/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What introspection found of a skill's scripts. By content: the same skill with the same
 * packages and images has the same parameters, whoever registered it. Goes with the last skill
 * of its digest.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TOOLS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TOOLS_H

#include "api/daemon/registry/registry.h"

/* Of all scripts of a skill, in bytes: nobody pays for them but with processor time. */
#define REGISTRY_SCHEMAS_MAX (1u << 20)

/* A script, and all that it was seen with. Borrowed. */
struct registry_tool {
    const char *skill;    /* its digest */
    const char *packages; /* the digest of its packages; "": none */
    const char *images;   /* the digest of those of which its image was chosen */
    const char *script;   /* "": the skill's own entry */
};

/*
 * Stores the description of a script's parameters (JSON, api/tools/parser.h), or that there is
 * none (NULL), as of one that is too much beside the skill's others. 0 also when no skill has
 * that digest any more; -EIO.
 */
int registry_tool_schema_put(struct registry *registry, const struct registry_tool *tool,
                             const char *schema, struct err *err);
/*
 * 0 with *ret the caller's, NULL where introspection found nothing; -ENOENT when nobody looked
 * yet; -ENOMEM; -EIO.
 */
int registry_tool_schema_get(struct registry *registry, const struct registry_tool *tool,
                             char **ret, struct err *err);

#endif
