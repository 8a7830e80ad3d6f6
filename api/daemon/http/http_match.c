/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_match.h"

#include "base/percent.h"

#include <errno.h>
#include <string.h>

/* Decodes so many bytes into a string. False for a bad escape or a control byte. */
static bool decode(char *text, size_t len, bool plus_is_space)
{
    size_t n = 0;

    for (size_t at = 0, step; at < len; at += step) {
        int c = percent_decode(text + at, len - at, &step);

        if (c == '+' && step == 1 && plus_is_space)
            c = ' ';
        if (c < 0x20 || c == 0x7f)
            return false;
        text[n++] = (char)c;
    }
    text[n] = '\0';
    return true;
}

/* True when every segment is a name, and there is one of them or there may be more. */
static bool are_names(const char *path, bool many)
{
    for (;;) {
        size_t len = strcspn(path, "/");

        if (len == 0 || (len <= 2 && strspn(path, ".") == len))
            return false;
        if (path[len] == '\0')
            return true;
        if (!many)
            return false;
        path += len + 1;
    }
}

char *http_match_target(char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;

    return scheme > 0 ? target + scheme + strcspn(target + scheme, "/") : target;
}

int http_match_path(const char *pattern, char *path, const char *params[HTTP_PARAMS_MAX])
{
    char *names[HTTP_PARAMS_MAX];
    size_t lens[HTTP_PARAMS_MAX], n = 0;

    for (; *pattern && *path; pattern++) {
        if ((*pattern == ':' || *pattern == '*') && n < HTTP_PARAMS_MAX) {
            names[n] = path;
            lens[n] = *pattern == ':' ? strcspn(path, "/") : strlen(path);
            path += lens[n++];
        } else if (*pattern != *path++) {
            return -ENOENT;
        }
    }
    if (*pattern || *path)
        return -ENOENT;
    for (size_t i = 0; params && i < n; i++) {
        if (!decode(names[i], lens[i], false) ||
            !are_names(names[i], i + 1 == n && pattern[-1] == '*'))
            return -EINVAL;
        params[i] = names[i];
    }
    return 0;
}

bool http_match_query(char *query, const char *const names[HTTP_QUERY_MAX],
                      const char *values[HTTP_QUERY_MAX])
{
    char *value;

    while ((value = strsep(&query, "&"))) {
        const char *name = strsep(&value, "=");

        for (size_t i = 0; i < HTTP_QUERY_MAX && names[i]; i++) {
            if (values[i] || strcmp(names[i], name) != 0)
                continue;
            if (value && !decode(value, strlen(value), true))
                return false;
            values[i] = value ? value : "";
        }
    }
    return true;
}
