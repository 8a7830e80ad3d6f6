/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <string.h>

bool text_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len >= n && strcmp(text + len - n, end) == 0;
}

bool text_has_word(const char *words, const char *separators, const char *word)
{
    while (*words) {
        size_t len = strcspn(words, separators);

        if (len == strlen(word) && strncmp(words, word, len) == 0)
            return true;
        words += len + strspn(words + len, separators);
    }
    return false;
}
