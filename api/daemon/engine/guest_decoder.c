/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/guest_decoder.h"

#include "api/json/utf8.h"
#include "base/bytes.h"

#include <errno.h>
#include <string.h>

#define FAIL_TEXT_MAX    1024u
#define EXIT_CODE_MAX    255u
#define EXIT_SIGNAL_MAX  64u
#define EXIT_FLAGS_KNOWN 0x3fu

void guest_decoder_init(struct guest_decoder *d, const struct guest_decoder_limits *limits)
{
    memset(d, 0, offsetof(struct guest_decoder, payload));
    d->limits = *limits;
    d->stage = GUEST_CONNECTING;
}

void guest_decoder_set_injected(struct guest_decoder *d)
{
    d->injected = true;
}

static int breach(struct err *err, const char *what)
{
    return err_set(err, EPROTO, "the guest broke the protocol: %s", what);
}

/* The payload sizes of each type, and whether it may come at this stage. */
static int check_header(const struct guest_decoder *d, uint8_t type, uint32_t len,
                        struct err *err)
{
    uint32_t min = 0, max = 0;
    bool due;

    switch ((enum proto_type)type) {
    case PROTO_READY:
        due = d->stage == GUEST_CONNECTING;
        min = max = 4;
        break;
    case PROTO_STARTED:
        due = d->stage == GUEST_INJECTING && d->injected;
        break;
    case PROTO_STDOUT:
    case PROTO_STDERR:
        due = d->stage == GUEST_RUNNING;
        min = 1;
        max = PROTO_CHUNK_MAX;
        break;
    case PROTO_EXIT:
        due = d->stage == GUEST_RUNNING;
        min = max = PROTO_EXIT_SIZE;
        break;
    case PROTO_OUTPUT:
        due = d->stage == GUEST_OUTPUT;
        max = PROTO_CHUNK_MAX;
        break;
    case PROTO_FILES:
        due = d->stage == GUEST_FILES;
        max = PROTO_CHUNK_MAX;
        break;
    case PROTO_DONE:
        due = d->stage == GUEST_ENDING;
        break;
    case PROTO_FAIL:
        due = d->stage < GUEST_DONE;
        max = FAIL_TEXT_MAX;
        break;
    default:
        return err_set(err, EPROTO, "the guest broke the protocol: frame type 0x%02x", type);
    }
    if (!due)
        return err_set(err, EPROTO,
                       "the guest broke the protocol: frame type 0x%02x at stage %d", type,
                       (int)d->stage);
    if (len < min || len > max)
        return err_set(err, EPROTO,
                       "the guest broke the protocol: frame type 0x%02x with %u bytes", type,
                       len);
    return 0;
}

static void enter(struct guest_decoder *d, enum guest_stage stage,
                  const struct guest_handlers *h, void *ctx)
{
    d->stage = stage;
    h->stage(ctx, stage);
}

static int take_exit(struct guest_decoder *d, const struct guest_handlers *h, void *ctx,
                     struct err *err)
{
    struct bytes_reader r = bytes_reader_init(d->payload, d->payload_len);
    struct guest_exit e = {0};
    uint32_t reserved;
    int result;

    e.code = bytes_get_u32(&r);
    e.signal = bytes_get_u32(&r);
    e.flags = bytes_get_u32(&r);
    reserved = bytes_get_u32(&r);
    e.user_us = bytes_get_u64(&r);
    e.system_us = bytes_get_u64(&r);
    e.peak_memory_bytes = bytes_get_u64(&r);
    e.wall_us = bytes_get_u64(&r);
    if (!bytes_done(&r) || reserved != 0 || e.code > EXIT_CODE_MAX ||
        e.signal > EXIT_SIGNAL_MAX || (e.code != 0 && e.signal != 0) ||
        (e.flags & ~EXIT_FLAGS_KNOWN))
        return breach(err, "an EXIT that cannot be");
    result = h->exited(ctx, &e, err);
    if (result == 0)
        enter(d, GUEST_OUTPUT, h, ctx);
    return result;
}

static int take_ready(struct guest_decoder *d, const struct guest_handlers *h, void *ctx,
                      struct err *err)
{
    struct bytes_reader r = bytes_reader_init(d->payload, d->payload_len);
    uint32_t version = bytes_get_u32(&r);

    if (version != PROTO_VERSION)
        return err_set(err, EPROTO, "the guest speaks protocol %u, the host %u", version,
                       PROTO_VERSION);
    enter(d, GUEST_INJECTING, h, ctx);
    return 0;
}

/* A stream of chunks that an empty one ends. */
static int take_chunk(struct guest_decoder *d, uint64_t *seen, uint64_t limit,
                      enum guest_stage next,
                      int (*handler)(void *, const uint8_t *, size_t, struct err *),
                      const struct guest_handlers *h, void *ctx, struct err *err)
{
    if (d->payload_len == 0) {
        enter(d, next, h, ctx);
        return 0;
    }
    *seen += d->payload_len;
    if (*seen > limit)
        return breach(err, "more bytes than it was allowed");
    return handler(ctx, d->payload, d->payload_len, err);
}

static int take_fail(struct guest_decoder *d, const struct guest_handlers *h, void *ctx,
                     struct err *err)
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
    enter(d, GUEST_FAILED, h, ctx);
    return err_set(err, EREMOTEIO, "the guest could not run the skill: %s", text);
}

static int take_frame(struct guest_decoder *d, const struct guest_handlers *h, void *ctx,
                      struct err *err)
{
    switch ((enum proto_type)d->header[4]) {
    case PROTO_READY:
        return take_ready(d, h, ctx, err);
    case PROTO_STARTED:
        enter(d, GUEST_RUNNING, h, ctx);
        return 0;
    case PROTO_STDOUT:
        return h->log(ctx, GUEST_STDOUT, d->payload, d->payload_len, err);
    case PROTO_STDERR:
        return h->log(ctx, GUEST_STDERR, d->payload, d->payload_len, err);
    case PROTO_EXIT:
        return take_exit(d, h, ctx, err);
    case PROTO_OUTPUT:
        return take_chunk(d, &d->output_seen, d->limits.output_bytes, GUEST_FILES, h->output, h,
                          ctx, err);
    case PROTO_FILES:
        return take_chunk(d, &d->files_seen, d->limits.files_bytes, GUEST_ENDING, h->files, h,
                          ctx, err);
    case PROTO_DONE:
        enter(d, GUEST_DONE, h, ctx);
        return 0;
    case PROTO_FAIL:
        return take_fail(d, h, ctx, err);
    default:
        return breach(err, "an unknown frame");
    }
}

int guest_decoder_feed(struct guest_decoder *d, const uint8_t *data, size_t len,
                       const struct guest_handlers *handlers, void *ctx, struct err *err)
{
    while (len > 0) {
        size_t n;
        int r;

        if (d->header_len < PROTO_HEADER_SIZE) {
            struct bytes_reader header;

            n = PROTO_HEADER_SIZE - d->header_len;
            n = n < len ? n : len;
            memcpy(d->header + d->header_len, data, n);
            d->header_len += n;
            data += n;
            len -= n;
            if (d->header_len < PROTO_HEADER_SIZE)
                return 0;
            header = bytes_reader_init(d->header, PROTO_HEADER_SIZE);
            d->payload_len = bytes_get_u32(&header);
            d->payload_have = 0;
            if (d->header[5] != 0 || d->header[6] != 0 || d->header[7] != 0)
                return breach(err, "reserved header bytes are not zero");
            r = check_header(d, d->header[4], d->payload_len, err);
            if (r < 0)
                return r;
        }
        n = d->payload_len - d->payload_have;
        n = n < len ? n : len;
        memcpy(d->payload + d->payload_have, data, n);
        d->payload_have += (uint32_t)n;
        data += n;
        len -= n;
        if (d->payload_have < d->payload_len)
            return 0;
        d->header_len = 0;
        r = take_frame(d, handlers, ctx, err);
        if (r < 0)
            return r;
    }
    return 0;
}
