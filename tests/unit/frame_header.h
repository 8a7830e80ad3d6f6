/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame's header as guest-init/proto.h describes it, written without the code under test.
 */
#ifndef SKILLVM_TESTS_UNIT_FRAME_HEADER_H
#define SKILLVM_TESTS_UNIT_FRAME_HEADER_H

#include "base/bytes.h"
#include "guest-init/proto.h"

#include <stddef.h>
#include <stdint.h>

static inline void frame_header_write(uint8_t header[PROTO_HEADER_SIZE], uint8_t type,
                                      size_t len)
{
    struct bytes_writer w = bytes_writer_init(header, PROTO_HEADER_SIZE);

    bytes_put_u32(&w, (uint32_t)len);
    bytes_put_u8(&w, type);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, 0);
}

#endif
