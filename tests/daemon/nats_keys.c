/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_keys.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define RAW       32u
#define TEXT_SIZE 80u   /* of a key as text */
#define JWT_SIZE  2048u /* more than the longest of these */

/* What a key is of, as the first letter of its text says: O, A, U. */
enum kind { OPERATOR = 14 << 3, ACCOUNT = 0, USER = 20 << 3, SEED = 18 << 3 };

struct key {
    EVP_PKEY *pair;
    enum kind kind;
    char name[TEXT_SIZE]; /* the public one */
};

/* CRC-16 of XMODEM. */
static unsigned checksum(const unsigned char *data, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000u ? (crc << 1) ^ 0x1021u : crc << 1;
        crc &= 0xffffu;
    }
    return crc;
}

/* Base 32 of n bytes and their checksum, without padding. */
static void write_key(unsigned char *data, size_t n, char *ret)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned crc = checksum(data, n), bits = 0, held = 0;
    size_t len = 0;

    data[n] = (unsigned char)(crc & 0xffu);
    data[n + 1] = (unsigned char)(crc >> 8);
    for (size_t i = 0; i < n + 2; i++) {
        held = held << 8 | data[i];
        for (bits += 8; bits >= 5; bits -= 5)
            ret[len++] = digits[held >> (bits - 5) & 31u];
        held &= 31u;
    }
    if (bits > 0)
        ret[len++] = digits[held << (5 - bits) & 31u];
    ret[len] = '\0';
}

static struct key make_key(enum kind kind)
{
    struct key key = {.pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), .kind = kind};
    unsigned char data[1 + RAW + 2] = {(unsigned char)kind};
    size_t len = RAW;

    assert_non_null(key.pair);
    assert_int_equal(EVP_PKEY_get_raw_public_key(key.pair, data + 1, &len), 1);
    write_key(data, 1 + RAW, key.name);
    return key;
}

static void write_seed(const struct key *key, char ret[TEXT_SIZE])
{
    unsigned char data[2 + RAW + 2] = {(unsigned char)(SEED | key->kind >> 5),
                                       (unsigned char)((key->kind & 31) << 3)};
    size_t len = RAW;

    assert_int_equal(EVP_PKEY_get_raw_private_key(key->pair, data + 2, &len), 1);
    write_key(data, 2 + RAW, ret);
}

/* Appends base64url without padding. */
static void append_base64(char *text, const void *data, size_t len)
{
    char *end = text + strlen(text);

    (void)EVP_EncodeBlock((unsigned char *)end, data, (int)len);
    for (char *c = end; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    end[strcspn(end, "=")] = '\0';
}

/* What issuer says of subject, signed. more: the members of "nats". */
static void write_jwt(const struct key *issuer, const struct key *subject, const char *more,
                      char ret[JWT_SIZE])
{
    static const char head[] = "{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}";
    unsigned char signature[64];
    size_t len = sizeof(signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    char claims[1024];

    snprintf(claims, sizeof(claims),
             "{\"jti\":\"X\",\"iat\":1,\"iss\":\"%s\",\"name\":\"test\",\"sub\":\"%s\","
             "\"nats\":{%s,\"version\":2}}",
             issuer->name, subject->name, more);
    ret[0] = '\0';
    append_base64(ret, head, sizeof(head) - 1);
    strcat(ret, ".");
    append_base64(ret, claims, strlen(claims));
    assert_non_null(context);
    assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, issuer->pair), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &len, (const unsigned char *)ret, strlen(ret)), 1);
    EVP_MD_CTX_free(context);
    strcat(ret, ".");
    append_base64(ret, signature, len);
}

/* What an account may, and then: with JetStream, or nothing. */
#define LIMITS                                                                                 \
    "\"type\":\"account\",\"limits\":{\"subs\":-1,\"data\":-1,\"payload\":-1,"                 \
    "\"imports\":-1,\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1"
#define JETSTREAM ",\"mem_storage\":-1,\"disk_storage\":-1,\"streams\":-1,\"consumer\":-1"

void nats_keys_make(char *ret_settings, size_t settings_size, char *ret_credentials,
                    size_t credentials_size)
{
    struct key issuer = make_key(OPERATOR), account = make_key(ACCOUNT);
    struct key system = make_key(ACCOUNT), user = make_key(USER);
    char of_issuer[JWT_SIZE], of_account[JWT_SIZE], of_system[JWT_SIZE], of_user[JWT_SIZE];
    char seed[TEXT_SIZE];

    write_jwt(&issuer, &issuer, "\"type\":\"operator\"", of_issuer);
    write_jwt(&issuer, &account, LIMITS JETSTREAM "}", of_account);
    /* With an operator JetStream does not start without this one, which must not have it. */
    write_jwt(&issuer, &system, LIMITS "}", of_system);
    write_jwt(&account, &user,
              "\"type\":\"user\",\"pub\":{},\"sub\":{},\"subs\":-1,\"data\":-1,\"payload\":-1",
              of_user);
    write_seed(&user, seed);
    snprintf(ret_settings, settings_size,
             "operator: %s\nresolver: MEMORY\nsystem_account: %s\n"
             "resolver_preload: { %s: %s, %s: %s }\n",
             of_issuer, system.name, account.name, of_account, system.name, of_system);
    snprintf(ret_credentials, credentials_size,
             "-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n"
             "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n",
             of_user, seed);
    EVP_PKEY_free(issuer.pair);
    EVP_PKEY_free(account.pair);
    EVP_PKEY_free(system.pair);
    EVP_PKEY_free(user.pair);
}
