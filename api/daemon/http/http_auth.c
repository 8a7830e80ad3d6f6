/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include <errno.h>
#include <string.h>

#define RETRY_KEYS_S 5u

void http_auth_bearer(const char *value, char ret[HTTP_BEARER_MAX + 1])
{
    /* RFC 6750's b64token. */
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-._~+/=";
    size_t len;

    ret[0] = '\0';
    if (strncasecmp(value, "Bearer ", 7) != 0)
        return;
    value += 7;
    value += strspn(value, " \t");
    len = strspn(value, allowed);
    if (len > HTTP_BEARER_MAX || value[len + strspn(value + len, " \t")] != '\0')
        return;
    memcpy(ret, value, len);
    ret[len] = '\0';
}

static bool refuse(struct http_exchange *x, enum http_unauthorized why, const char *text)
{
    if (x->config->unauthorized)
        x->config->unauthorized(x->config->ctx, why);
    return http_reply_error(&x->reply, 401, "unauthorized", "%s", text);
}

bool http_auth_check(struct http_exchange *x)
{
    const struct http_origin origin = {.is_unix = !x->conn->is_tcp,
                                       .uid = x->conn->uid,
                                       .tenant_header =
                                           http_head_find(x->head, "X-Tenant-ID", NULL)};
    struct caller *caller = &x->request.caller;
    char key[HTTP_BEARER_MAX + 1] = "";
    const char *value;
    unsigned n;
    int r;

    if (x->route->access == HTTP_ACCESS_OPEN)
        return true;
    value = http_head_find(x->head, "Authorization", &n);
    /* Two of them are as good as none: nobody should have to guess which one counts. */
    if (n == 1)
        http_auth_bearer(value, key);
    r = x->config->authorize(x->config->ctx, &origin, value ? key : NULL, caller);
    explicit_bzero(key, sizeof(key));
    if (r == -EPERM)
        return http_reply_error(&x->reply, 403, "forbidden",
                                "X-Tenant-ID names another tenant");
    if (r == -ENOENT)
        return http_reply_error(&x->reply, 404, "not_found", "X-Tenant-ID names no tenant");
    if (r == -EACCES)
        return value ? refuse(x, HTTP_UNAUTHORIZED_KEY,
                              "the key is wrong: nobody has it, it was revoked, or its tenant "
                              "is disabled")
                     : refuse(x, HTTP_UNAUTHORIZED_NO_KEY,
                              "this needs a key: Authorization: Bearer sk-…");
    if (r == -EAGAIN) {
        http_reply_error(&x->reply, 503, "cluster_unavailable",
                         "this node has been cut off from its cluster for longer than "
                         "cluster.keys_timeout and takes no keys: ask another node");
        x->reply.retry_after_s = RETRY_KEYS_S;
        return false;
    }
    if (r < 0)
        return http_reply_error(&x->reply, 500, "internal_error", "cannot look the key up");
    if (x->route->access == HTTP_ACCESS_OPERATOR && !caller->is_operator)
        return refuse(x, HTTP_UNAUTHORIZED_ROLE, "this is the operator's");
    if (!caller->is_operator && !http_conn_claim(x->conn, caller->tenant)) {
        http_reply_error(&x->reply, 429, "overloaded",
                         "too many requests of this tenant are at work");
        x->reply.retry_after_s = 1;
        return false;
    }
    x->is_known = true;
    return true;
}
