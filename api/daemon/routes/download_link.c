/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/download_link.h"

#include "api/daemon/terms/ids.h"
#include "api/json/json_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TIME_DIGITS 10u
#define TENANT_AT   (ID_DIGITS + 1 + TIME_DIGITS + 1)
#define MAC_DIGITS  (SHA256_HEX_SIZE - 1)
#define SECRET_OF   "skillvm: addresses of files that need no key, 1"

_Static_assert(TENANT_AT + TENANT_ID_SIZE + SHA256_HEX_SIZE <= DOWNLOAD_LINK_NAME_SIZE,
               "a name fits");

/* What somebody knows, and nobody else, is the secret of nothing but these addresses then. */
static int derive(const void *known, size_t len, struct download_links *ret)
{
    return sha256_hmac(known, len, SECRET_OF, strlen(SECRET_OF), ret->secret);
}

int download_links_init(struct download_links *links, struct err *err)
{
    uint8_t drawn[32];

    if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
        return err_set_errno(err, errno, "cannot draw a secret");
    return derive(drawn, sizeof(drawn), links) < 0 ? err_no_memory(err) : 0;
}

int download_links_of(const struct download_links *own, const char *mark,
                      struct download_links *ret)
{
    if (*mark)
        return derive(mark, strlen(mark), ret);
    *ret = *own;
    return 0;
}

/* Puts the MAC of the first len bytes of a name behind them. 0 or -ENOMEM. */
static int sign(const struct download_links *links, char *name, size_t len)
{
    return sha256_hmac(links->secret, strlen(links->secret), name, len, name + len);
}

int download_links_name(const struct download_links *links, const struct download_link *link,
                        uint64_t expires_s, char ret[DOWNLOAD_LINK_NAME_SIZE])
{
    int len = snprintf(ret, DOWNLOAD_LINK_NAME_SIZE, "%.32s-%010" PRIx64 "-%.*s-",
                       link->id + strlen(ID_EXECUTION), expires_s & 0xffffffffffu,
                       (int)TENANT_ID_SIZE - 1, link->tenant);

    return sign(links, ret, (size_t)len);
}

bool download_links_check(const struct download_links *links, const char *name, uint64_t now_s,
                          struct download_link *ret)
{
    char expected[DOWNLOAD_LINK_NAME_SIZE] = "";
    size_t len = strlen(name);

    if (len <= TENANT_AT + 1 + MAC_DIGITS || len >= sizeof(expected))
        return false;
    len -= MAC_DIGITS;
    memcpy(expected, name, len);
    if (sign(links, expected, len) < 0 || !sha256_same(name + len, expected + len) ||
        strtoull(name + ID_DIGITS + 1, NULL, 16) <= now_s)
        return false;
    /* It is one of ours: what follows is as it was written. */
    (void)snprintf(ret->id, sizeof(ret->id), ID_EXECUTION "%.32s", name);
    (void)snprintf(ret->tenant, sizeof(ret->tenant), "%.*s", (int)(len - TENANT_AT - 1),
                   name + TENANT_AT);
    return true;
}

int download_links_present(const struct download_links *links, const char *base,
                           const char *tenant, const char *result, size_t len, uint64_t now_s,
                           struct buf *out)
{
    struct json_slice object, id, url;
    struct download_link link = {.id = ""};
    char name[DOWNLOAD_LINK_NAME_SIZE];
    int r = json_text_check(result, len, &object, NULL);

    if (r < 0)
        return r;
    if (json_find(object, "execution_id", &id) && id.len > 2)
        (void)snprintf(link.id, sizeof(link.id), "%.*s", (int)id.len - 2, id.data + 1);
    if (!json_find(object, "files_url", &url) || json_slice_is(url, "null"))
        url = (struct json_slice){result + len, 0}; /* nothing to replace */
    (void)snprintf(link.tenant, sizeof(link.tenant), "%s", tenant);
    if (!ids_valid(ID_EXECUTION, link.id))
        return -EINVAL;
    r = buf_append(out, result, (size_t)(url.data - result));
    if (r < 0)
        return r;
    if (url.len > 0) {
        r = download_links_name(links, &link, now_s + DOWNLOAD_LINK_SECONDS, name);
        if (r < 0)
            return r;
        r = buf_printf(out, "\"%s" DOWNLOAD_LINK_PATH "%s\"", base, name);
    }
    url.data += url.len;
    return r < 0 ? r : buf_append(out, url.data, len - (size_t)(url.data - result));
}
