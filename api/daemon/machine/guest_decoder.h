/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames from a guest, which is hostile from its first byte (guest-init/proto.h): bytes in,
 * checked frames out, in the one order the protocol knows. No I/O, no clock, no allocation, so
 * that it is tested and fuzzed as it runs.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_GUEST_DECODER_H
#define SKILLVM_API_DAEMON_MACHINE_GUEST_DECODER_H

#include "api/daemon/egress/egress.h"
#include "base/err.h"
#include "guest-init/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guest_stage {
    GUEST_CONNECTING, /* READY is due */
    GUEST_INJECTING,  /* STARTED is due, once the host has sent everything */
    GUEST_RUNNING,    /* STDOUT, STDERR or EXIT */
    GUEST_OUTPUT,     /* OUTPUT until its empty frame */
    GUEST_FILES,      /* FILES until its empty frame */
    GUEST_SESSION,    /* SESSION until its empty frame, where SESSION_IN was sent */
    GUEST_ENDING,     /* DONE is due */
    GUEST_DONE,       /* nothing is */
    GUEST_FAILED,     /* FAIL came */
};

enum guest_stream { GUEST_STDOUT, GUEST_STDERR };

struct guest_exit {
    uint32_t code;
    uint32_t signal;
    uint32_t flags;       /* enum proto_exit_flag */
    uint32_t not_started; /* processes and threads, for their number's limit */
    uint64_t user_us;
    uint64_t system_us;
    uint64_t peak_memory_bytes;
};

/*
 * Where what a guest gives goes. A member that is NULL lets it go; a negative result of one
 * that returns any ends the session with that error.
 */
struct guest_sink {
    void *ctx;
    int (*log)(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
               struct err *err);
    int (*output)(void *ctx, const uint8_t *data, size_t len, struct err *err);
    int (*files)(void *ctx, const uint8_t *data, size_t len, struct err *err);
    int (*session)(void *ctx, const uint8_t *data, size_t len, struct err *err);
    /* The stage changed; the session's to call, the decoder only returns. */
    void (*stage)(void *ctx, enum guest_stage stage);
    struct egress *egress; /* its connections, which the session works on; NULL: it has none */
};

struct guest_decoder_limits {
    uint64_t output_bytes;  /* of all OUTPUT frames */
    uint64_t files_bytes;   /* of all FILES frames: content and tar headers */
    uint64_t session_bytes; /* the same of SESSION */
};

struct guest_decoder {
    struct guest_decoder_limits limits;
    enum guest_stage stage;
    struct guest_exit exit; /* from GUEST_OUTPUT on */
    bool injected;    /* who feeds it has sent RUN and all that follows: STARTED may come */
    bool has_session; /* RUN says so: SESSION comes after FILES */
    bool warming;     /* who feeds it has sent WARM, and WARMED has not come */
    uint8_t header[PROTO_HEADER_SIZE];
    size_t header_len;
    uint32_t payload_len;
    uint32_t payload_have;
    uint64_t output_seen;
    uint64_t files_seen;
    uint64_t session_seen;
    uint64_t seen;                    /* of all three together */
    uint8_t payload[PROTO_CHUNK_MAX]; /* last: only payload_have bytes are ever set */
};

/* Starts in GUEST_CONNECTING. */
void guest_decoder_init(struct guest_decoder *d, const struct guest_decoder_limits *limits);

/*
 * Takes bytes of the stream, any amount, until there are no more or the stage changes:
 * *ret_used says how many. 0; -EPROTO when the guest broke the protocol; -EREMOTEIO when it
 * sent FAIL, whose text (made printable) is the message; or what the sink returned. After a
 * failure nothing more may be fed.
 */
int guest_decoder_feed(struct guest_decoder *d, const uint8_t *data, size_t len,
                       const struct guest_sink *sink, size_t *ret_used, struct err *err);

#endif
