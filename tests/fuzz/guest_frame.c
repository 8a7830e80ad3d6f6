/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame reader: the first byte says in what pieces the rest arrives. No frame may be longer
 * than what was fed, and a cut stream gives the same frames as a whole one.
 */
#include <stdlib.h>

#include "guest-init/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t read_all(const uint8_t *data, size_t size, size_t step)
{
    struct frame_reader r;
    struct frame frame;
    uint32_t sum = 0;
    int n = 0;

    frame_reader_init(&r);
    for (size_t at = 0; n >= 0 && at < size; at += step) {
        if (frame_reader_feed(&r, data + at, step < size - at ? step : size - at) < 0)
            break;
        while ((n = frame_reader_next(&r, &frame)) > 0) {
            if (frame.len > size)
                abort();
            sum = sum * 31 + frame.type + frame.len;
            for (uint32_t i = 0; i < frame.len; i++)
                sum = sum * 31 + frame.data[i];
        }
    }
    frame_reader_finish(&r);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (read_all(data + 1, size - 1, data[0] + 1u) != read_all(data + 1, size - 1, size))
        abort();
    return 0;
}
