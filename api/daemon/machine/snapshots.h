/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshots that executions start from: each found by the key of everything that shaped it,
 * checked against its digests, or made anew by booting a guest once. Making and checking happen
 * in a thread of its own. A snapshot that does not match is refused with the reason and
 * replaced, never used; who has one keeps it when another takes its place.
 *
 * The plain one of each scope and image is what executions wait for. One with the modules of a
 * profile, or with packages that would take long to send to each machine, is made in the
 * background where it was asked for, and until it is there the plain one does. Those but the
 * common plain one are bounded in number and in bytes: the one that was not asked for the
 * longest gives way.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_H
#define SKILLVM_API_DAEMON_MACHINE_SNAPSHOTS_H

#include "api/daemon/config/config.h"
#include "api/daemon/machine/image_tables.h"
#include "api/daemon/machine/renewal.h"
#include "api/daemon/machine/vm.h"
#include "api/daemon/machine/warmup.h"
#include "api/skill/profile.h"
#include "api/skill/sha256.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_KEY_SIZE   65u
#define SNAPSHOT_SCOPE_SIZE 64u
/* The common plain one, and the most that may be kept beside it. */
#define SNAPSHOTS_KEPT_MAX   64u
#define SNAPSHOTS_PLACES_MAX (1u + SNAPSHOTS_KEPT_MAX)

struct snapshots;

/* Which one: snapshots of two names never share a page that was written. */
struct snapshot_name {
    char scope[SNAPSHOT_SCOPE_SIZE];    /* who may use it, an opaque word; "": everybody */
    char image[IMAGE_NAME_SIZE];        /* "": the usual one */
    char image_digest[SHA256_HEX_SIZE]; /* which one of that name; "": that of now */
    char profile[PROFILE_NAME_SIZE];    /* the modules that it holds; "": the image's own */
    char packages[SNAPSHOT_KEY_SIZE];   /* the packages that it holds, by digest; "": none */
};

/* Has it be of the image of a place. */
void snapshot_name_image(struct snapshot_name *name, const struct images *images,
                         unsigned place);
/* Whether it holds no more than the image does. */
bool snapshot_name_is_plain(const struct snapshot_name *name);

/* The same for all who call their images alike; usual: what the one that goes by "" is called.
 */
uint64_t snapshot_name_hash(const struct snapshot_name *name, const char *usual);
/* Whether it is the one that is there wherever machines start. */
bool snapshot_name_is_common(const struct snapshot_name *name);

/* Borrowed for the life of the snapshots. */
struct snapshots_config {
    struct jail *jail;       /* what starts machines */
    const char *vmm_program; /* what is one: it shapes snapshots, and knows the processor */
    const char *kernel_path;
    struct image_tables *images;
    const char *share_image; /* names the image that those are in; NULL: they are in none */
    int snapshots_fd;        /* directory */
    int tmp_fd;              /* directory */
    uint32_t memory_mib;
    uint64_t boot_timeout_ms;
    uint64_t grace_ms; /* of the run that shows which pages a run uses */
    uint64_t retry_ms; /* after a failure; doubled with each, where there is a snapshot */
    struct config_snapshots limits; /* may change while the daemon runs */
    /* Opens the tar of packages of a digest: the descriptor or -errno. NULL: there are none. */
    int (*open_packages)(void *ctx, const char *digest, struct err *err);
    void *ctx;
};

/* What a manifest says besides its inputs. */
struct snapshot_contents {
    struct {
        uint64_t bytes;               /* 0: there is none */
        char digest[SHA256_HEX_SIZE]; /* of memory see snapshots_digest_memory */
    } files[VM_FILES];
    uint64_t boot_ms;
    uint64_t made_s; /* when it was written, by the wall clock; the writer ignores it */
};

/* A snapshot that was checked: what a restore needs. Counted references; constant otherwise. */
struct snapshot {
    unsigned references; /* atomic */
    bool is_current;     /* atomic; false for ever once another took its place, or none */
    unsigned place;      /* of its name among all, below SNAPSHOTS_PLACES_MAX */
    char key[SNAPSHOT_KEY_SIZE];
    char profile[PROFILE_NAME_SIZE];
    char packages[SNAPSHOT_KEY_SIZE];
    uint64_t age_ns; /* when it came into use */
    uint64_t disk_bytes;
    enum warmup_kind warmup; /* that its image can run */
    int image_fd;
    struct vm_files files;
    struct snapshot_contents contents; /* what the files have to be */
};

/* NULL is fine. */
void snapshot_unref(struct snapshot *snapshot);
/* Whether machines begin from it now. */
bool snapshot_is_current(const struct snapshot *snapshot);

enum snapshots_state { SNAPSHOTS_PREPARING, SNAPSHOTS_READY, SNAPSHOTS_FAILED };

/* Starts preparing. 0 or -errno. */
int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err);
/* Ends the preparation, waits for its thread, and closes everything. NULL is fine. */
void snapshots_destroy(struct snapshots *s);

/* The state of the common plain one now, with a sentence on what is being done or what went
 * wrong, where that is wanted (size is not 0). */
enum snapshots_state snapshots_get_state(struct snapshots *s, char *text, unsigned size);

/*
 * The snapshot for a job of this name where that is there, else the plain one
 * of its scope and image, for which it waits; cancel_fd (or -1) is looked at about every 100
 * ms. 0 with a reference for the caller; -ECANCELED once it is readable; -ENODEV with the
 * reason when it could not be made; -EBUSY there is no room for another scope.
 */
int snapshots_wait(struct snapshots *s, const struct snapshot_name *name, int cancel_fd,
                   struct snapshot **ret, struct err *err);
/* A job of this name has run: its snapshot is worth making where there is none. */
void snapshots_want(struct snapshots *s, const struct snapshot_name *name);
/* Drops the snapshots that hold packages of this digest, which were deleted. */
void snapshots_forget(struct snapshots *s, const char *packages);
/* Drops the snapshots of images that nobody has any more. */
void snapshots_forget_images(struct snapshots *s);
/* Whether that of a name is there now. */
bool snapshots_have(struct snapshots *s, const struct snapshot_name *name);
/* The hashes of those that are there, but of the common plain one: how many of max. */
size_t snapshots_list(struct snapshots *s, const char *usual, uint64_t *ret, size_t max);
/* A reference to the snapshot of a place without waiting; NULL where there is none now. */
struct snapshot *snapshots_current(struct snapshots *s, unsigned place);

/*
 * New limits, from now on. When they say so snapshots are made anew in the background. Until
 * another is there the old one is used; when none can be made the old one stays and it is tried
 * again, later each time. Of those but the common plain one, one that is due and that nobody
 * asked for since it was made goes instead.
 */
void snapshots_set(struct snapshots *s, const struct config_snapshots *limits);
/* Counts an execution that begins from a snapshot, which may no longer be the current one. */
void snapshots_count_use(struct snapshots *s, const struct snapshot *snapshot);

/* What is so now, and what was counted since the start. */
struct snapshots_measure {
    bool is_ready;   /* the common plain one */
    uint64_t age_ns; /* of that, its time on disk before included; 0: none */
    uint64_t uses;   /* executions that began from it since it came into use */
    unsigned kept;   /* the others that are there */
    uint64_t kept_bytes;
    uint64_t made;
    uint64_t failed;  /* tries to make one */
    uint64_t dropped; /* others that gave way or that nobody asked for */
};

void snapshots_measure(struct snapshots *s, struct snapshots_measure *ret);

/*
 * The digest of a memory file: SHA-256 over every page that is not all zero, as its u64le
 * number and its 4096 bytes, in order, and last the u64le size of the file. Holes are not read.
 * 0 or -errno (-EINVAL: the size is no multiple of 4096).
 */
int snapshots_digest_memory(int fd, char ret_hex[SNAPSHOT_KEY_SIZE]);

#endif
