/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent-encoding of parts of a URI (RFC 3986). It knows bytes: which of them may follow each
 * other is its callers' business.
 */
#ifndef SKILLVM_BASE_PERCENT_H
#define SKILLVM_BASE_PERCENT_H

#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Appends text with all but unreserved characters encoded. 0, -E2BIG or -ENOMEM. */
int percent_append(struct buf *out, const char *text, size_t len, bool keep_slashes);
/*
 * Appends the format's text with each %s replaced by the next argument, encoded, and each %S by
 * one whose slashes stay. 0, -E2BIG or -ENOMEM.
 */
int percent_printf(struct buf *out, const char *format, ...);
int percent_vprintf(struct buf *out, const char *format, va_list args);
/*
 * The byte that text (len > 0 bytes left) begins with, decoded where it is encoded, or -EINVAL
 * for a bad escape. *ret_len gets the bytes it is made of.
 */
int percent_decode(const char *text, size_t len, size_t *ret_len);

#endif
