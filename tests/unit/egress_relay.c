/* SPDX-License-Identifier: Apache-2.0 */
/* The relay, as a guest drives it, an honest one and others. */
#include "tests/unit/cmocka_all.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/process_stats.h"
#include "tests/unit/egress_world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void bytes_go_both_ways_and_are_counted(void **state)
{
    char data[16];
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    assert_int_equal(w.len, 6);
    assert_int_equal(w.payload[4] | w.payload[5] << 8, w.port);
    peer = connect_key(3);
    assert_int_equal(say_data(3, "hello", 5), 0);
    assert_int_equal(read_some(peer, data, sizeof(data)), 5);
    assert_memory_equal(data, "hello", 5);
    assert_int_equal(send(peer, "welcome", 7, 0), 7);
    take(PROTO_NET_HOST_DATA);
    assert_memory_equal(w.payload, "\3\0welcome", 9);
    /* Each direction ends by itself. */
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 3, 0, 0, 4), 0);
    assert_int_equal(read_some(peer, data, sizeof(data)), 0);
    assert_int_equal(send(peer, "late", 4, 0), 4);
    take(PROTO_NET_HOST_DATA);
    close(peer);
    take(PROTO_NET_HOST_END);
    assert_int_equal(w.payload[2], 0);
    assert_int_equal(egress_log(w.egress)->n, 1);
    assert_string_equal(row(0)->host, "here.test");
    assert_int_equal(row(0)->port, w.port);
    assert_int_equal(row(0)->bytes_sent, 5);
    assert_int_equal(row(0)->bytes_received, 11);
    /* The number is free again. */
    close(connect_key(3));
    assert_int_equal(row(0)->connections, 2);
}

static void what_is_not_permitted_is_nobody(void **state)
{
    (void)state;
    assert_int_equal(ask("other.test"), PROTO_NET_NOBODY);
    assert_int_equal(row(0)->refusal, EGRESS_UNDECLARED);
    assert_int_equal(row(0)->port, 0);
    w.rules.policy = "elsewhere.test:*";
    open_anew();
    assert_int_equal(ask("here.test"), PROTO_NET_NOBODY);
    assert_int_equal(row(0)->refusal, EGRESS_NOT_IN_POLICY);
    w.rules.policy = "*:*";
    w.rules.asked = "*.example.test:1";
    open_anew();
    assert_int_equal(ask("HERE.test."), PROTO_NET_NOBODY);
    assert_int_equal(row(0)->refusal, EGRESS_NOT_ASKED);
    assert_string_equal(row(0)->host, "here.test");
    assert_int_equal(ask("no host"), PROTO_NET_NOBODY);
    assert_int_equal(ask("127.0.0.1"), PROTO_NET_NOBODY);
    assert_int_equal(egress_log(w.egress)->n, 1);
    assert_int_equal(dns_asked + went, 0);
}

static void a_guest_reaches_nothing_by_itself(void **state)
{
    (void)state;
    /* No name was asked for. */
    assert_int_equal(open_key(0), -EPROTO);
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    assert_int_equal(say_numbers(PROTO_NET_OPEN, 0, 1, w.port, 6), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_OPEN, 0, 63, w.port, 6), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_OPEN, 0, 0, w.port + 1u, 6), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_OPEN, PROTO_NET_CONNECTIONS, 0, w.port, 6), -EPROTO);
    assert_int_equal(say_data(0, "x", 1), -EPROTO);
    assert_int_equal(open_key(0), 0);
    assert_int_equal(open_key(0), -EPROTO);
    assert_int_equal(say_data(0, "x", 1), -EPROTO);
    take(PROTO_NET_OPENED);
    assert_int_equal(open_key(0), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 1, 8), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 2, 0, 4), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), -EPROTO);
    assert_int_equal(say_data(0, "x", 1), -EPROTO);
    assert_int_equal(went, 1);
}

static void queries_have_numbers(void **state)
{
    char payload[] = "\0\0here.test";

    (void)state;
    assert_int_equal(say(PROTO_NET_ASK, payload, sizeof(payload) - 1), 0);
    assert_int_equal(say(PROTO_NET_ASK, payload, sizeof(payload) - 1), -EPROTO);
    payload[0] = PROTO_NET_QUERIES;
    assert_int_equal(say(PROTO_NET_ASK, payload, sizeof(payload) - 1), -EPROTO);
    assert_int_equal(say(PROTO_NET_ASK, payload, 2), -EPROTO);
}

/* Asks for a name by the number of a query, and for a connection to it at once. */
static void ask_and_open(const char *query_and_name, size_t len, unsigned key, unsigned at)
{
    assert_int_equal(say(PROTO_NET_ASK, query_and_name, len), 0);
    assert_int_equal(say_numbers(PROTO_NET_OPEN, key, at, w.port, 6), 0);
}

/* As one is whose addresses were found a while ago, too. */
static void a_name_that_is_looked_up_is_waited_for(void **state)
{
    static const char found[] = "\0\0a.example.test", none[] = "\0\0b.example.test";
    int other;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    resolve_to(1, ADDRESS_HERE, ADDRESS_HERE);
    ask_and_open(found, sizeof(found) - 1, 0, 1);
    assert_false(take_now());
    /* In nobody's way, and in its place. */
    assert_int_equal(say_numbers(PROTO_NET_OPEN, 0, 1, w.port, 6), -EPROTO);
    assert_int_equal(open_key(1), 0);
    while (!take_now())
        ;
    assert_int_equal(w.type, PROTO_NET_OPENED);
    assert_int_equal(w.payload[0], 1);
    other = accept(w.listener, NULL, NULL);
    assert_int_equal(dns_asked, 0);
    take(PROTO_NET_ANSWER);
    assert_int_equal(w.payload[2], PROTO_NET_GOOD);
    take(PROTO_NET_OPENED);
    assert_int_equal(w.payload[0], 0);
    assert_string_equal(row(1)->host, "a.example.test");
    assert_int_equal(row(1)->refusal, EGRESS_REACHED);
    /* It is refused where there is no such name, with the reason. */
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    ask_and_open(none, sizeof(none) - 1, 2, 2);
    take(PROTO_NET_ANSWER);
    assert_int_equal(w.payload[2], PROTO_NET_NOBODY);
    take(PROTO_NET_REFUSED);
    assert_int_equal(row(3)->port, w.port);
    assert_int_equal(row(3)->refusal, EGRESS_NO_SUCH_NAME);
    close(other);
}

/* Bytes of a peer's that come out, while the guest gives no room. */
static size_t take_all_data(void)
{
    size_t bytes = 0;

    while (take_now() && w.type == PROTO_NET_HOST_DATA)
        bytes += w.len - 2;
    return bytes;
}

static void a_guest_that_does_not_read_stops_its_peer(void **state)
{
    static uint8_t data[1u << 16];
    size_t bytes = 0;
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    while (send(peer, data, sizeof(data), MSG_DONTWAIT) > 0 || errno != EAGAIN)
        ;
    while (bytes < PROTO_NET_WINDOW) {
        size_t n = take_all_data();
        struct pollfd p = {.fd = egress_fd(w.egress), .events = POLLIN};

        bytes += n;
        if (n == 0)
            assert_int_equal(poll(&p, 1, 60000), 1);
    }
    assert_int_equal(bytes, PROTO_NET_WINDOW);
    assert_int_equal(take_all_data(), 0);
    /* One that is full is in nobody's way. */
    close(connect_key(1));
    take(PROTO_NET_HOST_END);
    assert_int_equal(w.payload[0], 1);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 10, 8), 0);
    take(PROTO_NET_HOST_DATA);
    assert_int_equal(w.len, 12);
    close(peer);
}

/* It was on its way when the end was. */
static void room_that_crosses_the_end_is_taken(void **state)
{
    static uint8_t data[30000];
    size_t bytes = 0;
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    assert_int_equal(send(peer, data, sizeof(data), 0), sizeof(data));
    while (bytes < sizeof(data)) {
        take(PROTO_NET_HOST_DATA);
        bytes += w.len - 2;
    }
    close(peer);
    take(PROTO_NET_HOST_END);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 20000, 8), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 9000, 8), 0);
    /* Of what was sent, and no more often than that. */
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 0, 8), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 1001, 8), -EPROTO);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 1, 0, 1, 8), -EPROTO);
    /* Whoever opens another knew of the end. */
    assert_int_equal(open_key(0), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, 1000, 8), -EPROTO);
}

static uint64_t room_given(void)
{
    struct bytes_reader r = bytes_reader_init(w.payload + 4, w.len - 4);

    assert_int_equal(w.type, PROTO_NET_HOST_ROOM);
    return bytes_get_u32(&r);
}

/* As long as there is room the guest uses it. How many bytes. */
static uint64_t say_all_there_is_room_for(void)
{
    static const uint8_t data[PROTO_NET_DATA_MAX];
    uint64_t sent = 0, window = PROTO_NET_WINDOW;

    do {
        for (; sent < window;
             sent += window - sent < sizeof(data) ? window - sent : sizeof(data))
            assert_int_equal(
                say_data(0, data, window - sent < sizeof(data) ? window - sent : sizeof(data)),
                0);
        if (take_now())
            window += room_given();
    } while (sent < window);
    return sent;
}

static void read_all(int peer, uint64_t bytes)
{
    static uint8_t data[PROTO_NET_DATA_MAX];

    for (uint64_t got = 0; got < bytes;)
        got += read_some(peer, data, sizeof(data));
}

static void a_peer_that_does_not_read_stops_the_guest(void **state)
{
    uint64_t sent;
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    sent = say_all_there_is_room_for();
    assert_int_equal(say_data(0, "x", 1), -EPROTO);
    read_all(peer, sent);
    take(PROTO_NET_HOST_ROOM);
    close(peer);
}

static int kernel_bytes(int option)
{
    socklen_t size = sizeof(int);
    int bytes = 0;

    assert_int_equal(getsockopt(went_fd, SOL_SOCKET, option, &bytes, &size), 0);
    return bytes;
}

/* Gives room as it comes, so that its kernel would find the connection worth more. */
static void take_much(int peer, uint64_t bytes)
{
    static uint8_t data[1u << 16];

    for (uint64_t got = 0; got < bytes;) {
        (void)send(peer, data, sizeof(data), MSG_DONTWAIT);
        if (!take_now())
            continue;
        assert_int_equal(w.type, PROTO_NET_HOST_DATA);
        got += w.len - 2;
        assert_int_equal(say_numbers(PROTO_NET_GUEST_ROOM, 0, 0, (unsigned)w.len - 2, 8), 0);
    }
}

/* However fast its peers are, and however little they read. */
static void the_kernel_holds_so_much_and_no_more(void **state)
{
    const int small = 1 << 16;
    uint64_t sent;
    int peer;

    (void)state;
    assert_int_equal(setsockopt(w.listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    sent = say_all_there_is_room_for();
    take_much(peer, 32u << 20);
    assert_in_range(kernel_bytes(SO_RCVBUF), 1, 256 << 10);
    assert_in_range(kernel_bytes(SO_SNDBUF), 1, 256 << 10);
    assert_in_range(sent, PROTO_NET_WINDOW, PROTO_NET_WINDOW + (256 << 10) + 2 * small);
    close(peer);
}

static void a_number_is_free_before_its_peer_has_all(void **state)
{
    uint64_t sent;
    char byte;
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    take(PROTO_NET_HOST_END);
    sent = say_all_there_is_room_for();
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    assert_int_equal(open_key(0), 0);
    assert_int_equal(open_key(0), -EPROTO);
    assert_false(take_now());
    read_all(peer, sent);
    assert_int_equal(read_some(peer, &byte, 1), 0);
    close(peer);
    take(PROTO_NET_OPENED);
    assert_int_equal(row(0)->bytes_sent, sent);
}

/* A connection with more bytes of the guest's than its peer takes. How many. */
static uint64_t fill_connection(int *ret_peer)
{
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    *ret_peer = connect_key(0);
    return say_all_there_is_room_for();
}

/* One that it did not end is not whole, and its peer is told so. */
static void what_was_sent_goes_on_after_the_guests_end(void **state)
{
    uint64_t sent;
    int peer, other;
    char byte;

    (void)state;
    sent = fill_connection(&peer);
    other = connect_key(1);
    assert_int_equal(say_data(1, "x", 1), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    egress_end(w.egress, UINT64_MAX);
    assert_true(egress_is_sending(w.egress));
    assert_int_equal(recv(other, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    egress_work(w.egress);
    assert_true(egress_is_sending(w.egress));
    read_all(peer, sent);
    assert_int_equal(read_some(peer, &byte, 1), 0);
    egress_work(w.egress);
    assert_false(egress_is_sending(w.egress));
    assert_int_equal(row(0)->bytes_sent, sent);
    close(peer);
    close(other);
}

static void it_goes_on_when_the_guest_says_that_it_broke(void **state)
{
    uint64_t sent;
    int peer;

    (void)state;
    sent = fill_connection(&peer);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 1, 0, 4), 0);
    take(PROTO_NET_HOST_END);
    read_all(peer, sent);
    close(peer);
}

/* What is left out is no end for the peer. */
static void expect_reset(int peer)
{
    static uint8_t data[PROTO_NET_DATA_MAX];
    ssize_t n;

    do
        n = recv(peer, data, sizeof(data), 0);
    while (n > 0);
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    close(peer);
}

static void a_deadline_ends_what_goes_on(void **state)
{
    int peer;

    (void)state;
    (void)fill_connection(&peer);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    egress_end(w.egress, clock_monotonic_ns());
    egress_work(w.egress);
    assert_false(egress_is_sending(w.egress));
    expect_reset(peer);
}

/* As where the execution was cancelled while it went on, or its machine failed. */
static void what_goes_on_when_all_is_closed_is_no_end(void **state)
{
    int peer;

    (void)state;
    (void)fill_connection(&peer);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    egress_end(w.egress, UINT64_MAX);
    open_anew();
    expect_reset(peer);
    (void)fill_connection(&peer);
    open_anew();
    expect_reset(peer);
    /* Nothing is left of it, but for the end that the guest did not say. */
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    open_anew();
    expect_reset(peer);
}

/* Whose bytes have all gone out has its end, which was said before. */
static void who_was_told_the_end_is_not_reset(void **state)
{
    char byte;
    int peer;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    assert_int_equal(say_data(0, "x", 1), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    egress_work(w.egress);
    open_anew();
    assert_int_equal(recv(peer, &byte, 1, 0), 1);
    assert_int_equal(recv(peer, &byte, 1, 0), 0);
    close(peer);
}

static void ten_thousand_opens_end_at_the_limit(void **state)
{
    unsigned opened = 0, refused = 0;
    uint64_t before;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    before = process_open_fds();
    for (unsigned i = 0; i < 10000; i++) {
        assert_int_equal(open_key(i % 8), 0);
        while (!take_now())
            ;
        if (w.type == PROTO_NET_REFUSED) {
            refused++;
            continue;
        }
        assert_int_equal(w.type, PROTO_NET_OPENED);
        opened++;
        close(accept(w.listener, NULL, NULL));
        assert_int_equal(say_numbers(PROTO_NET_GUEST_END, i % 8, 1, 0, 4), 0);
        take(PROTO_NET_HOST_END);
    }
    assert_int_equal(opened, 100);
    assert_int_equal(refused, 9900);
    assert_int_equal(egress_log(w.egress)->n, 2);
    assert_int_equal(row(1)->connections, 9900);
    assert_non_null(strstr(row(1)->refused, "more than 100 connections"));
    assert_int_equal(process_open_fds(), before);
}

static void ten_thousand_names_take_a_fixed_room(void **state)
{
    char name[64];

    (void)state;
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), i % 100 == 0 ? "n%u.example.test" : "n%u.test", i);
        assert_int_equal(ask(name), PROTO_NET_NOBODY);
    }
    assert_int_equal(egress_log(w.egress)->n, EGRESS_REFUSALS_MAX);
    assert_int_equal(egress_log(w.egress)->others.connections, 10000 - EGRESS_REFUSALS_MAX);
}

static void refusals_do_not_hide_who_is_reached(void **state)
{
    char name[64];

    (void)state;
    for (unsigned i = 0; i < 2 * EGRESS_RECORDS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u.test", i);
        assert_int_equal(ask(name), PROTO_NET_NOBODY);
    }
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    close(connect_key(0));
    assert_string_equal(row(EGRESS_REFUSALS_MAX)->host, "here.test");
    assert_int_equal(row(EGRESS_REFUSALS_MAX)->refusal, EGRESS_REACHED);
    assert_int_equal(egress_log(w.egress)->others.connections,
                     2 * EGRESS_RECORDS_MAX - EGRESS_REFUSALS_MAX);
}

static void bytes_end_at_the_limit(void **state)
{
    static uint8_t data[PROTO_NET_DATA_MAX];
    int peer;

    (void)state;
    w.settings.bytes_max = 1000;
    open_anew();
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    assert_int_equal(send(peer, data, 400, 0), 400);
    take(PROTO_NET_HOST_DATA);
    assert_int_equal(say_data(0, data, 5000), 0);
    take(PROTO_NET_HOST_END);
    assert_int_equal(w.payload[2], 1);
    assert_int_equal(row(0)->bytes_received, 400);
    assert_int_equal(row(0)->bytes_sent, 600);
    assert_int_equal(row(1)->refusal, EGRESS_OVER_LIMIT);
    /* What the guest sent before it knew is let go. */
    assert_int_equal(say_data(0, data, 100), 0);
    assert_int_equal(say_numbers(PROTO_NET_GUEST_END, 0, 0, 0, 4), 0);
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(row(1)->connections, 2);
    expect_reset(peer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways_and_are_counted),
        TEST(what_is_not_permitted_is_nobody),
        TEST(a_guest_reaches_nothing_by_itself),
        TEST(queries_have_numbers),
        TEST(a_name_that_is_looked_up_is_waited_for),
        TEST(a_guest_that_does_not_read_stops_its_peer),
        TEST(room_that_crosses_the_end_is_taken),
        TEST(a_peer_that_does_not_read_stops_the_guest),
        TEST(the_kernel_holds_so_much_and_no_more),
        TEST(a_number_is_free_before_its_peer_has_all),
        TEST(what_was_sent_goes_on_after_the_guests_end),
        TEST(it_goes_on_when_the_guest_says_that_it_broke),
        TEST(a_deadline_ends_what_goes_on),
        TEST(what_goes_on_when_all_is_closed_is_no_end),
        TEST(who_was_told_the_end_is_not_reset),
        TEST(ten_thousand_opens_end_at_the_limit),
        TEST(ten_thousand_names_take_a_fixed_room),
        TEST(refusals_do_not_hide_who_is_reached),
        TEST(bytes_end_at_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
