/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over the unix socket, against a server that answers once with fixed bytes. */
#include "api/cli/client.h"

#include "base/fd.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/cli-client-XXXXXX";
static char socket_path[64];

struct server {
    int listen_fd;
    const char *answer;
    char request[65536]; /* what came, NUL-terminated */
    const char *until;   /* read until this text came */
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    int fd = accept(s->listen_fd, NULL, NULL);
    size_t len = 0;

    while (fd >= 0 && !strstr(s->request, s->until) && len < sizeof(s->request) - 1) {
        ssize_t n = read(fd, s->request + len, sizeof(s->request) - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        s->request[len] = '\0';
    }
    fd_write_full(fd, s->answer, strlen(s->answer));
    fd_close(&fd);
    return NULL;
}

static void start(struct server *s, const char *answer, const char *until)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *s = (struct server){.answer = answer, .until = until};
    strcpy(address.sun_path, socket_path);
    unlink(socket_path);
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(s->listen_fd, 4), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    close(s->listen_fd);
    unlink(socket_path);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(dir);
}

static int get(const char *answer, struct buf *body, long *ret_status, struct err *err)
{
    struct server s;

    start(&s, answer, "\r\n\r\n");
    int result = client_get(socket_path, "/x", 5000, body, ret_status, err);
    stop(&s);
    assert_non_null(strstr(s.request, "GET /x HTTP/1.1\r\n"));
    return result;
}

static void answers(void **state)
{
    struct buf body = buf_init(100);
    long status = 0;
    (void)state;

    assert_int_equal(
        get("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", &body, &status, NULL), 0);
    assert_int_equal(status, 200);
    assert_string_equal(buf_cstr(&body), "ok");
    buf_finish(&body);
}

static void refusals(void **state)
{
    static const struct {
        const char *answer;
        int result;
        const char *message;
    } cases[] = {
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 36\r\n\r\n"
         "{\"error\":\"not_found\",\"message\":\"gone\"}",
         -EREMOTEIO, "HTTP status 404"}, /* cut off: no JSON */
        {"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"
         "{\"error\":\"not_found\",\"message\":\"gone\"}",
         -EREMOTEIO, "gone (not_found)"},
        {"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
         "{\"status\":\"not_ready\",\"checks\":{\"snapshot\":\"booting\"}}",
         -EREMOTEIO, "booting"},
        {"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
         "{\"status\":\"failed\",\"checks\":{\"snapshot\":\"no KVM\"}}",
         -ENOTRECOVERABLE, "no KVM"},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", -EREMOTEIO, "HTTP status 500"},
        {"no HTTP at all\r\n\r\n", -EIO, "failed"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", -EIO, "failed"},
        {"", -EIO, "failed"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf body = buf_init(100);
        struct err err = {0};
        assert_int_equal(get(cases[i].answer, &body, NULL, &err), cases[i].result);
        if (!strstr(err.message, cases[i].message))
            fail_msg("\"%s\" does not say \"%s\"", err.message, cases[i].message);
        buf_finish(&body);
    }
}

static void too_large(void **state)
{
    struct buf body = buf_init(4);
    struct err err = {0};
    (void)state;

    assert_int_equal(
        get("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", &body, NULL, &err), -E2BIG);
    assert_non_null(strstr(err.message, "too large"));
    buf_finish(&body);
}

static void nobody(void **state)
{
    struct buf body = buf_init(4);
    struct err err = {0};
    struct server s;
    pid_t pid = 0;
    (void)state;

    assert_int_equal(client_get(socket_path, "/x", 1000, &body, NULL, &err), -ENOENT);
    assert_non_null(strstr(err.message, "skillvm up"));
    assert_int_equal(client_find_daemon(socket_path, &pid), -ENOENT);

    start(&s, "", "");
    assert_int_equal(client_find_daemon(socket_path, &pid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    close(s.listen_fd);
    err = (struct err){0};
    assert_int_equal(client_get(socket_path, "/x", 1000, &body, NULL, &err), -ECONNREFUSED);
    unlink(socket_path);
}

struct seen {
    struct buf body;
    bool is_events;
};

static int on_body(void *ctx, bool is_events, const void *data, size_t len, struct err *err)
{
    struct seen *seen = ctx;

    (void)err;
    seen->is_events = is_events;
    return buf_append(&seen->body, data, len);
}

static void multipart(void **state)
{
    struct seen seen = {.body = buf_init(1000)};
    struct server s;
    int fd = memfd_create("archive", MFD_CLOEXEC);
    (void)state;

    assert_int_equal(fd_write_full(fd, "the archive", 11), 0);
    struct client_call call = {
        .path = "/v1/executions",
        .accept = "text/event-stream",
        .json = "{\"a\":1}",
        .json_len = 7,
        .archive_fd = fd,
        .on_body = on_body,
        .ctx = &seen,
    };
    start(&s,
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
          "data: x\n\n",
          "--\r\n");
    assert_int_equal(client_call(socket_path, &call, NULL, NULL), 0);
    stop(&s);
    assert_true(seen.is_events);
    assert_string_equal(buf_cstr(&seen.body), "data: x\n\n");
    assert_non_null(strstr(s.request, "POST /v1/executions"));
    assert_non_null(strstr(s.request, "Accept: text/event-stream"));
    assert_non_null(strstr(s.request, "name=\"request\""));
    assert_non_null(strstr(s.request, "{\"a\":1}"));
    assert_non_null(strstr(s.request, "name=\"skill_archive\""));
    assert_non_null(strstr(s.request, "the archive"));
    assert_null(strstr(s.request, "Expect:"));
    buf_finish(&seen.body);
    close(fd);
}

static void deletion(void **state)
{
    struct server s;
    (void)state;

    start(&s, "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", "\r\n\r\n");
    assert_int_equal(client_delete(socket_path, "/v1/executions/e", 5000, NULL), 0);
    stop(&s);
    assert_non_null(strstr(s.request, "DELETE /v1/executions/e HTTP/1.1\r\n"));
}

static bool now(void *ctx)
{
    (void)ctx;
    return true;
}

static void interrupted(void **state)
{
    struct client_call call = {.path = "/x", .archive_fd = -1, .should_stop = now};
    struct err err = {0};
    struct server s;
    (void)state;

    start(&s, "", "never");
    assert_int_equal(client_call(socket_path, &call, NULL, &err), -EINTR);
    /* It may have been too early for a connection, which the server waits for. */
    pid_t pid;
    assert_int_equal(client_find_daemon(socket_path, &pid), 0);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),     cmocka_unit_test(refusals),  cmocka_unit_test(too_large),
        cmocka_unit_test(nobody),      cmocka_unit_test(multipart), cmocka_unit_test(deletion),
        cmocka_unit_test(interrupted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
