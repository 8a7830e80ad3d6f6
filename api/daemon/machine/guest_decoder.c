/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/guest_decoder.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

#define FAIL_TEXT_MAX    1024u
#define EXIT_CODE_MAX    255u
#define EXIT_SIGNAL_MAX  64u
#define EXIT_FLAGS_KNOWN (2u * PROTO_EXIT_MEMORY_FULL - 1)

void guest_decoder_init(struct guest_decoder *d, const struct guest_decoder_limits *limits)
{
    memset(d, 0, offsetof(struct guest_decoder, payload));
    d->limits = *limits;
    d->stage = GUEST_CONNECTING;
}

static int breach(struct err *err, const char *what)
{
    return err_set(err, EPROTO, "the guest broke the protocol: %s", what);
}

/* The stage that a frame of each type is due at, and the sizes of its payload. */
static const struct {
    enum guest_stage stage;
    uint32_t min, max;
} rules[] = {
    [PROTO_READY] = {GUEST_CONNECTING, 4, 4},
    [PROTO_WARMED] = {GUEST_INJECTING, 0, 0},
    [PROTO_STARTED] = {GUEST_INJECTING, 0, 0},
    [PROTO_STDOUT] = {GUEST_RUNNING, 1, PROTO_CHUNK_MAX},
    [PROTO_STDERR] = {GUEST_RUNNING, 1, PROTO_CHUNK_MAX},
    [PROTO_EXIT] = {GUEST_RUNNING, PROTO_EXIT_SIZE, PROTO_EXIT_SIZE},
    [PROTO_OUTPUT] = {GUEST_OUTPUT, 0, PROTO_CHUNK_MAX},
    [PROTO_FILES] = {GUEST_FILES, 0, PROTO_CHUNK_MAX},
    [PROTO_SESSION] = {GUEST_SESSION, 0, PROTO_CHUNK_MAX},
    [PROTO_DONE] = {GUEST_ENDING, 0, 0},
    [PROTO_FAIL] = {GUEST_DONE, 0, FAIL_TEXT_MAX}, /* at any before it */
    [PROTO_NET_ASK] = {GUEST_RUNNING, 3, 2 + PROTO_NET_NAME_MAX},
    [PROTO_NET_OPEN] = {GUEST_RUNNING, 6, 6},
    [PROTO_NET_GUEST_DATA] = {GUEST_RUNNING, 3, 2 + PROTO_NET_DATA_MAX},
    [PROTO_NET_GUEST_ROOM] = {GUEST_RUNNING, 8, 8},
    [PROTO_NET_GUEST_END] = {GUEST_RUNNING, 4, 4},
};

static bool is_due(const struct guest_decoder *d, uint8_t type)
{
    if (type == PROTO_FAIL)
        return d->stage < GUEST_DONE;
    return d->stage == rules[type].stage && (type != PROTO_WARMED || d->warming) &&
           (type != PROTO_STARTED || d->injected);
}

static int check_header(const struct guest_decoder *d, uint8_t type, uint32_t len,
                        struct err *err)
{
    if (type < PROTO_READY || type >= sizeof(rules) / sizeof(rules[0]))
        return err_set(err, EPROTO, "the guest broke the protocol: frame type 0x%02x", type);
    if (!is_due(d, type))
        return err_set(err, EPROTO,
                       "the guest broke the protocol: frame type 0x%02x at stage %d", type,
                       (int)d->stage);
    if (len < rules[type].min || len > rules[type].max)
        return err_set(err, EPROTO,
                       "the guest broke the protocol: frame type 0x%02x with %u bytes", type,
                       len);
    return 0;
}

static int take_exit(struct guest_decoder *d, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(d->payload, d->payload_len);
    struct guest_exit e = {0};

    e.code = bytes_get_u32(&r);
    e.signal = bytes_get_u32(&r);
    e.flags = bytes_get_u32(&r);
    e.not_started = bytes_get_u32(&r);
    e.user_us = bytes_get_u64(&r);
    e.system_us = bytes_get_u64(&r);
    e.peak_memory_bytes = bytes_get_u64(&r);
    (void)bytes_get_u64(&r); /* how long it took, which the host saw */
    if (!bytes_done(&r) || e.code > EXIT_CODE_MAX || e.signal > EXIT_SIGNAL_MAX ||
        (e.code != 0 && e.signal != 0) || (e.flags & ~EXIT_FLAGS_KNOWN))
        return breach(err, "an EXIT that cannot be");
    d->exit = e;
    d->stage = GUEST_OUTPUT;
    return 0;
}

static int take_ready(struct guest_decoder *d, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(d->payload, d->payload_len);
    uint32_t version = bytes_get_u32(&r);

    if (version != PROTO_VERSION)
        return err_set(err, EPROTO, "the guest speaks protocol %u, the host %u", version,
                       PROTO_VERSION);
    d->stage = GUEST_INJECTING;
    return 0;
}

/* A stream of chunks that an empty one ends. */
static int take_chunk(struct guest_decoder *d, uint64_t *seen, uint64_t limit,
                      enum guest_stage next,
                      int (*take)(void *, const uint8_t *, size_t, struct err *), void *ctx,
                      struct err *err)
{
    if (d->payload_len == 0) {
        d->stage = next;
        return 0;
    }
    *seen += d->payload_len;
    if (*seen > limit)
        return breach(err, "more bytes than it was allowed");
    d->seen += d->payload_len;
    return take ? take(ctx, d->payload, d->payload_len, err) : 0;
}

static int take_log(const struct guest_decoder *d, enum guest_stream stream,
                    const struct guest_sink *sink, struct err *err)
{
    return sink->log ? sink->log(sink->ctx, stream, d->payload, d->payload_len, err) : 0;
}

static int take_fail(struct guest_decoder *d, struct err *err)
{
    char text[FAIL_TEXT_MAX + 1];
    bool utf8 = utf8_valid(d->payload, d->payload_len);

    for (uint32_t i = 0; i < d->payload_len; i++) {
        uint8_t c = d->payload[i];
        bool c1 = c >= 0x80 && c < 0xa0 && i > 0 && d->payload[i - 1] == 0xc2;

        if (c < 0x20 || c == 0x7f || (c > 0x7f && !utf8))
            c = '?';
        else if (c == '"')
            c = '\''; /* it will stand between quotes in a log line */
        text[i] = (char)c;
        if (c1) {
            text[i - 1] = '?';
            text[i] = '?';
        }
    }
    text[d->payload_len] = '\0';
    d->stage = GUEST_FAILED;
    return err_set(err, EREMOTEIO, "the guest could not run the skill: %s", text);
}

static int take_frame(struct guest_decoder *d, const struct guest_sink *sink, struct err *err)
{
    switch ((enum proto_type)d->header[4]) {
    case PROTO_READY:
        return take_ready(d, err);
    case PROTO_WARMED:
        d->warming = false;
        return 0;
    case PROTO_STARTED:
        d->stage = GUEST_RUNNING;
        return 0;
    case PROTO_STDOUT:
        return take_log(d, GUEST_STDOUT, sink, err);
    case PROTO_STDERR:
        return take_log(d, GUEST_STDERR, sink, err);
    case PROTO_EXIT:
        return take_exit(d, err);
    case PROTO_OUTPUT:
        return take_chunk(d, &d->output_seen, d->limits.output_bytes, GUEST_FILES, sink->output,
                          sink->ctx, err);
    case PROTO_FILES:
        return take_chunk(d, &d->files_seen, d->limits.files_bytes,
                          d->has_session ? GUEST_SESSION : GUEST_ENDING, sink->files, sink->ctx,
                          err);
    case PROTO_SESSION:
        return take_chunk(d, &d->session_seen, d->limits.session_bytes, GUEST_ENDING,
                          sink->session, sink->ctx, err);
    case PROTO_DONE:
        d->stage = GUEST_DONE;
        return 0;
    case PROTO_FAIL:
        return take_fail(d, err);
    case PROTO_NET_ASK:
    case PROTO_NET_OPEN:
    case PROTO_NET_GUEST_DATA:
    case PROTO_NET_GUEST_ROOM:
    case PROTO_NET_GUEST_END:
        return sink->egress
                   ? egress_take(sink->egress, d->header[4], d->payload, d->payload_len, err)
                   : breach(err, "a connection where it may have none");
    default:
        return breach(err, "an unknown frame");
    }
}

/* Takes what of a header is there; a whole one is checked. */
static int take_header(struct guest_decoder *d, const uint8_t *data, size_t len, size_t *ret_n,
                       struct err *err)
{
    size_t n = PROTO_HEADER_SIZE - d->header_len;
    struct bytes_reader header;

    n = n < len ? n : len;
    memcpy(d->header + d->header_len, data, n);
    d->header_len += n;
    *ret_n = n;
    if (d->header_len < PROTO_HEADER_SIZE)
        return 0;
    header = bytes_reader_init(d->header, PROTO_HEADER_SIZE);
    d->payload_len = bytes_get_u32(&header);
    d->payload_have = 0;
    if (d->header[5] != 0 || d->header[6] != 0 || d->header[7] != 0)
        return breach(err, "reserved header bytes are not zero");
    return check_header(d, d->header[4], d->payload_len, err);
}

int guest_decoder_feed(struct guest_decoder *d, const uint8_t *data, size_t len,
                       const struct guest_sink *sink, size_t *ret_used, struct err *err)
{
    const enum guest_stage stage = d->stage;
    size_t at = 0;

    while (at < len && d->stage == stage) {
        size_t n;
        int r;

        if (d->header_len < PROTO_HEADER_SIZE) {
            r = take_header(d, data + at, len - at, &n, err);
            if (r < 0)
                return r;
            at += n;
            if (d->header_len < PROTO_HEADER_SIZE)
                break;
        }
        n = d->payload_len - d->payload_have;
        n = n < len - at ? n : len - at;
        memcpy(d->payload + d->payload_have, data + at, n);
        d->payload_have += (uint32_t)n;
        at += n;
        if (d->payload_have < d->payload_len)
            break;
        d->header_len = 0;
        r = take_frame(d, sink, err);
        if (r < 0)
            return r;
    }
    *ret_used = at;
    return 0;
}
