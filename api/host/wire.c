/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay's preamble. It must never compare a token byte by byte with an early end.
 */
#include "api/host/wire.h"

#include "base/bytes.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>

static const uint8_t wire_magic[4] = {'s', 'v', 'r', '2'};

void wire_encode(uint8_t *out, const struct wire_request *request, const uint8_t *token)
{
    struct bytes_writer w = bytes_writer_init(out, WIRE_PREAMBLE_SIZE);

    bytes_put(&w, wire_magic, sizeof(wire_magic));
    bytes_put_u8(&w, (uint8_t)request->op);
    bytes_put(&w, "\0\0\0", 3);
    bytes_put_u64(&w, request->realtime_ns);
    bytes_put_u32(&w, request->uid);
    bytes_put(&w, token, WIRE_TOKEN_SIZE);
}

int wire_decode(const uint8_t *preamble, const uint8_t *token, struct wire_request *ret)
{
    struct bytes_reader r = bytes_reader_init(preamble, WIRE_PREAMBLE_SIZE);
    const uint8_t *magic = bytes_take(&r, sizeof(wire_magic));
    uint8_t op = bytes_get_u8(&r);
    const uint8_t *zero = bytes_take(&r, 3);
    uint64_t realtime_ns = bytes_get_u64(&r);
    uint32_t uid = bytes_get_u32(&r);
    const uint8_t *given = bytes_take(&r, WIRE_TOKEN_SIZE);
    volatile uint8_t differ = 0;

    for (size_t i = 0; i < WIRE_TOKEN_SIZE; i++)
        differ = (uint8_t)(differ | (given[i] ^ token[i]));
    if (differ != 0)
        return -EACCES;
    if (memcmp(magic, wire_magic, sizeof(wire_magic)) != 0 || memcmp(zero, "\0\0\0", 3) != 0)
        return -EPROTO;
    if (op < WIRE_OP_CONNECT || op > WIRE_OP_POWEROFF)
        return -EPROTO;
    *ret = (struct wire_request){(enum wire_op)op, realtime_ns, uid};
    return 0;
}

int wire_token_read(const char *path, uint8_t *ret_token)
{
    char token[WIRE_TOKEN_SIZE + 2]; /* one byte too many is noticed */
    ssize_t n = fd_read_text(path, token, sizeof(token));

    if (n < 0)
        return (int)n;
    if (n != WIRE_TOKEN_SIZE)
        return -EINVAL;
    memcpy(ret_token, token, WIRE_TOKEN_SIZE);
    return 0;
}
