/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON object that somebody else wrote, and its members, each checked for what it may be. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_ENTRY_VALUES_H
#define SKILLVM_API_DAEMON_CLUSTER_ENTRY_VALUES_H

#include "api/daemon/cluster/node_entry.h"
#include "api/json/json_walk.h"
#include "api/json/json_write.h"

#include <stdint.h>

/* Opens an object of up to max bytes, with the number of its schema. */
struct json_writer entry_begin(size_t max, uint32_t schema);
/* Closes it and hands it over, as json_writer_end does. */
int entry_end(struct json_writer *w, struct buf *ret);
/*
 * An object of up to max bytes with the number of a schema, up to the newest that is known. 0,
 * or -EINVAL with *ret_why: NODE_TOO_LARGE, NODE_MALFORMED or NODE_NEWER.
 */
int entry_take_object(const char *data, size_t len, size_t max, uint32_t newest,
                      struct json_slice *ret, enum node_refusal *ret_why);

/* All: 0, or -EINVAL where it is not there or something else; *ret is untouched then. */

/* A whole number in digits alone, up to max. */
int entry_take_number(struct json_slice object, const char *key, uint64_t max, uint64_t *ret);
int entry_take_bool(struct json_slice object, const char *key, bool *ret);
/* A string of up to size - 1 bytes once decoded, without a NUL. */
int entry_take_text(struct json_slice object, const char *key, char *ret, size_t size);

/* Its place among n words, of which none is longer than 15 bytes. */
int entry_take_one_of(struct json_slice object, const char *key, const char *const *words,
                      unsigned n, unsigned *ret);

/* A SHA-256 in hexadecimal digits. */
bool entry_is_digest(const char *text);
/* The same, or "". */
bool entry_is_digest_or_none(const char *text);

#endif
