/* SPDX-License-Identifier: Apache-2.0 */
/* A wheel as a file: a zip of a stranger's. Nothing of it is unpacked here but its METADATA. */
#ifndef SKILLVM_API_WHEELS_WHEEL_FILE_H
#define SKILLVM_API_WHEELS_WHEEL_FILE_H

#include "api/wheels/metadata.h"

/*
 * Reads what a wheel says of itself from fd (a regular file, from offset 0; its offset is
 * moved), which may have so many entries. 0; -EINVAL with what is wrong with it; -errno. In any
 * case *ret_work is what that took beside reading requirements, about in bytes of these. The
 * caller finishes *ret on success.
 */
int wheel_file_metadata(int fd, uint32_t entries_max, struct metadata *ret, uint64_t *ret_work,
                        struct err *err);

#endif
