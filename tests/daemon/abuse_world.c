/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/abuse_world.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const struct http_deadlines patient = {0};
const char hello[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
const char hello_once[] = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

void say(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

int connect_and_say(const struct http_fixture *f, bool tcp, const char *text)
{
    int fd = http_fixture_connect(f, tcp);

    assert_true(fd >= 0);
    say(fd, text);
    return fd;
}

void expect_hello(const struct http_fixture *f, bool tcp)
{
    int fd = connect_and_say(f, tcp, hello_once);

    harness_expect(harness_read_answer(fd), 200, "hello");
    close(fd);
}

void wait_answered(int fd, int ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&pfd, 1, ms), 1);
}

bool has_ended(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};

    return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}
