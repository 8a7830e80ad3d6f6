/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot that every execution starts from: found by the key of everything that shaped it,
 * checked against its digests, or made anew by booting a guest once. Making and checking happen
 * in a thread of its own; executions wait for it. A snapshot that does not match is refused
 * with the reason and replaced, never used.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_SNAPSHOTS_H
#define SKILLVM_API_DAEMON_ENGINE_SNAPSHOTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_KEY_SIZE 65u

struct snapshots;

/* Borrowed for the life of the snapshots. */
struct snapshots_config {
    const char *vmm_program;
    const char *kernel_path;
    const char *image_path;
    int snapshots_fd; /* directory */
    int tmp_fd;       /* directory */
    uint32_t memory_mib;
    uint64_t boot_timeout_ms;
    uint64_t grace_ms; /* of the run that shows which pages a run uses */
};

/* What a restore needs. Descriptors are borrowed from the snapshots. */
struct snapshot_view {
    const char *key;
    int image_fd;
    int state_fd;
    int memory_fd;
    int working_set_fd; /* -1 where there is none */
};

enum snapshots_state { SNAPSHOTS_PREPARING, SNAPSHOTS_READY, SNAPSHOTS_FAILED };

/* Starts preparing. 0 or -errno. */
int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err);
/* Ends the preparation, waits for its thread, and closes everything. NULL is fine. */
void snapshots_destroy(struct snapshots *s);

/* The state now, with a sentence on what is being done or what went wrong. */
enum snapshots_state snapshots_get_state(struct snapshots *s, char *text, unsigned size);

/*
 * Waits for the snapshot; *cancelled is looked at about every 100 ms. 0 with *ret; -ECANCELED;
 * -ENODEV with the reason when it could not be made.
 */
int snapshots_wait(struct snapshots *s, bool (*cancelled)(void *ctx), void *ctx,
                   struct snapshot_view *ret, struct err *err);

/*
 * The digest of a memory file: SHA-256 over every page that is not all zero, as its u64le
 * number and its 4096 bytes, in order, and last the u64le size of the file. Holes are not read.
 * 0 or -errno (-EINVAL: the size is no multiple of 4096).
 */
int snapshots_digest_memory(int fd, char ret_hex[SNAPSHOT_KEY_SIZE]);

#endif
