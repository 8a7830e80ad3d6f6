/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/net between a skill's sockets and a host's frames, both of which are this test.
 * Its resolver has another port than the machine's.
 */
#include "guest-init/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#define PATIENCE_NS (20 * NS_PER_SECOND)
#define ADDRESS     "127.127.0.6" /* of name 5 */

struct world {
    struct net *net;
    int host; /* the host's end */
    int ours;
    struct frame_writer writer;
    struct frame_reader reader;
    struct frame frame; /* that came last */
    uint16_t dns_port;
    uint16_t port; /* of the name that is reached */
    int dns;
};

static struct world w;

/* A port that nobody has at an address, for a protocol. */
static uint16_t free_port(const char *address, int type)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, type, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static int setup(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(NET_RESOLVER)};
    struct err err = {0};
    int pair[2];

    (void)state;
    w = (struct world){.dns_port = free_port(NET_RESOLVER, SOCK_DGRAM),
                       .port = free_port(ADDRESS, SOCK_STREAM)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    w.host = pair[0];
    w.ours = pair[1];
    frame_writer_init(&w.writer, w.ours);
    frame_reader_init(&w.reader);
    w.net = net_open(w.dns_port, &err);
    if (!w.net)
        fail_msg("%s", err.message);
    at.sin_port = htons(w.dns_port);
    w.dns = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(w.dns, (struct sockaddr *)&at, sizeof(at)), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_close(w.net);
    frame_writer_finish(&w.writer);
    frame_reader_finish(&w.reader);
    close(w.host);
    close(w.ours);
    close(w.dns);
    return 0;
}

static void pump(void)
{
    net_work(w.net);
    (void)net_send(w.net, &w.writer);
    assert_int_equal(frame_writer_flush(&w.writer), 0);
}

/* The next frame to the host; false when there is none within a moment of quiet. */
static bool take_any(int timeout_ms)
{
    uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;

    for (;;) {
        struct pollfd p[] = {{.fd = net_fd(w.net), .events = POLLIN},
                             {.fd = w.host, .events = POLLIN}};

        pump();
        if (frame_reader_next(&w.reader, &w.frame) == 1)
            return true;
        if (clock_monotonic_ns() >= deadline_ns)
            return false;
        (void)poll(p, 2, clock_timeout_ms(deadline_ns));
        (void)frame_reader_fill(&w.reader, w.host, MSG_DONTWAIT);
    }
}

static void take(uint8_t type)
{
    if (!take_any((int)(PATIENCE_NS / NS_PER_MS)))
        fail_msg("no frame 0x%02x", type);
    if (w.frame.type != type)
        fail_msg("frame 0x%02x where 0x%02x was due", w.frame.type, type);
}

static int say(uint8_t type, const void *data, size_t len)
{
    const struct frame frame = {.type = type, .len = (uint32_t)len, .data = data};
    int r = net_take(w.net, &frame);

    if (r == 0)
        pump();
    return r;
}

static int say_numbers(uint8_t type, unsigned a, unsigned b, size_t len)
{
    const uint8_t payload[] = {(uint8_t)a, (uint8_t)(a >> 8), (uint8_t)b, (uint8_t)(b >> 8)};

    return say(type, payload, len);
}

static int say_room(unsigned key, uint32_t bytes)
{
    uint8_t payload[8];
    struct bytes_writer b = bytes_writer_init(payload, sizeof(payload));

    bytes_put_u16(&b, (uint16_t)key);
    bytes_put_u16(&b, 0);
    bytes_put_u32(&b, bytes);
    return say(PROTO_NET_HOST_ROOM, payload, sizeof(payload));
}

static void ask(uint8_t type)
{
    uint8_t question[] = {0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 1, 'b', 0, 0, 1, 0, 1};

    question[18] = type;
    assert_int_equal(send(w.dns, question, sizeof(question), 0), sizeof(question));
}

static size_t hear(uint8_t *answer)
{
    struct pollfd p = {.fd = w.dns, .events = POLLIN};
    ssize_t n;

    pump();
    assert_int_equal(poll(&p, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
    n = recv(w.dns, answer, 512, 0);
    assert_true(n >= 12);
    return (size_t)n;
}

/* The name "a.b" becomes name 5, at one port. */
static void permit(void)
{
    uint8_t good[] = {0, 0, PROTO_NET_GOOD, 5, (uint8_t)w.port, (uint8_t)(w.port >> 8)};
    uint8_t answer[512];
    size_t len;

    ask(1);
    take(PROTO_NET_ASK);
    assert_int_equal(w.frame.len, 5);
    assert_memory_equal(w.frame.data + 2, "a.b", 3);
    good[0] = w.frame.data[0];
    assert_int_equal(say(PROTO_NET_ANSWER, good, sizeof(good)), 0);
    len = hear(answer);
    assert_int_equal(answer[3] & 15, 0);
    assert_memory_equal(answer + len - 4, "\x7f\x7f\0\x06", 4);
}

static int connect_there(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(w.port),
                             .sin_addr.s_addr = inet_addr(ADDRESS)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* A connection that the host accepted, under this number. */
static int open_there(unsigned *ret_key)
{
    int fd = connect_there();

    take(PROTO_NET_OPEN);
    assert_int_equal(w.frame.len, 6);
    assert_int_equal(w.frame.data[2], 5);
    assert_int_equal(w.frame.data[4] | w.frame.data[5] << 8, w.port);
    *ret_key = w.frame.data[0];
    assert_int_equal(say_numbers(PROTO_NET_OPENED, *ret_key, 0, 2), 0);
    return fd;
}

static void names_become_addresses(void **state)
{
    uint8_t nobody[] = {0, 0, PROTO_NET_NOBODY, 0}, answer[512];

    (void)state;
    ask(1);
    take(PROTO_NET_ASK);
    nobody[0] = w.frame.data[0];
    assert_int_equal(say(PROTO_NET_ANSWER, nobody, sizeof(nobody)), 0);
    (void)hear(answer);
    assert_int_equal(answer[3] & 15, 3);
    /* The host is not asked for what it would not say. */
    ask(28);
    (void)hear(answer);
    assert_int_equal(answer[3] & 15, 0);
    assert_int_equal(answer[7], 0);
    permit();
    permit();
    assert_int_equal(say(PROTO_NET_ANSWER, nobody, sizeof(nobody)), -EPROTO);
}

static void more_questions_than_places_fail(void **state)
{
    uint8_t answer[512];

    (void)state;
    for (unsigned i = 0; i < PROTO_NET_QUERIES; i++) {
        ask(1);
        take(PROTO_NET_ASK);
        assert_int_equal(w.frame.data[0], i);
    }
    ask(1);
    (void)hear(answer);
    assert_int_equal(answer[3] & 15, 2);
}

static void bytes_go_both_ways(void **state)
{
    char data[16];
    unsigned key;
    int fd;

    (void)state;
    permit();
    fd = open_there(&key);
    assert_int_equal(send(fd, "hello", 5, 0), 5);
    take(PROTO_NET_GUEST_DATA);
    assert_int_equal(w.frame.len, 7);
    assert_memory_equal(w.frame.data + 2, "hello", 5);
    assert_int_equal(say(PROTO_NET_HOST_DATA, (uint8_t[]){(uint8_t)key, 0, 'o', 'k'}, 4), 0);
    assert_int_equal(recv(fd, data, sizeof(data), 0), 2);
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, key, 0, 4), 0);
    assert_int_equal(recv(fd, data, sizeof(data), 0), 0);
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, key, 0, 4), -EPROTO);
    assert_int_equal(send(fd, "more", 4, 0), 4);
    take(PROTO_NET_GUEST_DATA);
    close(fd);
    take(PROTO_NET_GUEST_END);
    assert_int_equal(w.frame.data[2], 0);
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, key, 0, 4), -EPROTO);
}

static void what_is_refused_or_breaks_is_reset(void **state)
{
    unsigned key;
    char byte;
    int fd;

    (void)state;
    permit();
    fd = connect_there();
    take(PROTO_NET_OPEN);
    assert_int_equal(say_numbers(PROTO_NET_REFUSED, w.frame.data[0], 0, 2), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    close(fd);
    fd = open_there(&key);
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, key, 1, 4), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    take(PROTO_NET_GUEST_END);
    close(fd);
}

static void a_host_keeps_to_its_windows(void **state)
{
    static uint8_t data[2 + PROTO_NET_DATA_MAX];
    unsigned key;
    int fd;

    (void)state;
    permit();
    fd = open_there(&key);
    data[0] = (uint8_t)key;
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, PROTO_NET_CONNECTIONS, 0, 4), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_OPENED, key, 0, 2), -EPROTO);
    assert_int_equal(say_room(key, 1), -EPROTO);
    for (unsigned i = 0; i < PROTO_NET_WINDOW / PROTO_NET_DATA_MAX; i++)
        assert_int_equal(net_take(w.net, &(struct frame){.type = PROTO_NET_HOST_DATA,
                                                         .len = sizeof(data),
                                                         .data = data}),
                         0);
    assert_int_equal(say(PROTO_NET_HOST_DATA, data, 3), -EPROTO);
    close(fd);
}

static void a_skill_that_floods_waits_for_room(void **state)
{
    static uint8_t data[1u << 16];
    size_t bytes = 0;
    unsigned key;
    int fd;

    (void)state;
    permit();
    fd = open_there(&key);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
    while (bytes < PROTO_NET_WINDOW) {
        take(PROTO_NET_GUEST_DATA);
        bytes += w.frame.len - 2;
    }
    assert_int_equal(bytes, PROTO_NET_WINDOW);
    assert_false(take_any(0));
    assert_int_equal(say_room(key, 10), 0);
    take(PROTO_NET_GUEST_DATA);
    assert_int_equal(w.frame.len, 12);
    close(fd);
}

/* A connection that sent so much and is over for both; its number. */
static unsigned end_one_that_sent(const uint8_t *data, size_t len)
{
    size_t bytes = 0;
    unsigned key;
    int fd = open_there(&key);

    assert_int_equal(send(fd, data, len, 0), len);
    while (bytes < len) {
        take(PROTO_NET_GUEST_DATA);
        bytes += w.frame.len - 2;
    }
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, key, 0, 4), 0);
    close(fd);
    take(PROTO_NET_GUEST_END);
    return key;
}

/* It was on its way when the end was. */
static void room_that_crosses_the_end_is_taken(void **state)
{
    static uint8_t data[30000];
    unsigned key, next;
    int fd;

    (void)state;
    permit();
    key = end_one_that_sent(data, sizeof(data));
    assert_int_equal(say_room(key, 20000), 0);
    assert_int_equal(say_room(key, 0), -EPROTO);
    assert_int_equal(say_room(key, 10001), -EPROTO);
    assert_int_equal(say_room(key + 1, 1), -EPROTO);
    /* The number may have been given away, but the host does not know that yet. */
    fd = connect_there();
    take(PROTO_NET_OPEN);
    next = w.frame.data[0];
    assert_int_equal(next, key);
    assert_int_equal(say_room(key, 5000), 0);
    assert_int_equal(say_numbers(PROTO_NET_OPENED, key, 0, 2), 0);
    assert_int_equal(say_room(key, 5000), -EPROTO);
    close(fd);
}

static void output_has_room_beside_a_flood(void **state)
{
    static uint8_t data[1u << 16];
    unsigned keys[4];
    int fds[4];

    (void)state;
    permit();
    for (int i = 0; i < 4; i++)
        fds[i] = open_there(&keys[i]);
    for (int i = 0; i < 4; i++)
        while (send(fds[i], data, sizeof(data), MSG_DONTWAIT) > 0)
            ;
    net_work(w.net);
    assert_true(net_send(w.net, &w.writer));
    assert_true(frame_writer_room(&w.writer) >= PROTO_NET_DATA_MAX);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void more_connections_than_numbers_wait(void **state)
{
    int fds[PROTO_NET_CONNECTIONS + 1];
    unsigned key = 0;

    (void)state;
    permit();
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++)
        fds[i] = open_there(&key);
    fds[PROTO_NET_CONNECTIONS] = connect_there();
    assert_false(take_any(0));
    close(fds[0]);
    take(PROTO_NET_GUEST_END);
    assert_int_equal(say_numbers(PROTO_NET_HOST_END, w.frame.data[0], 0, 4), 0);
    take(PROTO_NET_OPEN);
    for (unsigned i = 1; i <= PROTO_NET_CONNECTIONS; i++)
        close(fds[i]);
}

/* A host in a thread of its own, which takes all that there is until the stream ends. */
struct host {
    struct frame_writer writer;
    bool gives_room, cancels;
    uint64_t bytes;
    unsigned ends;
};

static void host_say(struct host *h, uint8_t type, const uint8_t *payload, size_t len)
{
    (void)frame_writer_send(&h->writer, type, payload, len);
    (void)frame_writer_flush(&h->writer);
}

static void host_take(struct host *h, const struct frame *frame)
{
    const uint8_t key = frame->len > 0 ? frame->data[0] : 0;
    uint8_t room[8] = {key};
    struct bytes_writer b = bytes_writer_init(room, sizeof(room));

    switch (frame->type) {
    case PROTO_NET_OPEN:
        if (h->cancels)
            host_say(h, PROTO_CANCEL, NULL, 0);
        else
            host_say(h, PROTO_NET_OPENED, (uint8_t[]){key, 0}, 2);
        break;
    case PROTO_NET_GUEST_DATA:
        h->bytes += frame->len - 2;
        bytes_put_u16(&b, key);
        bytes_put_u16(&b, 0);
        bytes_put_u32(&b, frame->len - 2);
        if (h->gives_room)
            host_say(h, PROTO_NET_HOST_ROOM, room, sizeof(room));
        break;
    case PROTO_NET_GUEST_END:
        h->ends++;
        host_say(h, PROTO_NET_HOST_END, (uint8_t[]){key, 0, 0, 0}, 4);
        break;
    default:
        break;
    }
}

static void *run_host(void *ctx)
{
    struct host *h = ctx;
    struct frame_reader reader;
    struct frame frame;

    frame_reader_init(&reader);
    frame_writer_init(&h->writer, w.host);
    while (frame_reader_fill(&reader, w.host, 0) > 0) {
        while (frame_reader_next(&reader, &frame) == 1)
            host_take(h, &frame);
    }
    frame_reader_finish(&reader);
    frame_writer_finish(&h->writer);
    return NULL;
}

/* What net_drain gives after connections that sent so much each and were closed. */
static int drain_with(struct host *h, unsigned connections, size_t bytes, uint64_t deadline_ns)
{
    static uint8_t data[1u << 16];
    struct frame_reader reader;
    pthread_t thread;
    int r;

    permit();
    for (unsigned i = 0; i < connections; i++) {
        int fd = connect_there();

        assert_int_equal(send(fd, data, bytes, 0), bytes);
        close(fd);
    }
    net_work(w.net);
    assert_true(net_is_used(w.net));
    assert_int_equal(pthread_create(&thread, NULL, run_host, h), 0);
    frame_reader_init(&reader);
    r = net_drain(w.net, &reader, &w.writer, deadline_ns);
    frame_reader_finish(&reader);
    (void)shutdown(w.ours, SHUT_WR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return r;
}

/* Also what waited for a number when the skill ended. */
static void all_that_was_sent_is_passed_on_at_the_end(void **state)
{
    const unsigned n = PROTO_NET_CONNECTIONS + 8;
    struct host h = {.gives_room = true};

    (void)state;
    assert_int_equal(drain_with(&h, n, 20000, clock_monotonic_ns() + PATIENCE_NS), 0);
    assert_int_equal(h.bytes, n * 20000);
    assert_int_equal(h.ends, n);
}

static void a_host_that_takes_no_more_is_not_waited_for_longer(void **state)
{
    struct host h = {.gives_room = false};

    (void)state;
    assert_int_equal(drain_with(&h, 2, 1u << 16, clock_monotonic_ns()), 0);
    assert_in_range(h.ends, 0, 1);
}

/* It is not connected, and has nothing that it could be waited for. */
static void what_sent_nothing_is_not_waited_for(void **state)
{
    struct frame_reader reader;

    (void)state;
    permit();
    close(connect_there());
    take(PROTO_NET_OPEN);
    frame_reader_init(&reader);
    assert_int_equal(net_drain(w.net, &reader, &w.writer, UINT64_MAX), 0);
    frame_reader_finish(&reader);
}

static void a_cancel_ends_what_is_passed_on(void **state)
{
    struct host h = {.cancels = true};

    (void)state;
    assert_int_equal(drain_with(&h, 1, 1u << 16, clock_monotonic_ns() + PATIENCE_NS),
                     -ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_become_addresses),
        TEST(more_questions_than_places_fail),
        TEST(bytes_go_both_ways),
        TEST(what_is_refused_or_breaks_is_reset),
        TEST(a_host_keeps_to_its_windows),
        TEST(a_skill_that_floods_waits_for_room),
        TEST(room_that_crosses_the_end_is_taken),
        TEST(output_has_room_beside_a_flood),
        TEST(more_connections_than_numbers_wait),
        TEST(all_that_was_sent_is_passed_on_at_the_end),
        TEST(a_host_that_takes_no_more_is_not_waited_for_longer),
        TEST(what_sent_nothing_is_not_waited_for),
        TEST(a_cancel_ends_what_is_passed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
