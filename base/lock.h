/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex that is held until the end of a block, whichever way leads out of it. */
#ifndef SKILLVM_BASE_LOCK_H
#define SKILLVM_BASE_LOCK_H

#include <pthread.h>

/* Waits for the mutex. To be kept in a _cleanup_lock_ variable, not where the lock outlives the
 * call. */
static inline pthread_mutex_t *lock_hold(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex);
    return mutex;
}

/* For _cleanup_lock_. */
static inline void lock_release(pthread_mutex_t **held)
{
    (void)pthread_mutex_unlock(*held);
}
/* Most who hold one never name it again, which clang would say of each. */
#define _cleanup_lock_ __attribute__((cleanup(lock_release), unused))

#endif
