/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4) of a stranger's: decoded strictly, or not at all. */
#ifndef SKILLVM_BASE_BASE64_H
#define SKILLVM_BASE_BASE64_H

#include "base/buf.h"

/*
 * Makes a buffer what its text stands for, in its own place. 0, or -EINVAL for another
 * character than those of the alphabet, for a length that is no multiple of four, and for bits
 * that stand for nothing; then it holds nothing of use.
 */
int base64_decode(struct buf *text);

#endif
