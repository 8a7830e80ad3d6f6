/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON piece by piece: commas, keys and escapes are its business, and a failure stays
 * until the end, where it is looked at once. It never reads what it wrote.
 */
#ifndef SKILLVM_API_JSON_JSON_WRITE_H
#define SKILLVM_API_JSON_JSON_WRITE_H

#include "api/json/json_text.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    struct buf out; /* its error is the first failure */
    bool comma;     /* one is due before the next value */
};

/* Empty; grows to at most max bytes. */
struct json_writer json_writer_init(size_t max);

/* In all of these key is NULL in an array and at the top. */

/* Opens with '{' or '[', closes with the character that fits. */
void json_write_open(struct json_writer *w, const char *key, char bracket);
void json_write_close(struct json_writer *w, char bracket);
/* A string, repaired where it is not UTF-8; null for NULL. */
void json_write_string(struct json_writer *w, const char *key, const char *text);
/* An array of such. */
void json_write_strings(struct json_writer *w, const char *key, char *const *texts, size_t n);
/* A string of bytes, which may hold NULs. */
void json_write_text(struct json_writer *w, const char *key, const void *data, size_t len);
/* JSON that was checked, without the white space between its tokens. */
void json_write_value(struct json_writer *w, const char *key, struct json_slice value);
void json_write_number(struct json_writer *w, const char *key, uint64_t value);
/* Nanoseconds as milliseconds with three decimals. */
void json_write_ms(struct json_writer *w, const char *key, uint64_t ns);
void json_write_bool(struct json_writer *w, const char *key, bool value);
/* A realtime in nanoseconds, as RFC 3339 in UTC with milliseconds; null for 0. */
void json_write_time(struct json_writer *w, const char *key, uint64_t ns);

/* Ends it with a line feed and hands the text over. 0, or the failure, and then *ret is empty.
 */
int json_writer_end(struct json_writer *w, struct buf *ret);

#endif
