/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/memo.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEATS 1024u

struct memo {
    size_t value_bytes;
    pthread_mutex_t lock;        /* for all below */
    char (*keys)[MEMO_KEY_SIZE]; /* "": nobody sits here */
    unsigned char *values;
};

struct memo *memo_create(size_t value_bytes)
{
    struct memo *memo = calloc(1, sizeof(*memo));

    if (!memo)
        return NULL;
    memo->value_bytes = value_bytes;
    (void)pthread_mutex_init(&memo->lock, NULL);
    memo->keys = calloc(SEATS, sizeof(*memo->keys));
    memo->values = calloc(SEATS, value_bytes);
    if (memo->keys && memo->values)
        return memo;
    memo_destroy(memo);
    return NULL;
}

void memo_destroy(struct memo *memo)
{
    if (!memo)
        return;
    (void)pthread_mutex_destroy(&memo->lock);
    free(memo->keys);
    free(memo->values);
    free(memo);
}

static size_t seat_of(const char *key)
{
    const char first[] = {key[0], key[1], key[2], '\0'};

    return strtoul(first, NULL, 16) % SEATS;
}

bool memo_recall(struct memo *memo, const char *key, void *ret_value)
{
    size_t seat = seat_of(key);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&memo->lock);

    if (strcmp(memo->keys[seat], key) != 0)
        return false;
    memcpy(ret_value, memo->values + seat * memo->value_bytes, memo->value_bytes);
    return true;
}

void memo_keep(struct memo *memo, const char *key, const void *value)
{
    size_t seat = seat_of(key);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&memo->lock);

    (void)snprintf(memo->keys[seat], sizeof(memo->keys[seat]), "%s", key);
    memcpy(memo->values + seat * memo->value_bytes, value, memo->value_bytes);
}
