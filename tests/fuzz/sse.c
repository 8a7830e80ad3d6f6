/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events from any bytes: whole or in pieces, the events are the same. */
#include "api/client/sse.h"

#include "api/json/json_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_event(void *ctx, const char *name, const char *data, size_t len)
{
    struct buf text = buf_init(4096);

    if (data[len] != '\0')
        abort();
    if (sse_decode_data(data, len, &text) == 0)
        buf_append(ctx, text.data, text.len);
    (void)json_text_check(data, len, NULL, NULL);
    buf_finish(&text);
    return buf_printf(ctx, "[%s %zu]", name, len);
}

static int run(const uint8_t *data, size_t size, size_t piece, struct buf *seen)
{
    struct sse sse;
    int result = 0;

    sse_init(&sse, 4096, on_event, seen);
    for (size_t at = 0; at < size && !result; at += piece)
        result = sse_push(&sse, data + at, size - at < piece ? size - at : piece);
    sse_finish(&sse);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = buf_init(1 << 20), pieces = buf_init(1 << 20);
    int a = run(data, size, size ? size : 1, &whole);
    int b = run(data, size, 3, &pieces);

    if (a != b || whole.len != pieces.len ||
        (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
        abort();
    buf_finish(&whole);
    buf_finish(&pieces);
    return 0;
}
