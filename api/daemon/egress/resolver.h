/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names looked up in the DNS without waiting, by c-ares. What comes back is a stranger's:
 * nothing here says whether an address may be used.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_RESOLVER_H
#define SKILLVM_API_DAEMON_EGRESS_RESOLVER_H

#include "base/err.h"
#include "base/ip_address.h"

#include <stddef.h>
#include <stdint.h>

/* A name that has more is nobody's honest name. */
#define LOOKUP_ADDRESSES_MAX 32u

struct lookup;

/*
 * A lookup is over: with all addresses, -ENOENT for no such name, -E2BIG where it has too many,
 * or -EIO where nobody knows.
 */
typedef void lookup_done(void *ctx, unsigned key, int result, const union ip_address *found,
                         size_t n);

/* keys: how many there are. NULL with the reason. */
struct lookup *lookup_create(const char *servers, unsigned keys, lookup_done *done, void *ctx,
                             struct err *err);
/* done is not called any more. NULL is fine. */
void lookup_destroy(struct lookup *l);
/* Begins one; done may be called at once. No other with this key may be under way. */
void lookup_start(struct lookup *l, unsigned key, const char *name);
/* Readable when lookup_work is due. */
int lookup_fd(const struct lookup *l);
/* When it is due in any case; UINT64_MAX: nothing is under way. */
uint64_t lookup_deadline_ns(const struct lookup *l);
void lookup_work(struct lookup *l);

#endif
