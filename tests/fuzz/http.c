/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a connection, sent to a whole HTTP server with routes for JSON, files, forms and
 * streams. What must hold: every answer is HTTP/1.1, what is refused is refused in JSON, the
 * connection comes to its end, and heads and bodies are the same however their bytes come.
 */
#include "api/daemon/http/http_framing.h"
#include "api/daemon/http/http_head.h"
#include "base/buf.h"
#include "base/clock.h"
#include "tests/unit/http_fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX  (256u * 1024u) /* more is a stream without an end */
#define DEADLINE_NS 30000000000ull

static struct http_fixture fixture;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stop(void)
{
    http_fixture_stop(&fixture);
}

/* However the bytes come, they are the same head, and the same body after it. */
static size_t parse(const uint8_t *data, size_t size, size_t step, int *ret_result)
{
    struct http_head h = {.text = NULL};
    struct http_framing f;
    char *text = malloc(size + 1);
    size_t at = 0;
    int r = -EAGAIN;

    if (!text)
        abort();
    memcpy(text, data, size);
    for (size_t n = step; r == -EAGAIN && n < size + step; n += step)
        r = http_head_feed(&h, text, n < size ? n : size);
    *ret_result = r;
    f = http_framing_init(r == 0 && h.is_chunked, r == 0 ? h.length : 0);
    for (at = h.at; r == 0 && at < size && !f.done;) {
        size_t len = size - at < step ? size - at : step;
        ssize_t n = http_framing_skip(&f, text + at, len);

        if (n < 0)
            break;
        at += (size_t)n;
        len -= (size_t)n;
        if (!f.done && len > 0) {
            len = len < f.left ? len : (size_t)f.left;
            http_framing_take(&f, len);
            at += len;
        }
    }
    free(text);
    return f.done ? at : 0;
}

static void check_parser(const uint8_t *data, size_t size)
{
    int whole, pieces;

    if (parse(data, size, size + 1, &whole) != parse(data, size, 1, &pieces) || whole != pieces)
        abort();
}

/* Sends as much as the server takes, then the end. */
static void say(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        data += n;
        size -= (size_t)n;
    }
}

static void read_answer(int fd, struct buf *answer)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char block[4096];
    ssize_t n = 1;

    while (n > 0 && answer->len < ANSWER_MAX) {
        if (poll(&pfd, 1, clock_timeout_ms(deadline_ns)) == 0)
            abort();
        n = recv(fd, block, sizeof(block), 0);
        if (n > 0 && buf_append(answer, block, (size_t)n) < 0)
            abort();
    }
}

static void check_answer(const char *text, const uint8_t *data, size_t size)
{
    unsigned status = 0;
    const char *body = strstr(text, "\r\n\r\n");

    if (!*text)
        return;
    if (sscanf(text, "HTTP/1.1 %3u ", &status) != 1 || status < 100 || status > 599 || !body)
        abort();
    if (status >= 400 && memmem(data, size, "HEAD", 4) == NULL &&
        strncmp(body + 4, "{\"error\":\"", 10) != 0)
        abort();
    if (strstr(text, "<html>") && !memmem(data, size, "<html>", 6))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_deadlines deadlines = {0};
    struct buf answer = buf_init(ANSWER_MAX + 8192);
    const char *text;
    int fd;

    if (!fixture.server) {
        http_fixture_start(&fixture, &deadlines, 0);
        atomic_store(&fixture.released, true);
        (void)atexit(stop);
    }
    check_parser(data, size);
    fd = http_fixture_connect(&fixture, size % 4 == 0);
    if (fd < 0)
        abort();
    /* In two pieces, so that heads come in parts too. */
    if (size % 2) {
        say(fd, data, size / 2);
        (void)usleep(200);
        say(fd, data + size / 2, size - size / 2);
    } else {
        say(fd, data, size);
    }
    (void)shutdown(fd, SHUT_WR);
    read_answer(fd, &answer);
    (void)close(fd);
    text = buf_cstr(&answer);
    if (!text)
        abort();
    check_answer(text, data, size);
    buf_finish(&answer);
    return 0;
}
