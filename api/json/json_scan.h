/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one reader of JSON's grammar in this room: it goes over a text from its start and says
 * where things begin and end. It builds nothing.
 */
#ifndef SKILLVM_API_JSON_JSON_SCAN_H
#define SKILLVM_API_JSON_JSON_SCAN_H

#include "api/json/json_text.h"

struct json_scanner {
    const char *text; /* borrowed */
    size_t len;
    size_t at;
};

/* -EINVAL with line, column and what was expected there. */
int json_scan_bad(const struct json_scanner *s, struct err *err, const char *what);
void json_scan_space(struct json_scanner *s);
/* True when this character is next, and then goes past it. */
bool json_scan_take(struct json_scanner *s, char c);
/*
 * Each skips white space first. 0, or -EINVAL with the place. A key is as in struct
 * json_member, and its colon is passed.
 */
int json_scan_key(struct json_scanner *s, struct json_slice *ret, struct err *err);
int json_scan_value(struct json_scanner *s, struct json_slice *ret, struct err *err);
int json_scan_end(struct json_scanner *s, struct err *err);

#endif
