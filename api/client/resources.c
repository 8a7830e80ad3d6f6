/* SPDX-License-Identifier: Apache-2.0 */
/* What libskillvm asks and sends without events: skills, executions, files, tools. */
#include "api/client/client.h"
#include "base/fd.h"
#include "base/percent.h"

#include <errno.h>
#include <string.h>

#define PATH_TEXT_MAX 16384u

/* Makes the request at the path, which it takes over. result is that of building it. */
static int fetch_at(struct skillvm *client, struct skillvm_request *request, struct buf *path,
                    int result, char **ret_body, size_t *ret_len, struct skillvm_error *error)
{
    request->path = result == 0 ? buf_cstr(path) : NULL;
    if (request->path)
        result = client_fetch(client, request, ret_body, ret_len, error);
    else
        result = client_fail(error, result == -ENOMEM ? ENOMEM : ENAMETOOLONG,
                             "the name is too long");
    buf_finish(path);
    return result;
}

int skillvm_push_skill(struct skillvm *client, int fd, char **ret_json,
                       struct skillvm_error *error)
{
    const struct skillvm_upload upload = {.fd = fd};
    const struct skillvm_request request = {
        .path = "/v1/skills", .upload = &upload, .timeout_ms = CLIENT_LONG_WAIT_MS};

    return client_fetch(client, &request, ret_json, NULL, error);
}

int skillvm_list_skills(struct skillvm *client, char **ret_json, struct skillvm_error *error)
{
    return skillvm_request(client, "GET", "/v1/skills", NULL, ret_json, error);
}

int skillvm_get_skill(struct skillvm *client, const char *name, const char *version,
                      char **ret_json, struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.timeout_ms = CLIENT_SHORT_WAIT_MS};
    int result = client_path(&path, "/v1/skills/%s/%s", name, version ? version : "latest");

    return fetch_at(client, &request, &path, result, ret_json, NULL, error);
}

int skillvm_remove_skill(struct skillvm *client, const char *name, const char *version,
                         struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.method = "DELETE", .timeout_ms = CLIENT_LONG_WAIT_MS};
    int result = client_path(&path, "/v1/skills/%s/%s", name, version);

    return fetch_at(client, &request, &path, result, NULL, NULL, error);
}

int skillvm_cancel(struct skillvm *client, const char *execution_id,
                   struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.method = "DELETE", .timeout_ms = CLIENT_SHORT_WAIT_MS};
    int result = client_path(&path, "/v1/executions/%s", execution_id);

    return fetch_at(client, &request, &path, result, NULL, NULL, error);
}

int skillvm_get_execution(struct skillvm *client, const char *execution_id, char **ret_json,
                          struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.timeout_ms = CLIENT_SHORT_WAIT_MS};
    int result = client_path(&path, "/v1/executions/%s", execution_id);

    return fetch_at(client, &request, &path, result, ret_json, NULL, error);
}

int skillvm_list_executions(struct skillvm *client, const struct skillvm_filter *filter,
                            char **ret_json, struct skillvm_error *error)
{
    static const struct skillvm_filter all;
    const struct skillvm_filter *f = filter ? filter : &all;
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.timeout_ms = CLIENT_SHORT_WAIT_MS};
    int result = client_path(&path, "/v1/executions");
    const char *separator = "?";

    if (result == 0 && f->limit) {
        (void)buf_printf(&path, "?limit=%u", f->limit);
        separator = "&";
    }
    const char *const keys[] = {"skill", "status", "cursor"};
    const char *const values[] = {f->skill, f->status, f->cursor};
    for (size_t i = 0; result == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!values[i])
            continue;
        (void)buf_printf(&path, "%s%s=", separator, keys[i]);
        (void)percent_append(&path, values[i], strlen(values[i]), false);
        separator = "&";
    }
    return fetch_at(client, &request, &path, result < 0 ? result : path.error, ret_json, NULL,
                    error);
}

int skillvm_get_logs(struct skillvm *client, const char *execution_id, char **ret_text,
                     size_t *ret_len, struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.timeout_ms = CLIENT_LONG_WAIT_MS};
    int result = client_path(&path, "/v1/executions/%s/logs", execution_id);

    return fetch_at(client, &request, &path, result, ret_text, ret_len, error);
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

int skillvm_download(struct skillvm *client, const char *execution_id, const char *path, int fd,
                     uint64_t max_bytes, struct skillvm_error *error)
{
    struct download d = {.fd = fd, .left = max_bytes ? max_bytes : UINT64_MAX};
    struct skillvm_request request = {.on_body = write_body, .ctx = &d};
    struct buf url = buf_init(PATH_TEXT_MAX);
    int result = path ? client_path(&url, "/v1/executions/%s/files/%S", execution_id, path)
                      : client_path(&url, "/v1/executions/%s/files", execution_id);

    request.path = result == 0 ? buf_cstr(&url) : NULL;
    result = request.path ? skillvm_perform(client, &request, NULL, error)
                          : client_fail(error, ENAMETOOLONG, "the name is too long");
    if (d.failed)
        result = client_fail(error, -d.failed, "cannot write what is downloaded: %s",
                             strerror(-d.failed));
    buf_finish(&url);
    return result;
}

int skillvm_upload(struct skillvm *client, int fd, const char *name, char **ret_json,
                   struct skillvm_error *error)
{
    const struct skillvm_upload upload = {.fd = fd};
    struct skillvm_request request = {.upload = &upload};
    struct buf path = buf_init(PATH_TEXT_MAX);
    int result = client_path(&path, "/v1/files?name=%s", name);

    return fetch_at(client, &request, &path, result, ret_json, NULL, error);
}

int skillvm_list_tools(struct skillvm *client, const char *format, char **ret_json,
                       struct skillvm_error *error)
{
    struct buf path = buf_init(PATH_TEXT_MAX);
    struct skillvm_request request = {.timeout_ms = CLIENT_LONG_WAIT_MS};
    int result = client_path(&path, "/v1/tools?format=%s", format);

    return fetch_at(client, &request, &path, result, ret_json, NULL, error);
}

int skillvm_ready(struct skillvm *client, struct skillvm_error *error)
{
    const struct skillvm_request request = {.path = "/ready", .timeout_ms = 10000};

    return client_fetch(client, &request, NULL, NULL, error);
}
