/* SPDX-License-Identifier: Apache-2.0 */
#include "base/package_name.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int package_name_clean(const char *text, size_t len, char *ret, size_t size)
{
    size_t n = 0;

    if (len == 0 || len >= size || !isalnum((unsigned char)text[0]) ||
        !isalnum((unsigned char)text[len - 1]))
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        char c = (char)tolower((unsigned char)text[i]);

        if (!isalnum((unsigned char)c) && (!c || !strchr("-_.", c)))
            return -EINVAL;
        if (isalnum((unsigned char)c))
            ret[n++] = c;
        else if (ret[n - 1] != '-')
            ret[n++] = '-';
    }
    ret[n] = '\0';
    return 0;
}
