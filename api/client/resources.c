/* SPDX-License-Identifier: Apache-2.0 */
/* What libskillvm asks and sends without events: skills, executions, files, tools. */
#include "api/client/client.h"
#include "base/fd.h"
#include "base/percent.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const struct skillvm_request get = {.timeout_ms = CLIENT_SHORT_WAIT_MS};
static const struct skillvm_request get_long = {.timeout_ms = CLIENT_LONG_WAIT_MS};
static const struct skillvm_request delete = {.method = "DELETE",
                                              .timeout_ms = CLIENT_SHORT_WAIT_MS};
static const struct skillvm_request delete_long = {.method = "DELETE",
                                                   .timeout_ms = CLIENT_LONG_WAIT_MS};

/* client_fetch() at a path. */
static int fetch_path(struct skillvm *client, const struct skillvm_request *request,
                      struct buf *path, char **ret_body, size_t *ret_len,
                      struct skillvm_error *error)
{
    struct skillvm_request at = *request;

    at.path = path->error ? NULL : buf_cstr(path);
    if (!at.path)
        return client_fail(error, path->error == -ENOMEM ? ENOMEM : ENAMETOOLONG,
                           "the name is too long");
    return client_fetch(client, &at, ret_body, ret_len, error);
}

/* The same with the path of percent_printf(). */
static int fetch_at(struct skillvm *client, const struct skillvm_request *request,
                    char **ret_body, size_t *ret_len, struct skillvm_error *error,
                    const char *format, ...)
{
    _cleanup_buf_ struct buf path = buf_init(CLIENT_PATH_MAX);
    va_list args;

    va_start(args, format);
    (void)percent_vprintf(&path, format, args);
    va_end(args);
    return fetch_path(client, request, &path, ret_body, ret_len, error);
}

static int push(struct skillvm *client, const char *path, int fd, char **ret_json,
                struct skillvm_error *error)
{
    const struct skillvm_upload upload = {.fd = fd};
    const struct skillvm_request request = {
        .path = path, .upload = &upload, .timeout_ms = CLIENT_LONG_WAIT_MS};

    return client_fetch(client, &request, ret_json, NULL, error);
}

int skillvm_push_skill(struct skillvm *client, int fd, char **ret_json,
                       struct skillvm_error *error)
{
    return push(client, "/v1/skills", fd, ret_json, error);
}

int skillvm_replace_skill(struct skillvm *client, int fd, char **ret_json,
                          struct skillvm_error *error)
{
    return push(client, "/v1/skills?replace=true", fd, ret_json, error);
}

int skillvm_list_skills(struct skillvm *client, char **ret_json, struct skillvm_error *error)
{
    return skillvm_request(client, "GET", "/v1/skills", NULL, ret_json, error);
}

int skillvm_get_skill(struct skillvm *client, const char *name, const char *version,
                      char **ret_json, struct skillvm_error *error)
{
    return fetch_at(client, &get, ret_json, NULL, error, "/v1/skills/%s/%s", name,
                    version ? version : "latest");
}

int skillvm_remove_skill(struct skillvm *client, const char *name, const char *version,
                         struct skillvm_error *error)
{
    return fetch_at(client, &delete_long, NULL, NULL, error, "/v1/skills/%s/%s", name, version);
}

int skillvm_cancel(struct skillvm *client, const char *execution_id,
                   struct skillvm_error *error)
{
    return fetch_at(client, &delete, NULL, NULL, error, "/v1/executions/%s", execution_id);
}

int skillvm_get_execution(struct skillvm *client, const char *execution_id, char **ret_json,
                          struct skillvm_error *error)
{
    return fetch_at(client, &get, ret_json, NULL, error, "/v1/executions/%s", execution_id);
}

int skillvm_list_executions(struct skillvm *client, const struct skillvm_filter *filter,
                            char **ret_json, struct skillvm_error *error)
{
    static const struct skillvm_filter all;
    const struct skillvm_filter *f = filter ? filter : &all;
    const struct {
        const char *format, *value;
    } parts[] = {{"skill=%s", f->skill}, {"status=%s", f->status}, {"cursor=%s", f->cursor}};
    _cleanup_buf_ struct buf path = buf_init(CLIENT_PATH_MAX);
    const char *separator = "?";

    (void)buf_printf(&path, "/v1/executions");
    if (f->limit) {
        (void)buf_printf(&path, "?limit=%u", f->limit);
        separator = "&";
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!parts[i].value)
            continue;
        (void)buf_append(&path, separator, 1);
        (void)percent_printf(&path, parts[i].format, parts[i].value);
        separator = "&";
    }
    return fetch_path(client, &get, &path, ret_json, NULL, error);
}

int skillvm_get_logs(struct skillvm *client, const char *execution_id, char **ret_text,
                     size_t *ret_len, struct skillvm_error *error)
{
    return fetch_at(client, &get_long, ret_text, ret_len, error, "/v1/executions/%s/logs",
                    execution_id);
}

struct download {
    int fd;
    int failed; /* of writing */
    uint64_t left;
};

static int write_body(void *ctx, const char *type, const void *data, size_t len)
{
    struct download *d = ctx;

    (void)type;
    if (len > d->left)
        return -E2BIG;
    d->left -= len;
    d->failed = fd_write_full(d->fd, data, len);
    return d->failed;
}

static int download(struct skillvm *client, struct buf *url, int fd, uint64_t max_bytes,
                    struct skillvm_error *error)
{
    struct download d = {.fd = fd, .left = max_bytes ? max_bytes : UINT64_MAX};
    struct skillvm_request request = {.on_body = write_body, .ctx = &d};
    int result;

    request.path = url->error ? NULL : buf_cstr(url);
    result = request.path ? skillvm_perform(client, &request, NULL, error)
                          : client_fail(error, ENAMETOOLONG, "the name is too long");
    if (d.failed)
        result = client_fail(error, -d.failed, "cannot write what is downloaded: %s",
                             strerror(-d.failed));
    return result;
}

int skillvm_download(struct skillvm *client, const char *execution_id, const char *path, int fd,
                     uint64_t max_bytes, struct skillvm_error *error)
{
    _cleanup_buf_ struct buf url = buf_init(CLIENT_PATH_MAX);

    (void)percent_printf(&url, path ? "/v1/executions/%s/files/%S" : "/v1/executions/%s/files",
                         execution_id, path);
    return download(client, &url, fd, max_bytes, error);
}

int skillvm_list_sessions(struct skillvm *client, char **ret_json, struct skillvm_error *error)
{
    return skillvm_request(client, "GET", "/v1/sessions", NULL, ret_json, error);
}

int skillvm_get_session(struct skillvm *client, const char *session_id, char **ret_json,
                        struct skillvm_error *error)
{
    return fetch_at(client, &get, ret_json, NULL, error, "/v1/sessions/%s", session_id);
}

int skillvm_download_from_session(struct skillvm *client, const char *session_id,
                                  const char *path, int fd, uint64_t max_bytes,
                                  struct skillvm_error *error)
{
    _cleanup_buf_ struct buf url = buf_init(CLIENT_PATH_MAX);

    (void)percent_printf(&url, "/v1/sessions/%s/files/%S", session_id, path);
    return download(client, &url, fd, max_bytes, error);
}

int skillvm_remove_session_file(struct skillvm *client, const char *session_id,
                                const char *path, struct skillvm_error *error)
{
    return fetch_at(client, &delete, NULL, NULL, error, "/v1/sessions/%s/files/%S", session_id,
                    path);
}

int skillvm_remove_session(struct skillvm *client, const char *session_id,
                           struct skillvm_error *error)
{
    return fetch_at(client, &delete, NULL, NULL, error, "/v1/sessions/%s", session_id);
}

int skillvm_upload(struct skillvm *client, int fd, const char *name, char **ret_json,
                   struct skillvm_error *error)
{
    const struct skillvm_upload upload = {.fd = fd};
    const struct skillvm_request request = {.upload = &upload};

    return fetch_at(client, &request, ret_json, NULL, error, "/v1/files?name=%s", name);
}

int skillvm_list_tools(struct skillvm *client, const char *format, char **ret_json,
                       struct skillvm_error *error)
{
    return fetch_at(client, &get_long, ret_json, NULL, error, "/v1/tools?format=%s", format);
}

int skillvm_ready(struct skillvm *client, struct skillvm_error *error)
{
    const struct skillvm_request request = {.path = "/ready", .timeout_ms = 10000};

    return client_fetch(client, &request, NULL, NULL, error);
}
