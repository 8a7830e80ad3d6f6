/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon holds for tenants for a moment: bodies that come, what archives unpack to,
 * answers that are taken slowly. It counts against a tenant's storage like what is kept, and
 * stops at the watermarks.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_HELD_H
#define SKILLVM_API_DAEMON_CALLERS_HELD_H

#include "api/daemon/http/http.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/watermarks.h"

#include <stdbool.h>
#include <stdint.h>

struct held;

#define HELD_RETRY_S 5u /* where disk or memory is short */

/* NULL without memory. Borrows what it asks for tenants and for room. */
struct held *held_create(struct registry *registry, struct watermarks *watermarks);
/* NULL is fine. */
void held_destroy(struct held *held);

/*
 * Counts so many bytes more as held for a tenant; answers count for bodies too, and have a
 * bound of their own. 0; -EDQUOT where that would be more than max
 * of bodies and answers, or of answers, of which one is always held; -ENOMEM. *ret_held is what
 * was held before. Safe from any thread.
 */
int held_add(struct held *held, const char *tenant, enum http_held what, uint64_t bytes,
             uint64_t max, uint64_t *ret_held);
/* Gives back what was added. ctx is a struct held. */
http_release_fn held_remove;

/*
 * Whether something new may be accepted that takes so many bytes of disk, 0 where that is not
 * known: false with a 503 and Retry-After in *reply when disk space or memory is below its
 * watermark, or would be.
 */
bool held_admit(struct held *held, uint64_t bytes, struct http_reply *reply);

/* For the server, with a struct held as ctx: the same for a body that comes, and to hold it. */
http_room_fn held_has_room;
http_hold_fn held_for_http;

#endif
