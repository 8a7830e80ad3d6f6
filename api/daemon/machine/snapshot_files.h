/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot on disk: a folder with manifest.json, state, memory and perhaps working-set,
 * written under a temporary name, fsynced and renamed; and the checks before one is used. Only
 * snapshots.c calls this.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SNAPSHOT_FILES_H
#define SKILLVM_API_DAEMON_MACHINE_SNAPSHOT_FILES_H

#include "api/daemon/machine/known_digests.h"
#include "api/daemon/machine/snapshots.h"
#include "api/skill/sha256.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_SCHEMA           3
#define SNAPSHOT_FINGERPRINT_SIZE 4096u

/* Everything that shapes a snapshot. */
struct snapshot_inputs {
    char kernel[SHA256_HEX_SIZE];
    char image[SHA256_HEX_SIZE];
    char vmm[SHA256_HEX_SIZE]; /* of the program file: it defines the state format */
    char fingerprint[SNAPSHOT_FINGERPRINT_SIZE];
    uint32_t memory_mib;
    struct snapshot_name name;
};

/*
 * Opens and digests a file; what is its name in a message, and image is as of struct
 * digest_way. 0 with *ret_fd, or -errno.
 */
int snapshot_input_open(const char *path, const char *what, const char *image,
                        struct known_digests *known, char ret_digest[SHA256_HEX_SIZE],
                        int *ret_fd, struct err *err);
/* The key: the digest of all inputs. 0 or -ENOMEM. */
int snapshot_inputs_key(const struct snapshot_inputs *inputs, char ret_key[SHA256_HEX_SIZE]);

/* Writes and fsyncs manifest.json in a folder. 0 or -errno. */
int snapshot_manifest_write(int dir_fd, const char *key, const struct snapshot_inputs *inputs,
                            const struct snapshot_contents *contents, struct err *err);
/*
 * Reads manifest.json and compares it with the inputs that are now. 0, or -EINVAL with what
 * does not match.
 */
int snapshot_manifest_check(int dir_fd, const char *key, const struct snapshot_inputs *inputs,
                            struct snapshot_contents *ret, struct err *err);

extern const struct vm_files snapshot_no_files; /* all are -1 */

/*
 * Opens the files in a folder; working-set only where with_working_set says that there is one.
 * 0 with *ret, which the caller closes, or -errno.
 */
int snapshot_files_open(int dir_fd, int flags, bool with_working_set, struct vm_files *ret,
                        struct err *err);
void snapshot_files_close(struct vm_files *files);

/*
 * Compares open files with what the manifest says. What is not known is read, and is known from
 * then on where it can be. 0, -EINVAL or -errno.
 */
int snapshot_contents_check(const struct vm_files *files, struct known_digests *known,
                            const struct snapshot_contents *contents, struct err *err);
/* Fills *ret from open files, fsyncing them. boot_ms is left alone. 0 or -errno. */
int snapshot_contents_seal(const struct vm_files *files, struct known_digests *known,
                           struct snapshot_contents *ret, struct err *err);
/*
 * Removes the snapshots that is_wanted does not say to keep, which gets the key and the name
 * that a folder has; one whose manifest tells none goes unasked.
 */
void snapshot_remove_others(int parent_fd,
                            bool (*is_wanted)(void *ctx, const char *key,
                                              const struct snapshot_name *name),
                            void *ctx);
/* Logs the end of a folder's boot log, so that a boot that failed can be understood. */
void snapshot_log_console(int dir_fd);

#endif
