/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot that every execution starts from: found by the key of everything that shaped it,
 * checked against its digests, or made anew by booting a guest once. Making and checking happen
 * in a thread of its own; executions wait for it. A snapshot that does not match is refused
 * with the reason and replaced, never used; who has one keeps it when another takes its place.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_H
#define SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_H

#include "api/daemon/machine/renewal.h"
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
    uint64_t retry_ms; /* after a failure; doubled with each, where there is a snapshot */
    struct renewal_limits renewal;
};

/* A snapshot that was checked: what a restore needs. Counted references; constant otherwise. */
struct snapshot {
    unsigned references; /* atomic */
    char key[SNAPSHOT_KEY_SIZE];
    int image_fd;
    int state_fd;
    int memory_fd;
    int working_set_fd; /* -1 where there is none */
};

/* NULL is fine. */
void snapshot_unref(struct snapshot *snapshot);

enum snapshots_state { SNAPSHOTS_PREPARING, SNAPSHOTS_READY, SNAPSHOTS_FAILED };

/* Starts preparing. 0 or -errno. */
int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err);
/* Ends the preparation, waits for its thread, and closes everything. NULL is fine. */
void snapshots_destroy(struct snapshots *s);

/* The state now, with a sentence on what is being done or what went wrong. */
enum snapshots_state snapshots_get_state(struct snapshots *s, char *text, unsigned size);

/*
 * Waits for the snapshot; cancel_fd (or -1) is looked at about every 100 ms. 0 with a reference
 * for the caller; -ECANCELED once it is readable; -ENODEV with the reason when it could not be
 * made.
 */
int snapshots_wait(struct snapshots *s, int cancel_fd, struct snapshot **ret, struct err *err);
/* A reference to the snapshot without waiting; NULL where there is none now. */
struct snapshot *snapshots_current(struct snapshots *s);

/*
 * The snapshot is made anew in the background when the limits say so, or at once by this call.
 * Until another is there the old one is used; when none can be made the old one stays and it is
 * tried again, later each time.
 */
void snapshots_renew(struct snapshots *s);
/* New limits, from now on. */
void snapshots_set(struct snapshots *s, const struct renewal_limits *limits);
/* Counts an execution that begins from a snapshot, which may no longer be the current one. */
void snapshots_count_use(struct snapshots *s, const struct snapshot *snapshot);

/* What is so now, and what was counted since the start. */
struct snapshots_measure {
    bool is_ready;
    uint64_t age_ns; /* of the current one, its time on disk before included; 0: none */
    uint64_t uses;   /* executions that began from it since it came into use */
    uint64_t made;
    uint64_t failed; /* tries to make one */
};

void snapshots_measure(struct snapshots *s, struct snapshots_measure *ret);

/*
 * The digest of a memory file: SHA-256 over every page that is not all zero, as its u64le
 * number and its 4096 bytes, in order, and last the u64le size of the file. Holes are not read.
 * 0 or -errno (-EINVAL: the size is no multiple of 4096).
 */
int snapshots_digest_memory(int fd, char ret_hex[SNAPSHOT_KEY_SIZE]);

#endif
