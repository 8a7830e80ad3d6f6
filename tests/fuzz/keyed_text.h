/* SPDX-License-Identifier: Apache-2.0 */
/* Input that is a text under a key, which is the first line. */
#ifndef SKILLVM_TESTS_FUZZ_KEYED_TEXT_H
#define SKILLVM_TESTS_FUZZ_KEYED_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Calls check with a copy of the text of exactly its size, unless there is no key. */
static inline void keyed_text(const uint8_t *data, size_t size,
                              void (*check)(const char *key, const char *text, size_t len))
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t key_len = end ? (size_t)(end - data) : 0;
    char key[128] = "", *text;

    if (!end || key_len >= sizeof(key))
        return;
    memcpy(key, data, key_len);
    text = malloc(size - key_len);
    if (!text)
        return;
    memcpy(text, end + 1, size - key_len - 1);
    check(key, text, size - key_len - 1);
    free(text);
}

#endif
