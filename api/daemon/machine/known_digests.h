/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of files, remembered by what tells that a file is still the one that was read: its
 * device, inode and size, and to the nanosecond when it was changed last. So that a start need
 * not read kernel, image and snapshot again. docs/security.md says what that can miss.
 *
 * Never remembers one of a file that changed within the last second, whose next change might
 * not show, nor of one whose times say nothing. Never reads what others could have written.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_KNOWN_DIGESTS_H
#define SKILLVM_API_DAEMON_MACHINE_KNOWN_DIGESTS_H

#include "api/skill/sha256.h"

#include <stddef.h>

#define KNOWN_DIGESTS_MAX     256u
#define KNOWN_DIGESTS_ID_SIZE 192u
#define KNOWN_DIGESTS_FILE    ".digests"

struct known_digest {
    char id[KNOWN_DIGESTS_ID_SIZE]; /* of the file, and of the way of digesting it */
    char hex[SHA256_HEX_SIZE];
};

/* For one thread at a time. */
struct known_digests {
    int dir_fd; /* borrowed: the folder with their file */
    size_t n;
    struct known_digest items[KNOWN_DIGESTS_MAX]; /* asked for last: the last */
};

/* A way of digesting a file. */
struct digest_way {
    const char *name; /* a word */
    /*
     * Names the content of the image that the file lies in, where that has no times of its own;
     * a word, or NULL.
     */
    const char *image;
    int (*compute)(int fd, char ret_hex[SHA256_HEX_SIZE]); /* 0 or -errno */
};

/* Reads what is known; a file that is not there, or is not to be trusted, is none. */
void known_digests_open(struct known_digests *known, int dir_fd);
/*
 * The digest of an open file, as it is known or as the way finds it, which is then remembered
 * if it can be, in place of the one not asked for since then the longest. known NULL: nothing
 * is. 0 or -errno.
 */
int known_digests_of(struct known_digests *known, int fd, const struct digest_way *way,
                     char ret_hex[SHA256_HEX_SIZE]);

#endif
