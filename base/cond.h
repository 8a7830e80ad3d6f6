/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Condition variables whose waits end at a time of CLOCK_MONOTONIC. The default,
 * CLOCK_REALTIME, jumps when somebody sets the clock.
 */
#ifndef SKILLVM_BASE_COND_H
#define SKILLVM_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes one for cond_wait_until; pthread_cond_destroy ends it. */
void cond_init(pthread_cond_t *cond);

/*
 * Waits with the mutex held, as pthread_cond_wait, until deadline_ns at most. False once that
 * has passed. May return true for no reason.
 */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline_ns);

#endif
