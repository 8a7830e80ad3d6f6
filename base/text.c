/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_is_plain(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

bool text_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len >= n && strcmp(text + len - n, end) == 0;
}

bool text_begins_with(struct text_span span, const char *begin)
{
    const size_t n = strlen(begin);

    return span.len >= n && memcmp(span.text, begin, n) == 0;
}

bool text_copy(char *ret, size_t size, const char *text)
{
    return (size_t)snprintf(ret, size, "%s", text ? text : "") < size;
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

bool text_find_number(const char *text, const char *name, uint64_t *ret)
{
    const size_t n = strlen(name);

    while (text && !(strncmp(text, name, n) == 0 && text[n] == ' ')) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (text)
        *ret = strtoull(text + n + 1, NULL, 10);
    return text;
}

void text_cut_word(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && !strchr(" \t\n", text[len - 1]))
        len--;
    text[len] = '\0';
}

bool text_take_line(struct text_span *rest, struct text_span *ret_line)
{
    const char *end = rest->len > 0 ? memchr(rest->text, '\n', rest->len) : NULL;
    struct text_span line = {rest->text, end ? (size_t)(end - rest->text) : rest->len};
    size_t taken = line.len + (end != NULL);
    bool is_there = rest->len > 0;

    rest->text += taken;
    rest->len -= taken;
    if (line.len > 0 && line.text[line.len - 1] == '\r')
        line.len--;
    *ret_line = line;
    return is_there;
}

struct text_span text_trim(struct text_span span, const char *set)
{
    while (span.len > 0 && span.text[0] && strchr(set, span.text[0])) {
        span.text++;
        span.len--;
    }
    while (span.len > 0 && span.text[span.len - 1] && strchr(set, span.text[span.len - 1]))
        span.len--;
    return span;
}

uint64_t text_hash(uint64_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}
