/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a stranger's on their way through the daemon: in memory while they are few, in a
 * nameless temporary file when they are many, refused past a limit. A spool leaves nothing on
 * disk, whatever happens to the process.
 */
#ifndef SKILLVM_API_DAEMON_STORE_SPOOL_H
#define SKILLVM_API_DAEMON_STORE_SPOOL_H

#include "api/skill/sha256.h"
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SPOOL_MEMORY_MAX (64u * 1024u)

struct spool {
    int dir_fd;        /* borrowed: where the file goes */
    int fd;            /* -1 while in memory */
    struct buf memory; /* empty once there is a file */
    uint64_t size;
    uint64_t max;
    void *map; /* of the whole file, or NULL */
    size_t map_len;
    struct sha256 *sha; /* of all bytes so far, or NULL */
};

/* Opens a nameless file in the directory, read and write. The descriptor, or -errno. */
int spool_open_nameless(int dir_fd);

/* An empty spool of at most max bytes. */
struct spool spool_init(int dir_fd, uint64_t max);
/* From here on every byte counts towards a digest. On an empty spool. 0 or -ENOMEM. */
int spool_hash(struct spool *s);
/* The digest of everything appended; nothing may be appended after it. Once, after spool_hash.
 */
void spool_digest(struct spool *s, char ret_hex[SHA256_HEX_SIZE]);
/* Appends. 0, -EFBIG past the limit, -errno when the file failed. Not after spool_view. */
int spool_append(struct spool *s, const void *data, size_t len);
/* All bytes, borrowed until the spool is finished; never NULL on success. 0 or -errno. */
int spool_view(struct spool *s, const char **ret_data);
/* Moves everything to a file. Its descriptor, borrowed, or -errno. */
int spool_to_fd(struct spool *s);
/* Gives all bytes away, in a file (caller's) or, where *ret_fd is -1, in memory. It is
 * finished. */
void spool_release(struct spool *s, int *ret_fd, struct buf *ret_memory);
/* Safe on a zeroed or finished spool. */
void spool_finish(struct spool *s);

#endif
