/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a RUN frame (guest-init/proto.h), one after the other into a buffer.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RUN_PAYLOAD_H
#define SKILLVM_API_DAEMON_ENGINE_RUN_PAYLOAD_H

#include "base/buf.h"
#include "guest-init/proto.h"

#include <stddef.h>
#include <stdint.h>

/* What a run may use and leave. */
struct run_limits {
    uint64_t timeout_ms;
    uint64_t memory_bytes;
    uint32_t pids;
};

/* Each adds one field. 0, -E2BIG or -ENOMEM. */
int run_payload_bytes(struct buf *run, enum proto_field tag, const void *data, size_t len);
int run_payload_text(struct buf *run, enum proto_field tag, const char *text);
/* size: bytes of the number, as proto.h says for the tag. */
int run_payload_number(struct buf *run, enum proto_field tag, uint64_t value, size_t size);
/* Adds these limits and the fixed ones of limits.h. */
int run_payload_limits(struct buf *run, const struct run_limits *limits);

#endif
