/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a run leaves, on their way from the guest's stream to an object: checked and
 * written to a nameless file as they come, its digest known once all are there. Nothing is
 * stored here.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_LEFT_H
#define SKILLVM_API_DAEMON_ENGINE_LEFT_H

#include "api/daemon/store/store.h"
#include "api/skill/artifacts.h"
#include "api/skill/sha256.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct left {
    int fd;                       /* the archive; -1: none */
    struct artifacts *artifacts;  /* NULL: nothing came */
    char digest[SHA256_HEX_SIZE]; /* of the archive once it is complete, else "" */
    uint64_t bytes;               /* of it */
};

/* The empty one. */
struct left left_init(void);
/* Takes the next bytes of the stream. As artifacts_push. */
int left_push(struct left *left, const struct store *store,
              const struct artifacts_limits *limits, const void *data, size_t len,
              struct err *err);
/* Completes an archive that bytes came for: it is on disk, and its digest known. 0 or -errno.
 */
int left_complete(struct left *left, struct err *err);
/* Forgets all of it, and gives the room on disk back. Safe on a finished one. */
void left_finish(struct left *left);

#endif
