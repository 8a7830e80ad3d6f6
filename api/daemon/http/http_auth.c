/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>

struct bearer {
    unsigned headers;
    char key[HTTP_BEARER_MAX + 1];
};

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

static enum MHD_Result take_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct bearer *b = ctx;

    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) != 0)
        return MHD_YES;
    b->headers++;
    b->key[0] = '\0';
    /* Two of them are as good as none: nobody should have to guess which one counts. */
    if (b->headers == 1 && value)
        http_auth_bearer(value, b->key);
    return MHD_YES;
}

static void refuse(struct http_exchange *x, enum http_unauthorized why, const char *text)
{
    if (x->config->unauthorized)
        x->config->unauthorized(x->config->ctx, why);
    http_reply_error(&x->reply, 401, "unauthorized", "%s", text);
}

void http_auth_check(struct http_exchange *x)
{
    const struct http_origin origin = {.is_unix = !x->request.is_tcp,
                                       .uid = x->conn ? x->conn->uid : (uid_t)-1,
                                       .tenant_header = http_header(x, "X-Tenant-ID")};
    enum http_access access = x->route->access;
    struct caller *caller = &x->request.caller;
    struct bearer bearer = {0};
    bool has_key;
    int r;

    if (access == HTTP_ACCESS_OPEN)
        return;
    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, take_header, &bearer);
    has_key = bearer.headers > 0;
    r = x->config->authorize(x->config->ctx, &origin, has_key ? bearer.key : NULL, caller);
    explicit_bzero(&bearer, sizeof(bearer));
    if (r == -EPERM) {
        http_reply_error(&x->reply, 403, "forbidden", "X-Tenant-ID names another tenant");
    } else if (r == -ENOENT) {
        http_reply_error(&x->reply, 404, "not_found", "X-Tenant-ID names no tenant");
    } else if (r < 0 && r != -EACCES) {
        http_reply_error(&x->reply, 500, "internal_error", "cannot look the key up");
    } else if (r < 0) {
        refuse(x, has_key ? HTTP_UNAUTHORIZED_KEY : HTTP_UNAUTHORIZED_NO_KEY,
               "this needs a key: Authorization: Bearer sk-…");
    } else if (access == HTTP_ACCESS_OPERATOR && !caller->is_operator) {
        refuse(x, HTTP_UNAUTHORIZED_ROLE, "this is the operator's");
    } else if (!caller->is_operator && !http_conns_claim(x->conns, x->conn, caller->tenant)) {
        http_reply_error(&x->reply, 429, "overloaded",
                         "too many requests of this tenant are at work");
        x->reply.retry_after_s = 1;
    } else {
        x->is_known = true;
    }
}
