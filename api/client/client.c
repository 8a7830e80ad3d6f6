/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, errors and texts of libskillvm. */
#include "api/client/client.h"
#include "base/percent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define TEXT_MAX 8192u /* bytes of a URL, a key, a path */

const char *skillvm_version(void)
{
    return SKILLVM_VERSION;
}

int client_fail(struct skillvm_error *error, int code, const char *format, ...)
{
    va_list args;

    if (!error)
        return -code;
    *error = (struct skillvm_error){.code = code};
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
    return -code;
}

int client_fail_buf(struct skillvm_error *error, int result)
{
    return result == -ENOMEM ? client_fail(error, ENOMEM, "out of memory")
                             : client_fail(error, -result, "the daemon's answer is too large");
}

static bool is_url(const char *where)
{
    return strncasecmp(where, "http://", 7) == 0 || strncasecmp(where, "https://", 8) == 0;
}

/* Visible ASCII: nothing that could end a header line or a request line. */
static bool is_plain(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

static int check(const char *where, const char *key, struct skillvm_error *error)
{
    if (!where || !*where)
        return client_fail(error, EINVAL, "name the daemon's socket or URL");
    if (is_url(where)) {
        if (!is_plain(where) || strpbrk(where, "?#") || strlen(where) > TEXT_MAX)
            return client_fail(error, EINVAL, "\"%.200s\" is not the URL of a daemon", where);
    } else if (strstr(where, "://")) {
        return client_fail(error, EINVAL, "\"%.200s\": use http:// or https://", where);
    } else if (strlen(where) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        return client_fail(error, ENAMETOOLONG, "the path of the socket is too long: %.200s",
                           where);
    }
    if (key && (!*key || !is_plain(key) || strlen(key) > TEXT_MAX))
        return client_fail(error, EINVAL, "the key is none: it has no blanks or line ends");
    return 0;
}

int skillvm_open(const char *where, const char *key, struct skillvm **ret_client,
                 struct skillvm_error *error)
{
    struct skillvm *client;
    int result = check(where, key, error);

    if (result < 0)
        return result;
    client = calloc(1, sizeof(*client));
    if (!client)
        return client_fail(error, ENOMEM, "out of memory");
    pthread_mutex_init(&client->lock, NULL);
    client->url = strdup(is_url(where) ? where : "http://localhost");
    for (size_t n = client->url ? strlen(client->url) : 0; n && client->url[n - 1] == '/';)
        client->url[--n] = '\0';
    if (!is_url(where))
        client->socket_path = strdup(where);
    if (key && asprintf(&client->auth, "Authorization: Bearer %s", key) < 0)
        client->auth = NULL;
    if (!client->url || (!is_url(where) && !client->socket_path) || (key && !client->auth)) {
        skillvm_close(client);
        return client_fail(error, ENOMEM, "out of memory");
    }
    *ret_client = client;
    return 0;
}

void skillvm_close(struct skillvm *client)
{
    if (!client)
        return;
    perform_end_idle(client->idle);
    pthread_mutex_destroy(&client->lock);
    if (client->auth)
        explicit_bzero(client->auth, strlen(client->auth));
    free(client->auth);
    free(client->tenant);
    free(client->socket_path);
    free(client->url);
    free(client);
}

int skillvm_set_tenant(struct skillvm *client, const char *tenant, struct skillvm_error *error)
{
    char *line = NULL;

    if (tenant && (!*tenant || strpbrk(tenant, "\r\n") || strlen(tenant) > TEXT_MAX))
        return client_fail(error, EINVAL, "that is no tenant's id or name");
    if (tenant && asprintf(&line, "X-Tenant-ID: %s", tenant) < 0)
        return client_fail(error, ENOMEM, "out of memory");
    free(client->tenant);
    client->tenant = line;
    return 0;
}

void skillvm_free(void *text)
{
    free(text);
}

char *skillvm_escape(const char *text)
{
    _cleanup_buf_ struct buf out = buf_init(SIZE_MAX / 2);

    return percent_append(&out, text, strlen(text), false) < 0 ? NULL : client_steal_text(&out);
}

char *client_steal_text(struct buf *body)
{
    char *text = buf_cstr(body) ? (char *)body->data : NULL;

    if (text)
        *body = buf_init(body->max);
    return text;
}

static int keep_body(void *ctx, const char *type, const void *data, size_t len)
{
    (void)type;
    return buf_append(ctx, data, len);
}

int client_fetch(struct skillvm *client, const struct skillvm_request *request, char **ret_body,
                 size_t *ret_len, struct skillvm_error *error)
{
    _cleanup_buf_ struct buf body = buf_init(CLIENT_ANSWER_MAX);
    struct skillvm_request with_body = *request;
    int result;

    with_body.on_body = keep_body;
    with_body.ctx = &body;
    result = skillvm_perform(client, &with_body, NULL, error);
    if (result == -E2BIG || result == -ENOMEM)
        return client_fail_buf(error, result);
    if (result < 0)
        return result;
    if (!buf_cstr(&body))
        return client_fail_buf(error, -ENOMEM);
    if (ret_len)
        *ret_len = body.len;
    if (ret_body)
        *ret_body = client_steal_text(&body);
    return 0;
}

int skillvm_request(struct skillvm *client, const char *method, const char *path,
                    const char *json, char **ret_body, struct skillvm_error *error)
{
    struct skillvm_request request = {
        .method = method, .path = path, .json = json, .timeout_ms = CLIENT_SHORT_WAIT_MS};

    return client_fetch(client, &request, ret_body, NULL, error);
}
