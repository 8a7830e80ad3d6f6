/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks JSON that json_text_check() found good, without building anything: members of an
 * object by key, items of an array in turn. It must never see text that was not checked.
 */
#ifndef SKILLVM_API_JSON_JSON_WALK_H
#define SKILLVM_API_JSON_JSON_WALK_H

#include "api/json/json_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks a member up by its key, which has no character that JSON escapes. True with the value;
 * false when the object has no such member or is no object. The first of equal keys counts.
 */
bool json_find(struct json_slice object, const char *key, struct json_slice *ret);

/* An array, and how far it was walked. Set array and zero the rest. */
struct json_items {
    struct json_slice array;
    size_t at; /* bytes */
};

/* The next item; false after the last one, or at once when it is no array. */
bool json_items_next(struct json_items *items, struct json_slice *ret);

/*
 * Whether there are at most max values in it, itself and keys apart: each takes some 80 bytes
 * of a tree that a parser makes of it, however short its text is. Where brackets are empty it
 * counts one too many.
 */
bool json_fits(struct json_slice value, size_t max);

/* The first character says what a value is. */
bool json_is_object(struct json_slice value);
bool json_is_array(struct json_slice value);
bool json_is_string(struct json_slice value);

/* Of true and false which one it is. 0, or -EINVAL for anything else. */
int json_take_bool(struct json_slice value, bool *ret);
/* A whole number in digits alone, up to max. 0; -EINVAL for anything else; -ERANGE. */
int json_take_whole(struct json_slice value, uint64_t max, uint64_t *ret);

/*
 * What a JSON string stands for, as an owned C string of at most max bytes. NULL when it is no
 * string, is longer, holds U+0000, or memory ran out.
 */
char *json_strdup(struct json_slice value, size_t max);
/* The same for a member of an object; NULL when there is none too. */
char *json_strdup_member(struct json_slice object, const char *key, size_t max);

#endif
