/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/client.h"

#include "base/fd.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ERROR_BODY_MAX (64u * 1024u)
#define URL_MAX        10240u

struct transfer {
    const struct client_call *call;
    CURL *curl;
    struct buf error_body;
    int result; /* of on_body or should_stop */
    struct err *err;
    uint64_t archive_at;
};

static size_t on_write(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    size_t len = size * n;
    long status = 0;
    const char *type = NULL;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) {
        buf_append_clipped(&t->error_body, data, len);
        return len;
    }
    if (!t->call->on_body)
        return len;
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    bool is_events = type && strncasecmp(type, "text/event-stream", 17) == 0;
    t->result = t->call->on_body(t->call->ctx, is_events, data, len, t->err);
    return t->result ? CURL_WRITEFUNC_ERROR : len;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct transfer *t = user;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    if (!t->call->should_stop || !t->call->should_stop(t->call->ctx))
        return 0;
    t->result = err_set(t->err, EINTR, "interrupted");
    return 1;
}

static size_t on_archive_read(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    ssize_t got = fd_pread_full(t->call->archive_fd, data, size * n, t->archive_at);

    if (got < 0)
        return CURL_READFUNC_ABORT;
    t->archive_at += (uint64_t)got;
    return (size_t)got;
}

static int on_archive_seek(void *user, curl_off_t offset, int origin)
{
    struct transfer *t = user;

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    t->archive_at = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int add_parts(struct transfer *t, curl_mime *mime)
{
    const char *name = t->call->archive_part ? t->call->archive_part : "skill_archive";
    curl_mimepart *request = t->call->json ? curl_mime_addpart(mime) : NULL;
    curl_mimepart *archive = curl_mime_addpart(mime);
    struct stat st;

    if ((t->call->json && !request) || !archive || fstat(t->call->archive_fd, &st) < 0)
        return -ENOMEM;
    if (request &&
        (curl_mime_name(request, "request") || curl_mime_type(request, "application/json") ||
         curl_mime_data(request, t->call->json, t->call->json_len)))
        return -ENOMEM;
    if (curl_mime_name(archive, name) || curl_mime_filename(archive, name) ||
        curl_mime_type(archive, "application/octet-stream") ||
        curl_mime_data_cb(archive, st.st_size, on_archive_read, on_archive_seek, NULL, t))
        return -ENOMEM;
    return 0;
}

/*
 * The daemon's {"error", "message"}, or {"status", "checks"} of GET /ready, whose one check
 * says what it is waiting for or, with status "failed", why that will never come.
 */
static int explain_status(struct transfer *t, long status, struct err *err)
{
    const char *body = buf_cstr(&t->error_body);
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    const char *code = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "error"));
    const char *message =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "message"));
    const cJSON *checks = cJSON_GetObjectItemCaseSensitive(json, "checks");
    const char *check = checks ? cJSON_GetStringValue(checks->child) : NULL;
    int result;

    const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "status"));
    if (check && state && strcmp(state, "failed") == 0)
        result = err_set(err, ENOTRECOVERABLE, "%s", check);
    else if (check)
        result = err_set(err, EREMOTEIO, "%s", check);
    else if (message)
        result = err_set(err, EREMOTEIO, "%s%s%s%s", message, code ? " (" : "",
                         code ? code : "", code ? ")" : "");
    else
        result = err_set(err, EREMOTEIO, "the daemon answered with HTTP status %ld", status);
    cJSON_Delete(json);
    return result;
}

static int explain_curl(struct transfer *t, CURLcode code, const char *socket_path,
                        const char *detail, struct err *err)
{
    pid_t pid;

    if (t->result)
        return t->result;
    if (code == CURLE_COULDNT_CONNECT) {
        int result = client_find_daemon(socket_path, &pid);
        if (result == -ENOENT || result == -ECONNREFUSED)
            return err_set(err, -result, "no daemon listens on %s; start one with `skillvm up`",
                           socket_path);
        if (result == -EACCES)
            return err_set(err, EACCES, "%s may not be opened by this user", socket_path);
    }
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(err, ETIMEDOUT, "the daemon did not answer in time");
    return err_set(err, EIO, "talking to the daemon failed: %s",
                   detail[0] ? detail : curl_easy_strerror(code));
}

static int set_options(struct transfer *t, const char *socket_path, const char *url,
                       struct curl_slist *headers, char *detail)
{
    CURL *curl = t->curl;
    const struct client_call *call = t->call;

    if (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path) ||
        curl_easy_setopt(curl, CURLOPT_URL, url) ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers))
        return -ENOMEM;
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    if (call->method)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->json && call->archive_fd < 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->json_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->json);
    }
    return 0;
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_NOTHING);
}

static struct curl_slist *make_headers(const struct client_call *call)
{
    char accept[128];
    struct curl_slist *headers = NULL;

    snprintf(accept, sizeof(accept), "Accept: %s", call->accept ? call->accept : "*/*");
    const char *lines[] = {
        accept,
        "Expect:", /* no round trip before a body */
        call->json && call->archive_fd < 0 ? "Content-Type: application/json" : NULL,
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct curl_slist *longer = lines[i] ? curl_slist_append(headers, lines[i]) : headers;
        if (!longer) {
            curl_slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

int client_call(const char *socket_path, const struct client_call *call, long *ret_status,
                struct err *err)
{
    struct transfer t = {.call = call, .error_body = buf_init(ERROR_BODY_MAX), .err = err};
    char url[URL_MAX], detail[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = make_headers(call);
    curl_mime *mime = NULL;
    long status = 0;
    int result = -ENOMEM;

    pthread_once(&curl_once, init_curl);
    if ((size_t)snprintf(url, sizeof(url), "http://localhost%s", call->path) >= sizeof(url)) {
        curl_slist_free_all(headers);
        return err_set(err, ENAMETOOLONG, "the path is too long");
    }
    t.curl = curl_easy_init();
    if (!t.curl || !headers || set_options(&t, socket_path, url, headers, detail))
        goto out;
    if (call->archive_fd >= 0) {
        mime = curl_mime_init(t.curl);
        if (!mime || add_parts(&t, mime) || curl_easy_setopt(t.curl, CURLOPT_MIMEPOST, mime))
            goto out;
    }

    CURLcode code = curl_easy_perform(t.curl);
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &status);
    if (t.result == 0 && status >= 300)
        result = explain_status(&t, status, err);
    else if (code != CURLE_OK)
        result = explain_curl(&t, code, socket_path, detail, err);
    else
        result = 0;
out:
    curl_mime_free(mime);
    curl_easy_cleanup(t.curl);
    curl_slist_free_all(headers);
    buf_finish(&t.error_body);
    if (ret_status)
        *ret_status = status;
    return result == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : result;
}

static int append_body(void *ctx, bool is_events, const void *data, size_t len, struct err *err)
{
    int result = buf_append(ctx, data, len);

    (void)is_events;
    return result ? err_set(err, -result, "the daemon's answer is too large") : 0;
}

int client_get(const char *socket_path, const char *path, uint64_t timeout_ms, struct buf *body,
               long *ret_status, struct err *err)
{
    struct client_call call = {
        .path = path,
        .archive_fd = -1,
        .timeout_ms = timeout_ms,
        .on_body = append_body,
        .ctx = body,
    };

    return client_call(socket_path, &call, ret_status, err);
}

int client_delete(const char *socket_path, const char *path, uint64_t timeout_ms,
                  struct err *err)
{
    struct client_call call = {
        .path = path, .method = "DELETE", .archive_fd = -1, .timeout_ms = timeout_ms};

    return client_call(socket_path, &call, NULL, err);
}

struct download {
    int fd;
    uint64_t left;
};

static int write_body(void *ctx, bool is_events, const void *data, size_t len, struct err *err)
{
    struct download *d = ctx;

    (void)is_events;
    if (len > d->left)
        return err_set(err, EFBIG, "the artifacts are larger than the daemon may send");
    d->left -= len;
    int result = fd_write_full(d->fd, data, len);
    return result ? err_set_errno(err, -result, "cannot write the artifacts") : 0;
}

int client_download(const char *socket_path, const char *path, int fd, uint64_t max_bytes,
                    struct err *err)
{
    struct download d = {fd, max_bytes};
    struct client_call call = {
        .path = path, .archive_fd = -1, .on_body = write_body, .ctx = &d};

    return client_call(socket_path, &call, NULL, err);
}

int client_find_daemon(const char *socket_path, pid_t *ret_pid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (strlen(socket_path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, socket_path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    *ret_pid = peer.pid;
    return 0;
}
