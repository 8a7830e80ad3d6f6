/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/url_host.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PORT_DIGITS_MAX 5u

/* 0 for what is no port. */
static unsigned take_port(struct text_span digits)
{
    unsigned port = 0;

    if (digits.len > PORT_DIGITS_MAX)
        return 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!isdigit((unsigned char)digits.text[i]))
            return 0;
        port = port * 10 + (unsigned)(digits.text[i] - '0');
    }
    return port <= UINT16_MAX ? port : 0;
}

bool url_host_take_bare(struct text_span host, char ret[URL_HOST_SIZE])
{
    const char *colon = host.len > 0 ? memchr(host.text, ':', host.len) : NULL;
    size_t len = colon ? (size_t)(colon - host.text) : host.len;
    char name[HOST_NAME_SIZE];
    unsigned port = 0;

    if (host_name_clean(host.text, len, name) < 0 || !strchr(name, '.'))
        return false;
    if (colon) {
        port = take_port((struct text_span){colon + 1, host.len - len - 1});
        if (port == 0)
            return false;
    }
    (void)snprintf(ret, URL_HOST_SIZE, port ? "%s:%u" : "%s", name, port);
    return true;
}

bool url_host_take(struct text_span url, bool is_whole, char ret[URL_HOST_SIZE])
{
    static const char *const schemes[] = {"https://", "http://", "wss://", "ws://"};
    struct text_span host = {url.text, 0};
    size_t i = 0, skip;

    while (i < 4 && (url.len < strlen(schemes[i]) ||
                     strncasecmp(url.text, schemes[i], strlen(schemes[i])) != 0))
        i++;
    if (i == 4)
        return false;
    skip = strlen(schemes[i]);
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
