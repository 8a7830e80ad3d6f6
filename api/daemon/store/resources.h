/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free disk space and memory against the watermarks of the settings. Looked at once a second at
 * most, whoever asks. Below a watermark nothing new is accepted; what was accepted goes on.
 */
#ifndef SKILLVM_API_DAEMON_STORE_RESOURCES_H
#define SKILLVM_API_DAEMON_STORE_RESOURCES_H

#include "api/daemon/config/config.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct resources;

/* How much is left, and how much must be. */
struct resources_level {
    bool low;
    uint64_t free_bytes;
    uint64_t least_bytes; /* the watermark; 0: none */
};

struct resources_state {
    struct resources_level disk; /* of the data folder */
    struct resources_level memory;
};

/* dir_fd is in the file system to watch; borrowed. 0 or -ENOMEM. */
int resources_create(int dir_fd, const struct config_watermarks *watermarks,
                     struct resources **ret, struct err *err);
/* NULL is fine. */
void resources_destroy(struct resources *resources);

/* New watermarks; they count from the next look on. */
void resources_set(struct resources *resources, const struct config_watermarks *watermarks);
/* The state, at most a second old. What cannot be read counts as enough. */
void resources_look(struct resources *resources, struct resources_state *ret);
/* 0, or -ENOSPC with a sentence on what is short. */
int resources_check(struct resources *resources, struct err *err);
/* The same for so many bytes more on disk, which shall leave the watermark free. */
int resources_check_room(struct resources *resources, uint64_t bytes, struct err *err);

#endif
