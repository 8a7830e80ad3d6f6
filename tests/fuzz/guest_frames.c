/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a hostile guest. The first byte says how the stream is cut, when the host has sent
 * everything, and whether there is a session; what must hold: limits, order, and no reading
 * past the input.
 */
#include "api/daemon/machine/guest_decoder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sums {
    enum guest_stage stage;
    uint64_t output;
    uint64_t files;
    uint64_t session;
};

static int on_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                  struct err *err)
{
    const struct sums *sums = ctx;

    (void)stream;
    (void)err;
    if (sums->stage != GUEST_RUNNING || len == 0 || len > PROTO_CHUNK_MAX)
        abort();
    return data[0] == 0xee ? -1 : 0;
}

static int on_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct sums *sums = ctx;

    (void)data;
    (void)err;
    sums->output += len;
    if (sums->output > 300)
        abort();
    return 0;
}

static int on_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct sums *sums = ctx;

    (void)data;
    (void)err;
    sums->files += len;
    if (sums->files > 300)
        abort();
    return 0;
}

static int on_session(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct sums *sums = ctx;

    (void)data;
    (void)err;
    sums->session += len;
    if (sums->session > 300 || sums->stage != GUEST_SESSION)
        abort();
    return 0;
}

/* Feeds one piece stage by stage, and looks at each step. */
static int feed(struct guest_decoder *d, const uint8_t *data, size_t len, struct sums *sums,
                struct err *err)
{
    const struct guest_sink sink = {.ctx = sums,
                                    .log = on_log,
                                    .output = on_output,
                                    .files = on_files,
                                    .session = on_session};
    size_t used = 0;
    int r = 0;

    for (size_t at = 0; r == 0 && at < len; at += used) {
        r = guest_decoder_feed(d, data + at, len - at, &sink, &used, err);
        if (d->stage < sums->stage || (r == 0 && (used == 0 || used > len - at)) ||
            (r == 0 && d->stage == sums->stage && used < len - at))
            abort();
        if (d->stage >= GUEST_OUTPUT && (d->exit.code > 255 || d->exit.signal > 64))
            abort();
        sums->stage = d->stage;
        if (d->stage == GUEST_INJECTING && r == 0)
            d->injected = true;
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct guest_decoder_limits limits = {300, 300, 300};
    struct guest_decoder *d = malloc(sizeof(*d));
    struct sums sums = {.stage = GUEST_CONNECTING};
    struct err err = {0};
    size_t piece;
    int r = 0;

    if (!d || size < 1) {
        free(d);
        return 0;
    }
    piece = (data[0] & 0x3f) + 1u;
    guest_decoder_init(d, &limits);
    if (data[0] & 0x80)
        d->injected = true;
    d->has_session = (data[0] & 0x40) != 0;
    for (size_t at = 1; r == 0 && at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        uint8_t *copy = malloc(n);

        if (!copy)
            break;
        /* A copy of exactly this size, so that a sanitizer sees every byte too far. */
        memcpy(copy, data + at, n);
        r = feed(d, copy, n, &sums, &err);
        free(copy);
        if (r < 0 && r != -1 && err.code == 0)
            abort();
    }
    free(d);
    return 0;
}
