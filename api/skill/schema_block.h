/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input schema that a skill's instructions show: the first block fenced as json below a
 * heading "Input schema". It finds text and never says what is in it.
 */
#ifndef SKILLVM_API_SKILL_SCHEMA_BLOCK_H
#define SKILLVM_API_SKILL_SCHEMA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the block in Markdown. True with its text, borrowed, without the fences; a block that
 * is not closed is none.
 */
bool schema_block_find(const char *text, size_t len, const char **ret_block, size_t *ret_len);

#endif
