/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library does not say of a text. */
#ifndef SKILLVM_BASE_TEXT_H
#define SKILLVM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool text_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len >= n && strcmp(text + len - n, end) == 0;
}

#endif
