/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_match.h"

#include "base/percent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Decodes into a string of its own. 0, -EINVAL for a bad escape or a control byte, -ENOMEM. */
static int decode(const char *text, size_t len, bool plus_is_space, char **ret)
{
    char *out = malloc(len + 1);
    size_t n = 0;

    if (!out)
        return -ENOMEM;
    for (size_t at = 0, step; at < len; at += step) {
        int c = percent_decode(text + at, len - at, &step);

        if (c == '+' && step == 1 && plus_is_space)
            c = ' ';
        if (c < 0x20 || c == 0x7f) {
            free(out);
            return -EINVAL;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
    *ret = out;
    return 0;
}

/* True when every segment is a name. */
static bool segments_are_names(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");

        if (len == 0 || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

static int take_param(const char *text, size_t len, bool is_rest, char **ret)
{
    char *value;
    int r = decode(text, len, false, &value);

    if (r < 0)
        return r == -EINVAL ? -ENOENT : r;
    if (!segments_are_names(value) || (!is_rest && strchr(value, '/'))) {
        free(value);
        return -ENOENT;
    }
    *ret = value;
    return 0;
}

const char *http_match_target(const char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;

    if (scheme == 0)
        return target;
    target += scheme;
    target += strcspn(target, "/?");
    return *target == '/' ? target : "/";
}

int http_match_path(const char *pattern, const char *target, char *params[HTTP_PARAMS_MAX])
{
    const char *end = target + strcspn(target, "?");
    size_t n = 0;
    int r = 0;

    while (r == 0 && *pattern && target < end) {
        if (*pattern == ':' || *pattern == '*') {
            size_t len = *pattern == ':' ? strcspn(target, "/?") : (size_t)(end - target);

            r = n < HTTP_PARAMS_MAX ? take_param(target, len, *pattern == '*', &params[n])
                                    : -ENOENT;
            n += r == 0;
            target += len;
        } else if (*pattern == *target) {
            target++;
        } else {
            r = -ENOENT;
        }
        pattern++;
    }
    if (r == 0 && (*pattern || target < end))
        r = -ENOENT;
    if (r < 0)
        http_match_free(params, HTTP_PARAMS_MAX);
    return r;
}

int http_match_query(const char *target, const char *const names[HTTP_QUERY_MAX],
                     char *values[HTTP_QUERY_MAX])
{
    const char *at = strchr(target, '?');
    int r = 0;

    while (r == 0 && at) {
        const char *name = at + 1;
        size_t len = strcspn(name, "&"), name_len = strcspn(name, "=&");

        for (size_t i = 0; r == 0 && i < HTTP_QUERY_MAX && names[i]; i++) {
            size_t skip = name_len < len ? name_len + 1 : name_len;

            if (!values[i] && strlen(names[i]) == name_len &&
                memcmp(names[i], name, name_len) == 0)
                r = decode(name + skip, len - skip, true, &values[i]);
        }
        at = name[len] == '&' ? name + len : NULL;
    }
    if (r < 0)
        http_match_free(values, HTTP_QUERY_MAX);
    return r;
}

void http_match_free(char **values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(values[i]);
        values[i] = NULL;
    }
}
