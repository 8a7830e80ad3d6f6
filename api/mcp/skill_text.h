/* SPDX-License-Identifier: Apache-2.0 */
/* A skill as text for a model, from what the daemon says of it. */
#ifndef SKILLVM_API_MCP_SKILL_TEXT_H
#define SKILLVM_API_MCP_SKILL_TEXT_H

#include "api/json/json_text.h"
#include "base/buf.h"

/* Appends its SKILL.md: front matter and body. 0, -E2BIG or -ENOMEM. */
int skill_text_append(struct json_slice skill, struct buf *out);
/* Appends a list of its files. As above. */
int skill_text_append_files(struct json_slice skill, struct buf *out);

#endif
