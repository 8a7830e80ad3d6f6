/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 (IEEE 802.3, reflected, as in zlib): catches damage, never malice.
 */
#ifndef SKILLVM_BASE_CRC32_H
#define SKILLVM_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start) over len bytes. crc32("123456789") is 0xcbf43926. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t len);

#endif
