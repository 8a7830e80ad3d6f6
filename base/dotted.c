/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dotted.h"

bool dotted_is_name(const char *text, size_t len)
{
    bool start = true;

    if (len > DOTTED_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (c == '.' ? start : !letter && (start || c < '0' || c > '9'))
            return false;
        start = c == '.';
    }
    return !start;
}
