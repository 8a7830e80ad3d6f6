/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read of skills and need not be read again: values of one size by keys that begin
 * with a digest. There are so many places; each key has one, and the newest that has it sits
 * there.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_MEMO_H
#define SKILLVM_API_DAEMON_ENGINE_MEMO_H

#include "api/skill/sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* A digest, and some words behind it. */
#define MEMO_KEY_SIZE (SHA256_HEX_SIZE + 40u)

struct memo;

/* NULL: no memory. */
struct memo *memo_create(size_t value_bytes);
/* NULL is fine. */
void memo_destroy(struct memo *memo);

/* Copies the value to ret_value; false: nobody knows. */
bool memo_recall(struct memo *memo, const char *key, void *ret_value);
void memo_keep(struct memo *memo, const char *key, const void *value);

#endif
