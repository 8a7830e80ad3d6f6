/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/run_payload.h"

#include "api/daemon/limits.h"
#include "base/bytes.h"

#include <string.h>

int run_payload_bytes(struct buf *run, enum proto_field tag, const void *data, size_t len)
{
    uint8_t header[8];
    struct bytes_writer w = bytes_writer_init(header, sizeof(header));
    int r;

    bytes_put_u16(&w, (uint16_t)tag);
    bytes_put_u16(&w, 0);
    bytes_put_u32(&w, (uint32_t)len);
    r = buf_append(run, header, sizeof(header));
    return r < 0 ? r : buf_append(run, data, len);
}

int run_payload_text(struct buf *run, enum proto_field tag, const char *text)
{
    return run_payload_bytes(run, tag, text, strlen(text));
}

int run_payload_number(struct buf *run, enum proto_field tag, uint64_t value, size_t size)
{
    uint8_t raw[8];

    for (size_t i = 0; i < size; i++)
        raw[i] = (uint8_t)(value >> (8 * i));
    return run_payload_bytes(run, tag, raw, size);
}

int run_payload_limits(struct buf *run, const struct run_limits *limits)
{
    int r = run_payload_number(run, PROTO_F_TIMEOUT_MS, limits->timeout_ms, 8);

    if (r == 0)
        r = run_payload_number(run, PROTO_F_MEMORY_BYTES, limits->memory_bytes, 8);
    if (r == 0)
        r = run_payload_number(run, PROTO_F_PIDS_MAX, limits->pids, 4);
    if (r == 0)
        r = run_payload_number(run, PROTO_F_LOG_BYTES, LIMIT_LOG_BYTES, 8);
    if (r == 0)
        r = run_payload_number(run, PROTO_F_FILES_MAX, LIMIT_FILES, 4);
    if (r == 0)
        r = run_payload_number(run, PROTO_F_FILES_BYTES, LIMIT_FILES_BYTES, 8);
    if (r == 0)
        r = run_payload_number(run, PROTO_F_OUTPUT_BYTES, LIMIT_OUTPUT_BYTES, 8);
    return r;
}
