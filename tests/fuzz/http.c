/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a connection, sent to a whole HTTP server with routes for JSON, files, forms and
 * streams. What must hold: every answer is HTTP/1.1, what is refused is refused in JSON, the
 * connection comes to its end, and heads and bodies are the same however their bytes come.
 */
#include "api/daemon/http/http_form.h"
#include "api/daemon/http/http_reader.h"
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

/* What a reader made of its bytes: they must tell the same however they come. */
struct told {
    int result;
    size_t at; /* where that was known */
    struct buf text;
};

static void tell(struct told *told, const char *data, size_t len)
{
    if (buf_append(&told->text, data, len) < 0)
        abort();
}

static void tell_text(struct told *told, const char *text)
{
    tell(told, text ? text : "-", text ? strlen(text) + 1 : 1);
}

static void read_body(const struct http_head *h, const char *text, size_t size, size_t step,
                      struct told *told)
{
    struct http_framing f = http_framing_init(h);
    size_t at = h->at;

    for (size_t came = at + step; told->result == 0 && came < size + step; came += step) {
        const size_t end = came < size ? came : size;
        ssize_t n = 0;

        while (n >= 0 && !f.done) {
            const size_t left = end - at;
            size_t len;

            n = http_framing_skip(&f, text + at, left);
            if (n < 0)
                break;
            at += (size_t)n;
            len = end - at < f.left ? end - at : (size_t)f.left;
            if (len == 0)
                break;
            tell(told, text + at, len);
            http_framing_take(&f, len);
            at += len;
        }
        told->result = n < 0 ? (int)n : 0;
    }
    /* What is refused may have been told of, up to the fault, and is no body. */
    told->at = f.done ? at : 0;
    if (!f.done)
        buf_clear(&told->text);
}

static void read_request(const uint8_t *data, size_t size, size_t step, struct told *told)
{
    struct http_head h = {.at = 0};
    char *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    told->result = -EAGAIN;
    for (size_t n = step; told->result == -EAGAIN && n < size + step; n += step)
        told->result = http_head_feed(&h, text, n < size ? n : size);
    if (told->result == 0) {
        for (unsigned i = 0; i < h.n_headers; i++) {
            tell_text(told, h.headers[i].name);
            tell_text(told, h.headers[i].value);
        }
        read_body(&h, text, size, step, told);
    }
    free(text);
}

static bool begin_part(void *ctx, const char *name, const char *file_name, const char *type)
{
    tell_text(ctx, name);
    tell_text(ctx, file_name);
    tell_text(ctx, type);
    return true;
}

static bool take_part(void *ctx, const char *data, size_t len)
{
    tell(ctx, data, len);
    return true;
}

static void read_form(const uint8_t *data, size_t size, size_t step, struct told *told)
{
    const struct http_form_events events = {begin_part, take_part, told};
    struct http_form *f = http_form_create("multipart/form-data; boundary=b", &events);

    if (!f)
        abort();
    for (size_t at = 0; told->result == 0 && at < size; at += step)
        told->result =
            http_form_feed(f, (const char *)data + at, size - at < step ? size - at : step);
    told->at = http_form_is_whole(f);
    http_form_destroy(f);
}

typedef void read_fn(const uint8_t *data, size_t size, size_t step, struct told *told);

static void check_reader(read_fn *reader, const uint8_t *data, size_t size)
{
    const size_t steps[] = {size + 1, 1, 3, 61};
    struct told first = {.text = buf_init(SIZE_MAX / 2)};

    reader(data, size, steps[0], &first);
    for (size_t i = 1; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct told told = {.text = buf_init(SIZE_MAX / 2)};

        reader(data, size, steps[i], &told);
        if (told.result != first.result || told.at != first.at ||
            told.text.len != first.text.len ||
            (told.text.len > 0 && memcmp(told.text.data, first.text.data, told.text.len) != 0))
            abort();
        buf_finish(&told.text);
    }
    buf_finish(&first.text);
}

/* The form of a request is read by itself too, and so is one that is the whole input. */
static void check_readers(const uint8_t *data, size_t size)
{
    const uint8_t *form = size > 4 ? memmem(data, size, "\r\n\r\n", 4) : NULL;

    check_reader(read_request, data, size);
    check_reader(read_form, data, size);
    if (form)
        check_reader(read_form, form + 4, size - (size_t)(form + 4 - data));
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
    check_readers(data, size);
    /* The fuzzer has a clock that interrupts. */
    do {
        fd = http_fixture_connect(&fixture, size % 4 == 0);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        perror("connect");
        abort();
    }
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
