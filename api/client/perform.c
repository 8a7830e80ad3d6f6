/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1.1 request by libcurl: over a unix socket or to a URL. */
#include "api/client/client.h"
#include "api/client/sse.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERROR_BODY_MAX  (64u * 1024u)
#define URL_MAX         65536u
#define TYPE_MAX        128u
#define CONNECT_WAIT_MS 15000L
#define SEEN            "Skillvm-Seen"
#define EXPECT_MIN      (2u << 20) /* above what libcurl asks for itself */

struct transfer {
    const struct skillvm_request *request;
    CURL *curl;
    struct curl_slist *headers;
    curl_mime *mime;
    struct buf url;
    struct buf error_body;
    struct sse sse;
    bool is_events;
    int result; /* of a callback, or of ours between them */
    bool is_regular;
    uint64_t upload_at;
    uint64_t upload_len; /* of a regular file */
    char detail[CURL_ERROR_SIZE];
};

static size_t on_write(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    const struct skillvm_request *request = t->request;
    size_t len = size * n;
    long status = 0;
    char *type = NULL;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) {
        buf_append_clipped(&t->error_body, data, len);
        return len;
    }
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    t->is_events = type && strncasecmp(type, "text/event-stream", 17) == 0;
    if (t->is_events && request->on_event)
        t->result = sse_push(&t->sse, data, len);
    else if (request->on_body)
        t->result = request->on_body(request->ctx, type ? type : "", data, len);
    return t->result < 0 ? CURL_WRITEFUNC_ERROR : len;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct transfer *t = user;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    if (!t->request->should_stop || !t->request->should_stop(t->request->ctx))
        return 0;
    t->result = -EINTR;
    return 1;
}

static size_t on_read(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    int fd = t->request->upload->fd;
    ssize_t got = t->is_regular ? fd_pread_full(fd, data, size * n, t->upload_at)
                                : fd_read_full(fd, data, size * n);

    if (got < 0)
        return CURL_READFUNC_ABORT;
    t->upload_at += (uint64_t)got;
    return (size_t)got;
}

static int on_seek(void *user, curl_off_t offset, int origin)
{
    struct transfer *t = user;

    if (!t->is_regular || origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    t->upload_at = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void add_header(struct transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);

    if (longer)
        t->headers = longer;
    else if (t->result == 0)
        t->result = -ENOMEM;
}

/* A media type of the caller's must not become another header. */
static void add_typed(struct transfer *t, const char *name, const char *type)
{
    char line[TYPE_MAX];
    int n = snprintf(line, sizeof(line), "%s: %s", name, type);

    if (!strpbrk(type, "\r\n") && n < (int)sizeof(line))
        add_header(t, line);
    else if (t->result == 0)
        t->result = -EINVAL;
}

/* Whoever is asked finds what this handle knows of. */
static void add_seen(struct transfer *t, struct skillvm *client)
{
    char line[TYPE_MAX];
    uint64_t seen[2];

    pthread_mutex_lock(&client->lock);
    memcpy(seen, client->seen, sizeof(seen));
    pthread_mutex_unlock(&client->lock);
    if (seen[0] == 0 && seen[1] == 0)
        return;
    (void)snprintf(line, sizeof(line), SEEN ": %llu.%llu", (unsigned long long)seen[0],
                   (unsigned long long)seen[1]);
    add_header(t, line);
}

/*
 * Answers may come in another order than they were made: the most counts. Where a node is not
 * as far the next request is made without, for in a fleet that was made anew none will ever be.
 */
static void note_seen(const struct transfer *t, struct skillvm *client, long status)
{
    struct curl_header *header;
    unsigned long long seen[2];
    char rest;
    bool is_there = !curl_easy_header(t->curl, SEEN, 0, CURLH_HEADER, -1, &header) &&
                    sscanf(header->value, "%20llu.%20llu%c", &seen[0], &seen[1], &rest) == 2;

    pthread_mutex_lock(&client->lock);
    for (int i = 0; i < 2; i++) {
        if (status == 503)
            client->seen[i] = 0;
        else if (is_there && seen[i] > client->seen[i])
            client->seen[i] = seen[i];
    }
    pthread_mutex_unlock(&client->lock);
}

static const char *upload_type(const struct skillvm_upload *upload)
{
    return upload->type ? upload->type : "application/octet-stream";
}

static int add_parts(struct transfer *t)
{
    const struct skillvm_request *request = t->request;
    const struct skillvm_upload *upload = request->upload;
    const char *filename = upload->filename ? upload->filename : upload->part;
    curl_mimepart *json = request->json ? curl_mime_addpart(t->mime) : NULL;
    curl_mimepart *file = curl_mime_addpart(t->mime);

    if ((request->json && !json) || !file)
        return -ENOMEM;
    if (json && (curl_mime_name(json, "request") || curl_mime_type(json, "application/json") ||
                 curl_mime_data(json, request->json, CURL_ZERO_TERMINATED)))
        return -ENOMEM;
    if (curl_mime_name(file, upload->part) || curl_mime_filename(file, filename) ||
        curl_mime_type(file, upload_type(upload)) ||
        curl_mime_data_cb(file, t->is_regular ? (curl_off_t)t->upload_len : -1, on_read,
                          on_seek, NULL, t))
        return -ENOMEM;
    return curl_easy_setopt(t->curl, CURLOPT_MIMEPOST, t->mime) ? -ENOMEM : 0;
}

static int set_upload(struct transfer *t)
{
    const struct skillvm_upload *upload = t->request->upload;
    struct stat st;

    if (fstat(upload->fd, &st) < 0)
        return -errno;
    t->is_regular = S_ISREG(st.st_mode);
    t->upload_len = t->is_regular ? (uint64_t)st.st_size : 0;
    if (upload->part) {
        t->mime = curl_mime_init(t->curl);
        return t->mime ? add_parts(t) : -ENOMEM;
    }
    if (t->request->json)
        return -EINVAL;
    curl_easy_setopt(t->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(t->curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(t->curl, CURLOPT_READDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(t->curl, CURLOPT_SEEKDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     t->is_regular ? (curl_off_t)t->upload_len : (curl_off_t)-1);
    add_typed(t, "Content-Type", upload_type(upload));
    if (!t->is_regular)
        add_header(t, "Transfer-Encoding: chunked");
    return 0;
}

static int set_body(struct transfer *t)
{
    const struct skillvm_request *request = t->request;

    if (request->upload)
        return set_upload(t);
    if (!request->json)
        return 0;
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request->json));
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, request->json);
    add_header(t, "Content-Type: application/json");
    return 0;
}

static int set_options(struct transfer *t, struct skillvm *client)
{
    const struct skillvm_request *request = t->request;
    CURL *curl = t->curl;
    int result;

    t->result = buf_printf(&t->url, "%s%s", client->url, request->path);
    add_typed(t, "Accept", request->accept ? request->accept : "*/*");
    if (client->auth)
        add_header(t, client->auth);
    if (client->tenant)
        add_header(t, client->tenant);
    add_seen(t, client);
    result = set_body(t);
    if (result < 0)
        return result;
    /* A round trip before a body only where it is large: then a refusal costs no sending. */
    if (!(request->upload && t->is_regular && t->upload_len >= EXPECT_MIN))
        add_header(t, "Expect:");
    if (t->result < 0)
        return t->result;
    if (!buf_cstr(&t->url) || curl_easy_setopt(curl, CURLOPT_URL, t->url.data) ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->headers) ||
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https"))
        return -ENOMEM;
    if (client->socket_path &&
        (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket_path) ||
         curl_easy_setopt(curl, CURLOPT_PROXY, "")))
        return -ENOMEM;
    if (request->method && curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method))
        return -ENOMEM;
    if (request->method && strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_WAIT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    return 0;
}

/* The first check of {"status","checks"} that does not say ok, or NULL. */
static const cJSON *find_check(const cJSON *json)
{
    const cJSON *check;

    cJSON_ArrayForEach(check, cJSON_GetObjectItemCaseSensitive(json, "checks")) {
        const char *text = cJSON_GetStringValue(check);
        if (text && strcmp(text, "ok") != 0)
            return check;
    }
    return NULL;
}

static const char *text_of(const cJSON *json, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

/*
 * The daemon's {"error", "message"}, or {"status", "checks"} of GET /ready, whose checks say
 * what it is waiting for or, with status "failed", why that will never come.
 */
static int explain_status(struct transfer *t, long status, struct skillvm_error *error)
{
    const char *body = buf_cstr(&t->error_body);
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    const char *code = text_of(json, "error"), *message = text_of(json, "message");
    const char *state = text_of(json, "status");
    const cJSON *check = state ? find_check(json) : NULL;
    curl_off_t retry_after = 0;
    int result;

    if (check && strcmp(state, "failed") == 0)
        result =
            client_fail(error, ENOTRECOVERABLE, "%s: %s", check->string, check->valuestring);
    else if (check)
        result = client_fail(error, EREMOTEIO, "%s: %s", check->string, check->valuestring);
    else if (message)
        result = client_fail(error, EREMOTEIO, "%s%s%s%s", message, code ? " (" : "",
                             code ? code : "", code ? ")" : "");
    else
        result =
            client_fail(error, EREMOTEIO, "the daemon answered with HTTP status %ld", status);
    curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &retry_after);
    if (error) {
        error->http_status = (int)status;
        error->retry_after_s = retry_after > 0 ? (unsigned)retry_after : 0;
        (void)snprintf(error->name, sizeof(error->name), "%s",
                       code    ? code
                       : check ? state
                               : "");
    }
    cJSON_Delete(json);
    return result;
}

static int explain_curl(const struct transfer *t, const struct skillvm *client, CURLcode code,
                        struct skillvm_error *error)
{
    const char *where = client->socket_path ? client->socket_path : client->url;
    long os_error = 0;

    curl_easy_getinfo(t->curl, CURLINFO_OS_ERRNO, &os_error);
    if (code == CURLE_COULDNT_CONNECT && os_error == EACCES)
        return client_fail(error, EACCES, "%s may not be opened by this user", where);
    if (code == CURLE_COULDNT_CONNECT && (os_error == ENOENT || os_error == ECONNREFUSED))
        return client_fail(error, (int)os_error, "no daemon listens on %s", where);
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return client_fail(error, ENOENT, "there is no such host: %s", where);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return client_fail(error, ETIMEDOUT, "the daemon did not answer in time");
    if (code == CURLE_SEND_ERROR && t->request->upload)
        return client_fail(error, EPIPE,
                           "the daemon stopped taking what was sent, which may be too large");
    return client_fail(error, EIO, "talking to the daemon failed: %s",
                       t->detail[0] ? t->detail : curl_easy_strerror(code));
}

/* What a callback or the reading of events ended the call with. */
static int explain_result(const struct transfer *t, struct skillvm_error *error)
{
    if (t->result == -EINTR)
        return client_fail(error, EINTR, "interrupted");
    if (t->result == -E2BIG)
        return client_fail(error, E2BIG, "the daemon sent more than fits");
    if (t->result == -ENOMEM)
        return client_fail(error, ENOMEM, "out of memory");
    return client_fail(error, -t->result, "the call was ended: %s", strerror(-t->result));
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_ALL);
}

/* The client's idle transfer, with its connection, or a new one. */
static CURL *take_curl(struct skillvm *client)
{
    CURL *curl;

    pthread_once(&curl_once, init_curl);
    pthread_mutex_lock(&client->lock);
    curl = client->idle;
    client->idle = NULL;
    pthread_mutex_unlock(&client->lock);
    return curl ? curl : curl_easy_init();
}

static void give_back(struct skillvm *client, CURL *curl)
{
    curl_easy_reset(curl);
    pthread_mutex_lock(&client->lock);
    if (!client->idle) {
        client->idle = curl;
        curl = NULL;
    }
    pthread_mutex_unlock(&client->lock);
    curl_easy_cleanup(curl);
}

void perform_end_idle(void *idle)
{
    curl_easy_cleanup(idle);
}

static bool good_path(const char *path)
{
    if (!path || path[0] != '/')
        return false;
    for (; *path; path++) {
        if (*path <= ' ' || *path == 0x7f)
            return false;
    }
    return true;
}

static int perform(struct skillvm *client, struct transfer *t, int *ret_status,
                   struct skillvm_error *error)
{
    long status = 0;
    CURLcode code;
    int result = set_options(t, client);

    if (result == -ENOMEM)
        return client_fail(error, ENOMEM, "out of memory");
    if (result == -E2BIG)
        return client_fail(error, ENAMETOOLONG, "the path is too long");
    if (result < 0)
        return client_fail(error, -result, "the request cannot be made: %s", strerror(-result));
    code = curl_easy_perform(t->curl);
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    note_seen(t, client, status);
    if (t->result < 0)
        return explain_result(t, error);
    if (status >= 300)
        return explain_status(t, status, error);
    if (code != CURLE_OK)
        return explain_curl(t, client, code, error);
    if (ret_status)
        *ret_status = (int)status;
    return 0;
}

int skillvm_perform(struct skillvm *client, const struct skillvm_request *request,
                    int *ret_status, struct skillvm_error *error)
{
    struct transfer t = {
        .request = request,
        .url = buf_init(URL_MAX),
        .error_body = buf_init(ERROR_BODY_MAX),
    };
    int result;

    if (!good_path(request->path))
        return client_fail(error, EINVAL, "a path begins with / and is percent-encoded");
    t.curl = take_curl(client);
    if (!t.curl)
        return client_fail(error, ENOMEM, "out of memory");
    sse_init(&t.sse, CLIENT_ANSWER_MAX, request->on_event, request->ctx);
    result = perform(client, &t, ret_status, error);
    give_back(client, t.curl);
    curl_mime_free(t.mime);
    curl_slist_free_all(t.headers);
    sse_finish(&t.sse);
    buf_finish(&t.url);
    buf_finish(&t.error_body);
    return result;
}
