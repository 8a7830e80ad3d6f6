/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What FILES_IN brought to the stand-in guest, for its answer.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_FILES_IN_H
#define SKILLVM_TESTS_UNIT_FAKE_FILES_IN_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Writes a whole tar stream as a JSON object: for each file its path and
 * [size, crc32, the first bytes]. 0, or -1 for what is no such stream.
 */
int fake_files_in_list(const uint8_t *tar, size_t len, struct buf *out);

#endif
