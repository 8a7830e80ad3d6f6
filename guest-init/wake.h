/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes this restored machine differ from every other one of the same snapshot: its wall
 * clock and its kernel random numbers. It must never let anything of the user's run before it.
 */
#ifndef SKILLVM_GUEST_WAKE_H
#define SKILLVM_GUEST_WAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "guest-init/proto.h"

struct wake {
    uint64_t realtime_ns; /* since the epoch */
    uint8_t entropy[PROTO_ENTROPY_SIZE];
};

/* Decodes WAKE. 0 or -EPROTO with err set. */
int wake_decode(const void *data, size_t len, struct wake *ret_wake, struct err *err);
/* Sets the clock, mixes the entropy in and reseeds the kernel. Needs root. 0 or -errno. */
int wake_apply(const struct wake *wake, struct err *err);

#endif
