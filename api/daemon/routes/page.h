/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a page of a list begins and how long it is, as the query of a request says it, and the
 * cursor of the next one. A cursor is 16 hexadecimal digits of a time or number and the id of
 * the last row.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_PAGE_H
#define SKILLVM_API_DAEMON_ROUTES_PAGE_H

#include "api/daemon/http/http.h"
#include "api/json/json_write.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PAGE_ID_SIZE     112u
#define PAGE_CURSOR_SIZE (16u + PAGE_ID_SIZE)
#define PAGE_ROWS_MAX    200u
#define PAGE_OFFSET_MAX  1000000000u

struct page {
    size_t max;
    bool has_place; /* false on the first page */
    uint64_t after;
    char after_id[PAGE_ID_SIZE];
    size_t n; /* rows that were written, the last of them at this place: */
    uint64_t last;
    char last_id[PAGE_ID_SIZE];
};

/*
 * Reads limit and offset (NULL where absent) of a list that is walked by number. False when
 * *reply says what is wrong with them.
 */
bool page_range(const char *limit, const char *offset, size_t *ret_limit, size_t *ret_offset,
                struct http_reply *reply);
/* Reads limit and cursor (NULL where absent). False when *reply says what is wrong. */
bool page_parse(const char *limit, const char *cursor, struct page *ret,
                struct http_reply *reply);

/* The cursor of the page after this row. */
void page_cursor(char ret[PAGE_CURSOR_SIZE], uint64_t after, const char *after_id);

/* Begins a list in an object. */
void page_open(struct json_writer *w, const char *key);
/* One more row was written. */
void page_count(struct page *page, uint64_t at, const char *id);
/* Ends both with the cursor of the page after it, if there is one; as failure_or_json. */
void page_reply(struct http_reply *reply, struct json_writer *w, const struct page *page,
                int result, const struct err *err);

#endif
