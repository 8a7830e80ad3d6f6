/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of resources: skill://NAME/VERSION/SKILL.md and execution://ID/files/PATH, and
 * the daemon's paths for the same things.
 */
#ifndef SKILLVM_API_MCP_URI_H
#define SKILLVM_API_MCP_URI_H

#include <stddef.h>

#define URI_MAX 8192u /* bytes */

enum uri_kind { URI_SKILL, URI_FILE };

/* Owned texts; NULL without memory. */
char *uri_for_skill(const char *name, const char *version);
char *uri_for_file(const char *execution_id, const char *path);

/*
 * What the address names, as a path of the daemon's (URI_MAX bytes), with every byte of a name
 * that a path may not hold encoded. 0, or -EINVAL when it names nothing of ours; a "." or ".."
 * in it is nothing of ours.
 */
int uri_to_path(const char *uri, enum uri_kind *ret_kind, char path[URI_MAX]);

#endif
