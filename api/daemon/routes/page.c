/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/page.h"

#include "api/daemon/routes/failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT  50u
#define RANGE_DEFAULT 100u
#define RANGE_MAX     1000u
/* Of ids, and of the entries of an audit, which begin with a node's name. */
#define ID_CHARACTERS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."

static bool parse_cursor(const char *text, struct page *ret)
{
    char number[17] = "";

    if (strspn(text, "0123456789abcdef") < 16 || strlen(text) >= PAGE_CURSOR_SIZE ||
        strspn(text, ID_CHARACTERS) != strlen(text))
        return false;
    memcpy(number, text, 16);
    ret->after = strtoull(number, NULL, 16);
    ret->has_place = true;
    (void)snprintf(ret->after_id, sizeof(ret->after_id), "%s", text + 16);
    return ret->after <= INT64_MAX;
}

/* A number of the query, which stays what it is where text is NULL. False when *reply says what
   is wrong with it. */
static bool take_number(const char *name, const char *text, size_t min, size_t max, size_t *ret,
                        struct http_reply *reply)
{
    char *end;
    unsigned long value;

    if (!text)
        return true;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value < min || value > max)
        return http_reply_error(reply, 400, "bad_request", "%s must be from %zu to %zu", name,
                                min, max);
    *ret = value;
    return true;
}

bool page_range(const char *limit, const char *offset, size_t *ret_limit, size_t *ret_offset,
                struct http_reply *reply)
{
    *ret_limit = RANGE_DEFAULT;
    *ret_offset = 0;
    return take_number("limit", limit, 1, RANGE_MAX, ret_limit, reply) &&
           take_number("offset", offset, 0, PAGE_OFFSET_MAX, ret_offset, reply);
}

bool page_parse(const char *limit, const char *cursor, struct page *ret,
                struct http_reply *reply)
{
    *ret = (struct page){.max = ROWS_DEFAULT};
    if (!take_number("limit", limit, 1, PAGE_ROWS_MAX, &ret->max, reply))
        return false;
    if (cursor && !parse_cursor(cursor, ret))
        return http_reply_error(reply, 400, "bad_request", "cursor is none of a page before");
    return true;
}

void page_cursor(char ret[PAGE_CURSOR_SIZE], uint64_t after, const char *after_id)
{
    (void)snprintf(ret, PAGE_CURSOR_SIZE, "%016" PRIx64 "%s", after, after_id);
}

void page_open(struct json_writer *w, const char *key)
{
    json_write_open(w, NULL, '{');
    json_write_open(w, key, '[');
}

void page_count(struct page *page, uint64_t at, const char *id)
{
    page->n++;
    page->last = at;
    (void)snprintf(page->last_id, sizeof(page->last_id), "%s", id);
}

void page_reply(struct http_reply *reply, struct json_writer *w, const struct page *page,
                int result, const struct err *err)
{
    char cursor[PAGE_CURSOR_SIZE];

    page_cursor(cursor, page->last, page->last_id);
    json_write_close(w, ']');
    json_write_string(w, "next_cursor", page->n == page->max ? cursor : NULL);
    json_write_close(w, '}');
    (void)failure_or_json(reply, 200, w, result, err);
}
