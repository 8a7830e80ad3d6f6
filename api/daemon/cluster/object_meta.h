/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bucket of objects says of one: JSON as NATS's own tools write and read it, under the
 * base64url of its name, which is the SHA-256 of what it holds. A broken or hostile node may
 * have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_OBJECT_META_H
#define SKILLVM_API_DAEMON_CLUSTER_OBJECT_META_H

#include "api/daemon/terms/change.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECT_META_BYTES_MAX 4096u
#define OBJECT_CHUNK_BYTES    (128u * 1024u)
#define OBJECT_KEY_SIZE       96u /* "M." or "C." and what is behind it */
#define OBJECT_WORD_SIZE      65u /* that its chunks are under, of letters and digits */

struct object_meta {
    char digest[CHANGE_DIGEST_SIZE];     /* its name */
    char chunks_under[OBJECT_WORD_SIZE]; /* of one that is deleted also "": nobody knows */
    uint64_t size;
    uint64_t chunks;
    bool is_deleted; /* and has neither size nor chunks */
};

/* The key of what is said of an object, and of its chunks. */
void object_meta_key(const char *digest, char ret[OBJECT_KEY_SIZE]);
void object_chunks_key(const char *chunks_under, char ret[OBJECT_KEY_SIZE]);
/*
 * What is said under a key. 0; -EINVAL: of no object of ours, or of one that cannot hold what
 * its name says.
 */
int object_meta_parse(const char *key, const char *data, size_t len, struct object_meta *ret);
/* 0, or -ENOMEM. */
int object_meta_write(const struct object_meta *meta, const char *bucket, struct buf *ret);

#endif
