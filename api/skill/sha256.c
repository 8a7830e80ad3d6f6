/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/sha256.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(struct sha256 *, sha256_destroy)

struct sha256 {
    EVP_MD_CTX *ctx;
};

struct sha256 *sha256_create(void)
{
    struct sha256 *sha = calloc(1, sizeof(*sha));

    if (!sha)
        return NULL;
    sha->ctx = EVP_MD_CTX_new();
    if (!sha->ctx || EVP_DigestInit_ex(sha->ctx, EVP_sha256(), NULL) != 1) {
        sha256_destroy(sha);
        return NULL;
    }
    return sha;
}

void sha256_update(struct sha256 *sha, const void *data, size_t len)
{
    EVP_DigestUpdate(sha->ctx, data, len);
}

static const char digits[] = "0123456789abcdef";

bool sha256_leads(const char *text)
{
    return strspn(text, digits) == SHA256_HEX_SIZE - 1;
}

static void write_hex(const unsigned char *digest, char ret_hex[SHA256_HEX_SIZE])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        ret_hex[2 * i] = digits[digest[i] >> 4];
        ret_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hex[2 * SHA256_SIZE] = '\0';
}

void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};

    EVP_DigestFinal_ex(sha->ctx, digest, NULL);
    write_hex(digest, ret_hex);
}

void sha256_destroy(struct sha256 *sha)
{
    if (!sha)
        return;
    EVP_MD_CTX_free(sha->ctx);
    free(sha);
}

int sha256_of(const void *data, size_t len, char ret_hex[SHA256_HEX_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};

    if (EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL) != 1)
        return -ENOMEM;
    write_hex(digest, ret_hex);
    return 0;
}

int sha256_hmac(const void *key, size_t key_len, const void *data, size_t len,
                char ret_hex[SHA256_HEX_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};

    if (!HMAC(EVP_sha256(), key, (int)key_len, data, len, digest, NULL))
        return -ENOMEM;
    write_hex(digest, ret_hex);
    return 0;
}

bool sha256_same(const char a[SHA256_HEX_SIZE], const char b[SHA256_HEX_SIZE])
{
    return CRYPTO_memcmp(a, b, SHA256_HEX_SIZE) == 0;
}

int sha256_of_fd(int fd, char ret_hex[SHA256_HEX_SIZE])
{
    enum { CHUNK = 256 * 1024 };
    _cleanup_(sha256_destroy) struct sha256 *sha = sha256_create();
    _cleanup_free_ char *chunk = malloc(CHUNK);
    ssize_t n;

    if (!sha || !chunk)
        return -ENOMEM;
    for (uint64_t at = 0; (n = fd_pread_full(fd, chunk, CHUNK, at)) > 0; at += (uint64_t)n)
        sha256_update(sha, chunk, (size_t)n);
    if (n == 0)
        sha256_hex(sha, ret_hex);
    return (int)n;
}
