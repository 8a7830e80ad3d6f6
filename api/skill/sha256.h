/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC of it by libcrypto, so that its types stay in one file.
 */
#ifndef SKILLVM_API_SKILL_SHA256_H
#define SKILLVM_API_SKILL_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32u
#define SHA256_HEX_SIZE 65u /* with its NUL */

struct sha256;

/* A new computation, or NULL without memory. */
struct sha256 *sha256_create(void);
/* Adds len bytes. */
void sha256_update(struct sha256 *sha, const void *data, size_t len);
/* The digest of everything added, as lower-case hex. Nothing may be added after it. */
void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_SIZE]);
/* NULL is fine. */
void sha256_destroy(struct sha256 *sha);

/* The digest of one buffer. 0 or -ENOMEM. */
int sha256_of(const void *data, size_t len, char ret_hex[SHA256_HEX_SIZE]);
/* HMAC (RFC 2104) of one buffer under a key, as lower-case hex. 0 or -ENOMEM. */
int sha256_hmac(const void *key, size_t key_len, const void *data, size_t len,
                char ret_hex[SHA256_HEX_SIZE]);
/* Compares two in hex, in a time that does not depend on where they differ. */
bool sha256_same(const char a[SHA256_HEX_SIZE], const char b[SHA256_HEX_SIZE]);
/* Whether text begins with one in hex, after which no digit comes. */
bool sha256_leads(const char *text);
/* The digest of a whole file, read by pread from offset 0. 0 or -errno. */
int sha256_of_fd(int fd, char ret_hex[SHA256_HEX_SIZE]);

#endif
