/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon holds for tenants for a moment: bodies that come, answers that are taken
 * slowly. It counts against a tenant's storage like what is kept, and stops at the watermarks.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_HELD_H
#define SKILLVM_API_DAEMON_CALLERS_HELD_H

#include "api/daemon/http/http.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/watermarks.h"

#include <stdbool.h>
#include <stdint.h>

struct held;

enum held_kind {
    HELD_BODY,
    HELD_ANSWER, /* counts for bodies too, and has a bound of its own */
};
#define HELD_KINDS (HELD_ANSWER + 1)

#define HELD_RETRY_S 5u /* where disk or memory is short */

/* NULL without memory. Borrows what it asks for tenants and for room. */
struct held *held_create(struct registry *registry, struct watermarks *watermarks);
/* NULL is fine. */
void held_destroy(struct held *held);

/*
 * Counts so many bytes more as held for a tenant. 0; -EDQUOT where that would be more than max
 * of bodies and answers, or of answers, of which one is always held; -ENOMEM. *ret_held is what
 * was held before. Safe from any thread.
 */
int held_add(struct held *held, const char *tenant, enum held_kind kind, uint64_t bytes,
             uint64_t max, uint64_t *ret_held);
/* Gives back what was added. */
void held_remove(struct held *held, const char *tenant, enum held_kind kind, uint64_t bytes);

/*
 * Whether something new may be accepted that takes so many bytes of disk, 0 where that is not
 * known: false with a 503 and Retry-After in *reply when disk space or memory is below its
 * watermark, or would be.
 */
bool held_admit(struct held *held, uint64_t bytes, struct http_reply *reply);

/* What an http_hold_fn and an http_release_fn do. */
enum http_place held_for_http(struct held *held, const char *tenant, enum http_held what,
                              uint64_t bytes, struct http_reply *reply);
void held_release_http(struct held *held, const char *tenant, enum http_held what,
                       uint64_t bytes);

#endif
