/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/fixed_names.h"

#include "base/host_pattern.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* One "name=address". 0 or -EINVAL. */
static int parse(const char *text, size_t len, char name[HOST_NAME_SIZE],
                 union ip_address *address)
{
    const char *sign = memchr(text, '=', len);
    char raw[INET6_ADDRSTRLEN] = "";
    size_t raw_len = sign ? len - (size_t)(sign - text) - 1 : 0;

    if (!sign || raw_len >= sizeof(raw) ||
        host_name_clean(text, (size_t)(sign - text), name) < 0)
        return -EINVAL;
    memcpy(raw, sign + 1, raw_len);
    *address = (union ip_address){.ipv6 = {0}};
    address->any.sa_family = AF_INET;
    if (inet_pton(AF_INET, raw, &address->ipv4.sin_addr) == 1)
        return 0;
    address->any.sa_family = AF_INET6;
    return inet_pton(AF_INET6, raw, &address->ipv6.sin6_addr) == 1 ? 0 : -EINVAL;
}

int fixed_names_check(const char *text, struct err *err)
{
    char name[HOST_NAME_SIZE];
    union ip_address address;
    size_t len;

    for (; *text; text += len) {
        text += strspn(text, " ");
        len = strcspn(text, " ");
        if (len > 0 && parse(text, len, name, &address) < 0)
            return err_set(err, EINVAL, "\"%.*s\" is not NAME=ADDRESS",
                           (int)(len < 80 ? len : 80), text);
    }
    return 0;
}

bool fixed_names_find(const char *text, const char *name, union ip_address *ret)
{
    union ip_address address;
    char each[HOST_NAME_SIZE];
    size_t len;

    for (; *text; text += len) {
        text += strspn(text, " ");
        len = strcspn(text, " ");
        if (len > 0 && parse(text, len, each, &address) == 0 && strcmp(each, name) == 0) {
            *ret = address;
            return true;
        }
    }
    return false;
}
