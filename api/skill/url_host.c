/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/url_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool url_host_take_bare(struct text_span host, char ret[URL_HOST_SIZE])
{
    /* As a list would have it, but for what stands for many. */
    return host.len > 0 && host.text[0] != '*' &&
           host_pattern_clean(host.text, host.len, false, ret, NULL) == 0 && strchr(ret, '.');
}

bool url_host_take(struct text_span url, bool is_whole, char ret[URL_HOST_SIZE])
{
    static const char *const schemes[] = {"https://", "http://", "wss://", "ws://"};
    struct text_span host = {url.text, 0};
    size_t skip = 0;

    for (size_t i = 0; skip == 0 && i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i]);

        if (url.len >= len && strncasecmp(url.text, schemes[i], len) == 0)
            skip = len;
    }
    if (skip == 0)
        return false;
    host.text += skip;
    while (skip + host.len < url.len && !strchr("/?#", host.text[host.len])) {
        /* A user and a password. */
        if (host.text[host.len] == '@') {
            skip += host.len + 1;
            host = (struct text_span){url.text + skip, 0};
            continue;
        }
        host.len++;
    }
    if (skip + host.len == url.len && !is_whole)
        return false;
    return url_host_take_bare(host, ret);
}

bool url_host_is_permitted(const char *list, const char *host)
{
    const char *colon = strchr(host, ':');
    char name[URL_HOST_SIZE];

    (void)snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - host) : (int)strlen(host),
                   host);
    if (colon)
        return host_list_permits(list, name, (uint16_t)strtoul(colon + 1, NULL, 10));
    return host_list_permits(list, name, 443) || host_list_permits(list, name, 80);
}
