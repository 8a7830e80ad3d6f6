/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as text: a strict check (RFC 8259, UTF-8, bounded depth) that finds where values begin
 * and end without building them, and the writing of strings. Input and output of a skill pass
 * through as the bytes they are: no number is ever rounded by a parser of ours.
 */
#ifndef SKILLVM_API_JSON_JSON_TEXT_H
#define SKILLVM_API_JSON_JSON_TEXT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define JSON_TEXT_DEPTH_MAX 512u

struct json_slice {
    const char *data; /* borrowed, not NUL-terminated */
    size_t len;
};

struct json_member {
    struct json_slice key;   /* as written, without its quotes */
    struct json_slice value; /* without the white space around it */
};

/*
 * Checks that text is exactly one JSON value; *ret_value (may be NULL) gets it without the
 * white space around it. 0, or -EINVAL with line, column (in bytes) and what was
 * expected there in the message.
 */
int json_text_check(const char *text, size_t len, struct json_slice *ret_value,
                    struct err *err);

/*
 * Checks that text is exactly one JSON object and lists its members. 0; -EINVAL with a message
 * for no object, bad JSON, a key that comes twice or is longer than 1,024 bytes, or more than
 * max members.
 */
int json_text_members(const char *text, size_t len, struct json_member *members, size_t max,
                      size_t *ret_n, struct err *err);

/* True when the slice is these characters. */
bool json_slice_is(struct json_slice slice, const char *text);

/* True when the text has a \u0000 escape, which no C string can hold. */
bool json_text_has_nul(const char *text, size_t len);

/*
 * Appends data as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. 0,
 * -E2BIG or -ENOMEM.
 */
int json_append_string(struct buf *out, const void *data, size_t len);
/*
 * Appends JSON that was checked, without the white space between its tokens, and with U+FFFD
 * for half a surrogate pair. 0 or as above.
 */
int json_append_compact(struct buf *out, struct json_slice value);
/*
 * Appends what a JSON string that was checked stands for, as UTF-8; half a surrogate pair
 * becomes U+FFFD. 0; -EINVAL when it is no string; -E2BIG or -ENOMEM.
 */
int json_append_decoded(struct buf *out, struct json_slice value);
/* The same as json_append_string for a C string, and null for NULL. */
int json_append_cstr(struct buf *out, const char *text);

#endif
