/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free disk space and memory against the watermarks of the settings. Looked at once a second at
 * most, whoever asks. Below a watermark nothing new is accepted; what was accepted goes on.
 */
#ifndef SKILLVM_API_DAEMON_STORE_WATERMARKS_H
#define SKILLVM_API_DAEMON_STORE_WATERMARKS_H

#include "api/daemon/config/config.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watermarks;

/* How much is left, and how much must be. */
struct watermarks_level {
    const char *what; /* a word or two for a sentence */
    bool low;
    uint64_t free_bytes;
    uint64_t least_bytes; /* the watermark; 0: none */
    uint64_t free_files;
    uint64_t
        least_files; /* a hundredth of what the file system can have; 0: it does not count */
};

struct watermarks_state {
    struct watermarks_level disk; /* of the data folder */
    struct watermarks_level memory;
};

/* dir_fd is in the file system to watch; borrowed. 0 or -ENOMEM. */
int watermarks_create(int dir_fd, const struct config_watermarks *settings,
                      struct watermarks **ret, struct err *err);
/* NULL is fine. */
void watermarks_destroy(struct watermarks *watermarks);

/* New watermarks; they count from the next look on. */
void watermarks_set(struct watermarks *watermarks, const struct config_watermarks *settings);
/* The state, at most a second old. What cannot be read counts as enough. */
void watermarks_look(struct watermarks *watermarks, struct watermarks_state *ret);
/* A sentence on what is short in a level that is low. */
void watermarks_describe(const struct watermarks_level *level, char *ret, size_t size);
/* 0, or -ENOSPC with such a sentence. */
int watermarks_check(struct watermarks *watermarks, struct err *err);
/* The same for so many bytes more on disk, which shall leave the watermark free. */
int watermarks_check_room(struct watermarks *watermarks, uint64_t bytes, struct err *err);

#endif
