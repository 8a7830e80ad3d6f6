/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a tar, made and read: ustar headers and pax records (POSIX.1-2017, pax, "ustar
 * Interchange Format"). No streams, no files and no limits: those are of who uses it.
 */
#ifndef SKILLVM_BASE_TAR_BLOCK_H
#define SKILLVM_BASE_TAR_BLOCK_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK     512u
#define TAR_TRAILER   (2u * TAR_BLOCK)
#define TAR_SIZE_MAX  077777777777ull /* that a header can hold, and as much of a time */
#define TAR_NAME_MAX  100u            /* of a header, in bytes, without a NUL */
#define TAR_NAME_SIZE 257u            /* of prefix, slash and name, with a NUL */

/* A header as it lies in the stream. */
struct tar_block {
    char name[TAR_NAME_MAX];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char target[TAR_NAME_MAX];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char devmajor[8];
    char devminor[8];
    char prefix[155];
    char pad[12];
};

/* What it says beside names. */
struct tar_numbers {
    uint64_t size;
    uint64_t mtime_s; /* since the epoch */
    uint32_t mode;    /* permissions */
};

/*
 * Makes a header of owner 0. name and target, "" for none, are TAR_NAME_MAX bytes at most;
 * numbers are cut to what fits.
 */
void tar_block_make(struct tar_block *ret, char type, const char *name, const char *target,
                    const struct tar_numbers *numbers);
/* 0; -EBADMSG: the checksum is wrong; -EINVAL: a number is none. */
int tar_block_read(const struct tar_block *block, struct tar_numbers *ret);
/* True for one of the two that end a stream. */
bool tar_block_is_zero(const struct tar_block *block);
/* Prefix and name. */
void tar_block_path(const struct tar_block *block, char ret[TAR_NAME_SIZE]);
/* The zero bytes (0 to 511) that follow a content of size bytes. */
size_t tar_padding(uint64_t size);

/* A record of a pax header. Borrowed from its content, without NULs behind. */
struct tar_pax {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
};

/* Appends a record. 0, -E2BIG or -ENOMEM. */
int tar_pax_append(struct buf *out, const char *key, const char *value);
/* Takes the next record off the len bytes at *at. 1; 0: there is none; -EINVAL. */
int tar_pax_next(const char **at, size_t *len, struct tar_pax *ret);
bool tar_pax_is(const struct tar_pax *record, const char *key);
/* The value as a decimal number. 0 or -EINVAL. */
int tar_pax_number(const struct tar_pax *record, uint64_t *ret);

#endif
