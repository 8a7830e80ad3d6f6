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
    pthread_mutex_t lock; /* for all below */
    char seats[];         /* SEATS of a key, "" where nobody sits, and its value */
};

struct memo *memo_create(size_t value_bytes)
{
    struct memo *memo = calloc(1, sizeof(*memo) + SEATS * (MEMO_KEY_SIZE + value_bytes));

    if (!memo)
        return NULL;
    memo->value_bytes = value_bytes;
    (void)pthread_mutex_init(&memo->lock, NULL);
    return memo;
}

void memo_destroy(struct memo *memo)
{
    if (!memo)
        return;
    (void)pthread_mutex_destroy(&memo->lock);
    free(memo);
}

static char *seat_of(struct memo *memo, const char *key)
{
    const char first[] = {key[0], key[1], key[2], '\0'};

    return memo->seats + strtoul(first, NULL, 16) % SEATS * (MEMO_KEY_SIZE + memo->value_bytes);
}

bool memo_recall(struct memo *memo, const char *key, void *ret_value)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&memo->lock);
    const char *seat = seat_of(memo, key);

    if (strcmp(seat, key) != 0)
        return false;
    memcpy(ret_value, seat + MEMO_KEY_SIZE, memo->value_bytes);
    return true;
}

void memo_keep(struct memo *memo, const char *key, const void *value)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&memo->lock);
    char *seat = seat_of(memo, key);

    (void)snprintf(seat, MEMO_KEY_SIZE, "%s", key);
    memcpy(seat + MEMO_KEY_SIZE, value, memo->value_bytes);
}
