/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/egress_world.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_NS (20 * NS_PER_SECOND)

struct world w;
/* What the DNS server answers: addresses, in turn of the bytes; none: no such name. */
static uint8_t dns_ipv4[DNS_MAX][4], dns_ipv6[DNS_MAX][16];
static unsigned dns_n, dns_n_ipv6;
unsigned dns_asked;
/* Where the code under test wanted to go. */
char went_to[INET6_ADDRSTRLEN], went_families[64];
int went_fd;
unsigned went;

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);

int __wrap_socket(int family, int type, int protocol)
{
    if (family == AF_INET6 && w.has_no_ipv6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return __real_socket(family, type, protocol);
}

static int connect_port(int fd, uint16_t port)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return __real_connect(fd, (const struct sockaddr *)&here, sizeof(here));
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    const void *raw = to;
    const struct sockaddr_in *ipv4 = raw;
    const struct sockaddr_in6 *ipv6 = raw;

    if (went < sizeof(went_families))
        went_families[went] = to->sa_family == AF_INET6 ? '6' : '4';
    went++;
    went_fd = fd;
    if (to->sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &ipv6->sin6_addr, went_to, sizeof(went_to));
        errno = ENETUNREACH;
        return -1;
    }
    (void)inet_ntop(AF_INET, &ipv4->sin_addr, went_to, sizeof(went_to));
    if (strcmp(went_to, ADDRESS_HERE) == 0)
        return connect_port(fd, w.port);
    if (strcmp(went_to, ADDRESS_SILENT) == 0)
        return connect_port(fd, w.silent_port);
    return strcmp(went_to, ADDRESS_REFUSES) == 0 ? connect_port(fd, 1)
                                                 : __real_connect(fd, to, size);
}

/* Fills the queue of one that nobody accepts from, until it says no more to anybody. */
static void open_silent(void)
{
    struct pollfd p = {.events = POLLOUT};

    for (unsigned i = 0; i < sizeof(w.silent_fds) / sizeof(w.silent_fds[0]); i++) {
        w.silent_fds[i] = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        p.fd = w.silent_fds[i];
        (void)connect_port(p.fd, w.silent_port);
        if (poll(&p, 1, 100) == 0)
            return;
    }
    fail_msg("the queue has no end");
}

void end_silence(void)
{
    assert_int_equal(listen(w.silent, 64), 0);
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

int setup(void **state)
{
    uint16_t dns_port;

    (void)state;
    w = (struct world){.listener = -1};
    w.listener = local_socket(SOCK_STREAM, &w.port);
    w.silent = local_socket(SOCK_STREAM, &w.silent_port);
    memset(w.silent_fds, -1, sizeof(w.silent_fds));
    assert_int_equal(listen(w.silent, 0), 0);
    open_silent();
    w.dns = local_socket(SOCK_DGRAM, &dns_port);
    (void)snprintf(w.dns_address, sizeof(w.dns_address), "127.0.0.1:%u", dns_port);
    (void)snprintf(w.declared, sizeof(w.declared), "here.test:%u *.example.test:%u", w.port,
                   w.port);
    w.settings = (struct egress_settings){.fixed_names = "here.test=127.0.0.1",
                                          .servers = w.dns_address,
                                          .connections_max = 100,
                                          .bytes_max = 1u << 30};
    w.rules = (struct egress_rules){.declared = w.declared};
    dns_n = dns_n_ipv6 = dns_asked = went = 0;
    w.egress = egress_open(&w.settings, &w.rules, NULL);
    assert_non_null(w.egress);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    egress_close(w.egress);
    close(w.listener);
    close(w.silent);
    for (unsigned i = 0; i < sizeof(w.silent_fds) / sizeof(w.silent_fds[0]); i++)
        fd_close(&w.silent_fds[i]);
    close(w.dns);
    return 0;
}

void open_anew(void)
{
    egress_close(w.egress);
    w.egress = egress_open(&w.settings, &w.rules, NULL);
    assert_non_null(w.egress);
}

/* Appends an answer for the name that was asked for. */
static size_t put_answer(uint8_t *out, uint8_t type, const uint8_t *address, uint8_t size)
{
    const uint8_t head[] = {0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, size};

    memcpy(out, head, sizeof(head));
    memcpy(out + sizeof(head), address, size);
    return sizeof(head) + size;
}

static void serve_dns(void)
{
    uint8_t data[4096];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t got = recvfrom(w.dns, data, 512, 0, (struct sockaddr *)&from, &size);
    size_t len;
    uint8_t type;
    unsigned n;

    if (got < 12)
        return;
    for (len = 12; data[len]; len += data[len] + 1u)
        ;
    type = data[len + 2];
    n = type == 1 ? dns_n : dns_n_ipv6;
    len += 5;
    dns_asked++;
    data[2] = 0x81;
    data[3] = dns_n + dns_n_ipv6 > 0 ? 0x80 : 0x83;
    data[7] = (uint8_t)n;
    memset(data + 8, 0, 4);
    for (unsigned i = 0; i < n; i++)
        len += type == 1 ? put_answer(data + len, type, dns_ipv4[i], 4)
                         : put_answer(data + len, type, dns_ipv6[i], 16);
    (void)sendto(w.dns, data, len, 0, (struct sockaddr *)&from, size);
}

int say(uint8_t type, const void *payload, size_t len)
{
    struct err err = {0};

    return egress_take(w.egress, type, payload, len, &err);
}

int say_numbers(uint8_t type, unsigned a, unsigned b, unsigned c, size_t len)
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

int say_data(unsigned key, const void *data, size_t len)
{
    static uint8_t payload[2 + PROTO_NET_DATA_MAX + 1];

    payload[0] = (uint8_t)key;
    payload[1] = 0;
    memcpy(payload + 2, data, len);
    return say(PROTO_NET_GUEST_DATA, payload, len + 2);
}

/* The next frame that there is now. */
bool take_now(void)
{
    egress_work(w.egress);
    w.len = egress_next(w.egress, &w.type, w.payload);
    return w.len > 0;
}

void take(uint8_t type)
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

int ask(const char *name)
{
    char payload[2 + 300] = {0};

    memcpy(payload + 2, name, strlen(name));
    assert_int_equal(say(PROTO_NET_ASK, payload, 2 + strlen(name)), 0);
    take(PROTO_NET_ANSWER);
    return w.payload[2];
}

const struct egress_record *row(size_t at)
{
    const struct egress_records *log = egress_log(w.egress);

    assert_true(at < log->n);
    return &log->rows[at];
}

int open_key(unsigned key)
{
    return say_numbers(PROTO_NET_OPEN, key, 0, w.port, 6);
}

/* A connection under a number, and the peer's end of it. */
int connect_key(unsigned key)
{
    int fd;

    assert_int_equal(open_key(key), 0);
    take(PROTO_NET_OPENED);
    assert_int_equal(w.payload[0], key);
    fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

size_t read_some(int fd, void *data, size_t max)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;

    egress_work(w.egress);
    assert_int_equal(poll(&p, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
    n = recv(fd, data, max, 0);
    return n < 0 ? 0 : (size_t)n;
}

void resolve_to(unsigned n, const char *a, const char *b)
{
    dns_n = n;
    dns_n_ipv6 = 0;
    assert_int_equal(inet_pton(AF_INET, a, dns_ipv4[0]), 1);
    assert_int_equal(inet_pton(AF_INET, b, dns_ipv4[1]), 1);
}

void resolve_also(const char *address)
{
    assert_true(dns_n < DNS_MAX && dns_n_ipv6 < DNS_MAX);
    if (inet_pton(AF_INET, address, dns_ipv4[dns_n]) == 1)
        dns_n++;
    else
        assert_int_equal(inet_pton(AF_INET6, address, dns_ipv6[dns_n_ipv6++]), 1);
}
