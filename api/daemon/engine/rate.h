/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a tenant may begin an execution: one token bucket per tenant, which holds a
 * minute's worth and starts full. So a client may spend its minute at once, and over any
 * stretch of t minutes a tenant gets at most (t + 1) times its rate. Time is the caller's
 * (monotonic).
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RATE_H
#define SKILLVM_API_DAEMON_ENGINE_RATE_H

#include <stdint.h>

#define RATE_MAX_PER_MINUTE 1000000u

struct rate;

/* NULL without memory. */
struct rate *rate_create(void);
/* NULL is fine. */
void rate_destroy(struct rate *rate);

/*
 * Takes a token of a tenant's. 0; or how many nanoseconds later there will be one. A rate of 0
 * is no limit, one past RATE_MAX_PER_MINUTE counts as that; the rate may be another at each
 * call, and what was saved under a higher one is cut. -ENOMEM. From any thread.
 */
int64_t rate_take(struct rate *rate, const char *tenant, unsigned per_minute, uint64_t now_ns);
/*
 * Other nodes took n tokens of a tenant's: as many are gone here, as far as there are some. At
 * other times as above. From any thread.
 */
void rate_charge(struct rate *rate, const char *tenant, unsigned per_minute, uint64_t n,
                 uint64_t now_ns);
/*
 * Calls visit for every tenant that rate_take gave tokens and that has not got all of them back
 * since: with how many that were since it last had. It must not use the buckets.
 */
void rate_each(struct rate *rate, uint64_t now_ns,
               void (*visit)(void *ctx, const char *tenant, uint64_t taken), void *ctx);

#endif
