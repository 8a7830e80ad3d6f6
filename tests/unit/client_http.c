/* SPDX-License-Identifier: Apache-2.0 */
/* libskillvm against a server that answers once with fixed bytes. */
#include "api/client/skillvm.h"

#include "api/cli/peer.h"
#include "base/buf.h"
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

static struct skillvm *client_of(const char *where, const char *key)
{
    struct skillvm *client = NULL;

    assert_int_equal(skillvm_open(where, key, &client, NULL), 0);
    return client;
}

static int get(const char *answer, char **ret_body, struct skillvm_error *error)
{
    struct skillvm *client = client_of(socket_path, NULL);
    struct server s;

    start(&s, answer, "\r\n\r\n");
    int result = skillvm_request(client, NULL, "/x?a=%20", NULL, ret_body, error);
    skillvm_close(client);
    stop(&s);
    assert_non_null(strstr(s.request, "GET /x?a=%20 HTTP/1.1\r\n"));
    assert_null(strstr(s.request, "Authorization"));
    return result;
}

static void answers(void **state)
{
    char *body = NULL;
    (void)state;

    assert_int_equal(get("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", &body, NULL), 0);
    assert_string_equal(body, "ok");
    skillvm_free(body);
    assert_int_equal(get("HTTP/1.1 204 None\r\n\r\n", &body, NULL), 0);
    assert_string_equal(body, "");
    skillvm_free(body);
}

static void refusals(void **state)
{
    static const struct {
        const char *answer;
        int result;
        int http_status;
        const char *name;
        const char *message;
    } cases[] = {
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 36\r\n\r\n"
         "{\"error\":\"not_found\",\"message\":\"gone\"}",
         -EREMOTEIO, 404, "", "HTTP status 404"}, /* cut off: no JSON */
        {"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"
         "{\"error\":\"not_found\",\"message\":\"gone\"}",
         -EREMOTEIO, 404, "not_found", "gone (not_found)"},
        {"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
         "{\"status\":\"not_ready\",\"checks\":{\"disk\":\"ok\",\"snapshot\":\"booting\"}}",
         -EREMOTEIO, 503, "not_ready", "booting"},
        {"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
         "{\"status\":\"failed\",\"checks\":{\"snapshot\":\"no KVM\"}}",
         -ENOTRECOVERABLE, 503, "failed", "no KVM"},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", -EREMOTEIO, 500, "",
         "HTTP status 500"},
        {"HTTP/1.1 302 Found\r\nLocation: http://localhost/y\r\nContent-Length: 0\r\n\r\n",
         -EREMOTEIO, 302, "", "HTTP status 302"},
        {"no HTTP at all\r\n\r\n", -EIO, 0, "", "failed"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", -EIO, 0, "", "failed"},
        {"", -EIO, 0, "", "failed"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skillvm_error error = {.code = 77, .retry_after_s = 77};
        char *body = NULL;

        assert_int_equal(get(cases[i].answer, &body, &error), cases[i].result);
        assert_null(body);
        assert_int_equal(error.code, -cases[i].result);
        assert_int_equal(error.http_status, cases[i].http_status);
        assert_int_equal(error.retry_after_s, 0);
        assert_string_equal(error.name, cases[i].name);
        if (!strstr(error.message, cases[i].message))
            fail_msg("\"%s\" does not say \"%s\"", error.message, cases[i].message);
    }
}

static void when_to_come_again(void **state)
{
    struct skillvm_error error;
    (void)state;

    assert_int_equal(get("HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nConnection: close\r\n\r\n"
                         "{\"error\":\"overloaded\",\"message\":\"later\"}",
                         NULL, &error),
                     -EREMOTEIO);
    assert_int_equal(error.http_status, 429);
    assert_int_equal(error.retry_after_s, 7);
    assert_string_equal(error.name, "overloaded");
}

#define OF(status, seen)                                                                       \
    "HTTP/1.1 " status "\r\nSkillvm-Seen: " seen                                               \
    "\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"

/* What answers say of how far a fleet is goes with the next request. */
static void what_was_seen_goes_along(void **state)
{
    static const struct {
        const char *answer;
        const char *sent; /* with it; NULL: nothing of it */
    } cases[] = {
        {OF("200 OK", "7.5"), NULL},
        {OF("404 Not Found", "6.9"), "\r\nSkillvm-Seen: 7.5\r\n"},
        /* What is no such thing changes nothing. */
        {OF("200 OK", "8.x"), "\r\nSkillvm-Seen: 7.9\r\n"},
        {OF("200 OK", "8.9.1"), "\r\nSkillvm-Seen: 7.9\r\n"},
        {OF("503 Service Unavailable", "1.1"), "\r\nSkillvm-Seen: 7.9\r\n"},
        /* It is another fleet, as far as is known. */
        {OF("200 OK", "2.0"), NULL},
        {OF("200 OK", "2.0"), "\r\nSkillvm-Seen: 2.0\r\n"},
    };
    struct skillvm *client = client_of(socket_path, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct server s;

        start(&s, cases[i].answer, "\r\n\r\n");
        (void)skillvm_request(client, NULL, "/x", NULL, NULL, NULL);
        stop(&s);
        if (cases[i].sent ? !strstr(s.request, cases[i].sent)
                          : strstr(s.request, "Skillvm-Seen") != NULL)
            fail_msg("%zu: %s", i, s.request);
    }
    skillvm_close(client);
}

static int refuse_much(void *ctx, const char *type, const void *data, size_t len)
{
    (void)ctx;
    (void)type;
    (void)data;
    return len > 4 ? -E2BIG : 0;
}

static void callbacks_end_it(void **state)
{
    struct skillvm_request request = {.path = "/x", .on_body = refuse_much};
    struct skillvm *client = client_of(socket_path, NULL);
    struct skillvm_error error;
    struct server s;
    (void)state;

    start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", "\r\n\r\n");
    assert_int_equal(skillvm_perform(client, &request, NULL, &error), -E2BIG);
    stop(&s);
    assert_int_equal(error.code, E2BIG);
    skillvm_close(client);
}

static void nobody(void **state)
{
    struct skillvm *client = client_of(socket_path, NULL);
    struct skillvm_error error;
    struct server s;
    pid_t pid = 0;
    (void)state;

    assert_int_equal(skillvm_request(client, "GET", "/x", NULL, NULL, &error), -ENOENT);
    assert_non_null(strstr(error.message, "no daemon listens on /tmp"));
    assert_int_equal(peer_find(socket_path, &pid), -ENOENT);

    start(&s, "", "");
    assert_int_equal(peer_find(socket_path, &pid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    close(s.listen_fd);
    assert_int_equal(skillvm_request(client, "GET", "/x", NULL, NULL, &error), -ECONNREFUSED);
    unlink(socket_path);
    skillvm_close(client);

    client = client_of("http://127.0.0.1:1", NULL);
    assert_int_equal(skillvm_request(client, "GET", "/x", NULL, NULL, &error), -ECONNREFUSED);
    assert_non_null(strstr(error.message, "no daemon listens on http://127.0.0.1:1"));
    skillvm_close(client);
}

static int on_event(void *ctx, const char *name, const char *data, size_t len)
{
    struct buf *seen = ctx;

    return buf_printf(seen, "%s=%.*s;", name, (int)len, data);
}

static void multipart(void **state)
{
    struct buf seen = buf_init(1000);
    struct skillvm *client = client_of(socket_path, NULL);
    struct server s;
    int fd = memfd_create("archive", MFD_CLOEXEC), status = 0;
    (void)state;

    assert_int_equal(fd_write_full(fd, "the archive", 11), 0);
    const struct skillvm_upload upload = {.fd = fd, .part = "skill_archive"};
    const struct skillvm_request request = {
        .path = "/v1/executions",
        .accept = "text/event-stream",
        .json = "{\"a\":1}",
        .upload = &upload,
        .on_event = on_event,
        .ctx = &seen,
    };
    start(&s,
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
          "event: x\ndata: y\n\n",
          "--\r\n");
    assert_int_equal(skillvm_perform(client, &request, &status, NULL), 0);
    stop(&s);
    assert_int_equal(status, 200);
    assert_string_equal(buf_cstr(&seen), "x=y;");
    assert_non_null(strstr(s.request, "POST /v1/executions"));
    assert_non_null(strstr(s.request, "Accept: text/event-stream"));
    assert_non_null(strstr(s.request, "name=\"request\""));
    assert_non_null(strstr(s.request, "{\"a\":1}"));
    assert_non_null(strstr(s.request, "name=\"skill_archive\""));
    assert_non_null(strstr(s.request, "the archive"));
    assert_null(strstr(s.request, "Expect:"));
    buf_finish(&seen);
    close(fd);
    skillvm_close(client);
}

static void bodies_from_files(void **state)
{
    struct skillvm *client = client_of(socket_path, NULL);
    struct server s;
    int fd = memfd_create("file", MFD_CLOEXEC), ends[2];
    (void)state;

    assert_int_equal(fd_write_full(fd, "whole", 5), 0);
    start(&s, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\n{}", "whole");
    assert_int_equal(skillvm_upload(client, fd, "a b/c", NULL, NULL), 0);
    stop(&s);
    assert_non_null(strstr(s.request, "POST /v1/files?name=a%20b%2Fc HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request, "Content-Type: application/octet-stream\r\n"));
    assert_non_null(strstr(s.request, "Content-Length: 5\r\n"));
    close(fd);

    /* Of a pipe nobody knows the length. */
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fd_write_full(ends[1], "piped", 5), 0);
    close(ends[1]);
    start(&s, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\n{}", "0\r\n\r\n");
    assert_int_equal(skillvm_upload(client, ends[0], "p", NULL, NULL), 0);
    stop(&s);
    assert_non_null(strstr(s.request, "Transfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(s.request, "5\r\npiped\r\n"));
    close(ends[0]);
    skillvm_close(client);
}

static void deletion(void **state)
{
    struct skillvm *client = client_of(socket_path, "sk-123");
    struct server s;
    (void)state;

    start(&s, "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", "\r\n\r\n");
    assert_int_equal(skillvm_cancel(client, "e/../x", NULL), 0);
    stop(&s);
    assert_non_null(strstr(s.request, "DELETE /v1/executions/e%2F..%2Fx HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request, "Authorization: Bearer sk-123\r\n"));
    skillvm_close(client);
}

static int now(void *ctx)
{
    (void)ctx;
    return 1;
}

static void interrupted(void **state)
{
    struct skillvm_request request = {.path = "/x", .should_stop = now};
    struct skillvm *client = client_of(socket_path, NULL);
    struct skillvm_error error;
    struct server s;
    (void)state;

    start(&s, "", "never");
    assert_int_equal(skillvm_perform(client, &request, NULL, &error), -EINTR);
    /* It may have been too early for a connection, which the server waits for. */
    pid_t pid;
    assert_int_equal(peer_find(socket_path, &pid), 0);
    stop(&s);
    skillvm_close(client);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *where;
        const char *key;
    } bad[] = {
        {NULL, NULL},
        {"", NULL},
        {"ftp://host", NULL},
        {"http://host/?q", NULL},
        {"http://ho st", NULL},
        {"http://host\r\nX: y", NULL},
        {"/s", ""},
        {"/s", "sk-1\r\nX: y"},
        {"/s", "sk 1"},
        {"/012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
         "4"
         "5678901234567890123456789",
         NULL},
    };
    static const char *const paths[] = {"", "x", "/a b", "/a\r\nX: y", "/\xc3\xa9", "/\x7f"};
    struct skillvm *client = NULL;
    struct skillvm_error error;
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error = (struct skillvm_error){0};
        assert_true(skillvm_open(bad[i].where, bad[i].key, &client, &error) < 0);
        assert_null(client);
        assert_true(error.code && error.message[0]);
        assert_null(strstr(error.message, "sk"));
    }
    client = client_of(socket_path, NULL);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_int_equal(skillvm_request(client, "GET", paths[i], NULL, NULL, NULL), -EINVAL);
    skillvm_close(client);
    skillvm_close(NULL);
    skillvm_free(NULL);

    char *text = skillvm_escape("a/b c\xc3\xa9~");
    assert_string_equal(text, "a%2Fb%20c%C3%A9~");
    skillvm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(when_to_come_again),
        cmocka_unit_test(what_was_seen_goes_along),
        cmocka_unit_test(callbacks_end_it),
        cmocka_unit_test(nobody),
        cmocka_unit_test(multipart),
        cmocka_unit_test(bodies_from_files),
        cmocka_unit_test(deletion),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
