/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay, as a guest drives it, an honest one and others. Peers and the DNS server are
 * sockets of this process; what is connected to at a public address comes here, too.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/egress/egress.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest-init/proto.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_NS (20 * NS_PER_SECOND)

struct world {
    struct egress *egress;
    int listener;
    uint16_t port;
    int dns;
    char dns_address[32];
    char declared[256];
    struct egress_settings settings;
    struct egress_rules rules;
    uint8_t type; /* of the frame that came last */
    uint8_t payload[PROTO_CHUNK_MAX];
    size_t len;
};

static struct world w;
/* What the DNS server answers: addresses, in turn of the bytes; none: no such name. */
static uint8_t dns_ipv4[4][4];
static unsigned dns_n, dns_asked;
/* Where the code under test wanted to go. */
static char went_to[INET_ADDRSTRLEN];
static unsigned went;

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons(w.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const void *raw = to;
    const struct sockaddr_in *ipv4 = raw;

    went++;
    (void)inet_ntop(AF_INET, &ipv4->sin_addr, went_to, sizeof(went_to));
    return ipv4->sin_addr.s_addr == inet_addr("93.184.216.34")
               ? __real_connect(fd, (const struct sockaddr *)&here, sizeof(here))
               : __real_connect(fd, to, size);
}

static int local_socket(int type, uint16_t *ret_port)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &size), 0);
    *ret_port = ntohs(here.sin_port);
    return fd;
}

static int setup(void **state)
{
    uint16_t dns_port;

    (void)state;
    w = (struct world){.listener = -1};
    w.listener = local_socket(SOCK_STREAM, &w.port);
    w.dns = local_socket(SOCK_DGRAM, &dns_port);
    (void)snprintf(w.dns_address, sizeof(w.dns_address), "127.0.0.1:%u", dns_port);
    (void)snprintf(w.declared, sizeof(w.declared), "here.test:%u *.example.test:%u", w.port,
                   w.port);
    w.settings = (struct egress_settings){.fixed_names = "here.test=127.0.0.1",
                                          .servers = w.dns_address,
                                          .connections_max = 100,
                                          .bytes_max = 1u << 30};
    w.rules = (struct egress_rules){.declared = w.declared};
    dns_n = dns_asked = went = 0;
    w.egress = egress_open(&w.settings, &w.rules, NULL);
    assert_non_null(w.egress);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    egress_close(w.egress);
    close(w.listener);
    close(w.dns);
    return 0;
}

/* With other settings or rules, which w has. */
static void open_anew(void)
{
    egress_close(w.egress);
    w.egress = egress_open(&w.settings, &w.rules, NULL);
    assert_non_null(w.egress);
}

static void serve_dns(void)
{
    uint8_t data[1024];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t got = recvfrom(w.dns, data, 512, 0, (struct sockaddr *)&from, &size);
    size_t len;
    bool is_a;

    if (got < 12)
        return;
    for (len = 12; data[len]; len += data[len] + 1u)
        ;
    is_a = data[len + 2] == 1;
    len += 5;
    dns_asked++;
    data[2] = 0x81;
    data[3] = dns_n > 0 ? 0x80 : 0x83;
    data[7] = is_a ? (uint8_t)dns_n : 0;
    memset(data + 8, 0, 4);
    for (unsigned i = 0; is_a && i < dns_n; i++) {
        memcpy(data + len, "\xc0\x0c\0\1\0\1\0\0\0\0\0\4", 12);
        memcpy(data + len + 12, dns_ipv4[i], 4);
        len += 16;
    }
    (void)sendto(w.dns, data, len, 0, (struct sockaddr *)&from, size);
}

static int say(uint8_t type, const void *payload, size_t len)
{
    struct err err = {0};

    return egress_take(w.egress, type, payload, len, &err);
}

static int say_numbers(uint8_t type, unsigned a, unsigned b, unsigned c, size_t len)
{
    uint8_t payload[8];
    struct bytes_writer out = bytes_writer_init(payload, sizeof(payload));

    bytes_put_u16(&out, (uint16_t)a);
    bytes_put_u16(&out, (uint16_t)b);
    if (len == 8)
        bytes_put_u32(&out, c);
    else
        bytes_put_u16(&out, (uint16_t)c);
    return say(type, payload, len);
}

static int say_data(unsigned key, const void *data, size_t len)
{
    static uint8_t payload[2 + PROTO_NET_DATA_MAX + 1];

    payload[0] = (uint8_t)key;
    payload[1] = 0;
    memcpy(payload + 2, data, len);
    return say(PROTO_NET_GUEST_DATA, payload, len + 2);
}

/* The next frame that there is now. */
static bool take_now(void)
{
    egress_work(w.egress);
    w.len = egress_next(w.egress, &w.type, w.payload);
    return w.len > 0;
}

static void take(uint8_t type)
{
    uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_NS;

    while (!take_now()) {
        struct pollfd p[] = {{.fd = egress_fd(w.egress), .events = POLLIN},
                             {.fd = w.dns, .events = POLLIN}};
        uint64_t due_ns = egress_deadline_ns(w.egress);

        if (clock_monotonic_ns() > deadline_ns)
            fail_msg("no frame 0x%02x", type);
        (void)poll(p, 2, clock_timeout_ms(due_ns < deadline_ns ? due_ns : deadline_ns));
        serve_dns();
    }
    if (w.type != type)
        fail_msg("frame 0x%02x where 0x%02x was due", w.type, type);
}

static int ask(const char *name)
{
    char payload[2 + 300] = {0};

    memcpy(payload + 2, name, strlen(name));
    assert_int_equal(say(PROTO_NET_ASK, payload, 2 + strlen(name)), 0);
    take(PROTO_NET_ANSWER);
    return w.payload[2];
}

static const struct egress_record *row(size_t at)
{
    const struct egress_records *log = egress_log(w.egress);

    assert_true(at < log->n);
    return &log->rows[at];
}

static int open_key(unsigned key)
{
    return say_numbers(PROTO_NET_OPEN, key, 0, w.port, 6);
}

/* A connection under a number, and the peer's end of it. */
static int connect_key(unsigned key)
{
    int fd;

    assert_int_equal(open_key(key), 0);
    take(PROTO_NET_OPENED);
    assert_int_equal(w.payload[0], key);
    fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

static size_t read_some(int fd, void *data, size_t max)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;

    egress_work(w.egress);
    assert_int_equal(poll(&p, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
    n = recv(fd, data, max, 0);
    return n < 0 ? 0 : (size_t)n;
}

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

static void resolve_to(unsigned n, const char *a, const char *b)
{
    dns_n = n;
    assert_int_equal(inet_pton(AF_INET, a, dns_ipv4[0]), 1);
    assert_int_equal(inet_pton(AF_INET, b, dns_ipv4[1]), 1);
}

static void expect_bad(const char *name, enum egress_refusal refusal, const char *why)
{
    const struct egress_record *last;

    assert_int_equal(ask(name), refusal == EGRESS_FAILED ? PROTO_NET_FAILED : PROTO_NET_NOBODY);
    last = row(egress_log(w.egress)->n - 1);
    assert_string_equal(last->host, name);
    assert_int_equal(last->refusal, refusal);
    if (!strstr(last->refused, why))
        fail_msg("%s", last->refused);
}

static void names_of_private_addresses_are_refused(void **state)
{
    (void)state;
    resolve_to(1, "10.0.0.1", "0.0.0.0");
    expect_bad("a.example.test", EGRESS_BAD_ADDRESS, "it resolves to 10.0.0.1: a private");
    resolve_to(1, "169.254.169.254", "0.0.0.0");
    expect_bad("b.example.test", EGRESS_BAD_ADDRESS, "metadata");
    /* One of each: an address for the check, and one for the connection. */
    resolve_to(2, "93.184.216.34", "127.0.0.1");
    expect_bad("c.example.test", EGRESS_BAD_ADDRESS, "loopback");
    dns_n = 0;
    expect_bad("d.example.test", EGRESS_NO_SUCH_NAME, "no such name");
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(went, 0);
}

static void what_was_checked_is_what_is_connected_to(void **state)
{
    int peer;

    (void)state;
    resolve_to(1, "93.184.216.34", "0.0.0.0");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    /* From now on the name means this machine. */
    resolve_to(1, "127.0.0.1", "0.0.0.0");
    dns_asked = 0;
    peer = connect_key(0);
    close(peer);
    take(PROTO_NET_HOST_END);
    assert_string_equal(went_to, "93.184.216.34");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    close(connect_key(1));
    assert_string_equal(went_to, "93.184.216.34");
    assert_int_equal(dns_asked, 0);
}

static void a_peer_that_is_not_there_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    close(w.listener);
    w.listener = -1;
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(row(0)->refusal, EGRESS_FAILED);
    assert_non_null(strstr(row(0)->refused, "refused"));
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
            assert_int_equal(poll(&p, 1, 5000), 1);
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

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void ten_thousand_opens_end_at_the_limit(void **state)
{
    unsigned opened = 0, refused = 0, before;

    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    before = open_descriptors();
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
    assert_int_equal(open_descriptors(), before);
}

static void ten_thousand_names_take_a_fixed_room(void **state)
{
    char name[64];

    (void)state;
    dns_n = 0;
    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), i % 100 == 0 ? "n%u.example.test" : "n%u.test", i);
        assert_int_equal(ask(name), PROTO_NET_NOBODY);
    }
    assert_int_equal(egress_log(w.egress)->n, EGRESS_RECORDS_MAX);
    assert_int_equal(egress_log(w.egress)->others.connections, 10000 - EGRESS_RECORDS_MAX);
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
    close(peer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways_and_are_counted),
        TEST(what_is_not_permitted_is_nobody),
        TEST(a_guest_reaches_nothing_by_itself),
        TEST(queries_have_numbers),
        TEST(names_of_private_addresses_are_refused),
        TEST(what_was_checked_is_what_is_connected_to),
        TEST(a_peer_that_is_not_there_is_refused),
        TEST(a_guest_that_does_not_read_stops_its_peer),
        TEST(a_peer_that_does_not_read_stops_the_guest),
        TEST(a_number_is_free_before_its_peer_has_all),
        TEST(ten_thousand_opens_end_at_the_limit),
        TEST(ten_thousand_names_take_a_fixed_room),
        TEST(bytes_end_at_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
