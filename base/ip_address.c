/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip_address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

socklen_t ip_address_parse(const char *text, union ip_address *ret)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    const bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
    char host[INET6_ADDRSTRLEN + 2] = "";
    unsigned long port;
    char *end;

    *ret = (union ip_address){.ipv6 = {0}};
    if (len == 0 || len >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
        return 0;
    port = strtoul(colon + 1, &end, 10);
    if (*end || port > 65535)
        return 0;
    memcpy(host, text, len);
    if (bracketed) {
        host[len - 1] = '\0';
        ret->ipv6.sin6_family = AF_INET6;
        ret->ipv6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host + 1, &ret->ipv6.sin6_addr) == 1 ? sizeof(ret->ipv6) : 0;
    }
    ret->ipv4.sin_family = AF_INET;
    ret->ipv4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &ret->ipv4.sin_addr) == 1 ? sizeof(ret->ipv4) : 0;
}
