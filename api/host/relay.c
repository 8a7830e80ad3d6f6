/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `skillvm relay`: the way into the software host. It listens on TCP, wants the token first and
 * joins the connection to the daemon's unix socket, as the user that the other end says it is
 * for. It must never pass on a byte before the token was right, never reach the daemon as
 * another user than that, and never keep more than RELAY_CONNECTIONS_MAX connections,
 * nor let those without a token keep out one that has it.
 */
#include "api/host/host.h"

#include "api/host/pump.h"
#include "api/host/wire.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RELAY_CONNECTIONS_MAX 256
#define RELAY_PREAMBLE_MS     2000
#define RELAY_JOINED_MAX      (RELAY_CONNECTIONS_MAX - RELAY_STRANGERS_MAX)
#define RELAY_STRANGERS_MAX   64 /* connections that have not shown the token */
#define RELAY_CLOCK_STEP_MS   50

struct relay_conn {
    bool joined; /* pump holds the descriptors; otherwise fd waits for the preamble */
    int fd;
    uint8_t preamble[WIRE_PREAMBLE_SIZE];
    size_t got;
    uint64_t deadline_ns;
    struct pump pump;
};

struct relay {
    int listen_fd;
    const char *socket_path;
    uint8_t token[WIRE_TOKEN_SIZE];
    struct relay_conn conns[RELAY_CONNECTIONS_MAX]; /* the first n_conns */
    size_t n_conns;
    size_t n_joined;
    struct log_limit refused;
};

/* The last one takes its place: who drops while going through them goes backwards. */
static void relay_drop(struct relay *relay, struct relay_conn *conn)
{
    if (conn->joined) {
        pump_finish(&conn->pump);
        relay->n_joined--;
    }
    fd_close(&conn->fd);
    *conn = relay->conns[--relay->n_conns];
}

static void relay_answer(int fd, char byte)
{
    /* A fresh connection always has room for one byte; a dead one is noticed by the next poll.
     */
    (void)send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void relay_set_clock(uint64_t realtime_ns)
{
    uint64_t now_ns = clock_realtime_ns();
    uint64_t off_ns = now_ns > realtime_ns ? now_ns - realtime_ns : realtime_ns - now_ns;
    struct timespec ts = {.tv_sec = (time_t)(realtime_ns / NS_PER_SECOND),
                          .tv_nsec = (long)(realtime_ns % NS_PER_SECOND)};

    if (off_ns < RELAY_CLOCK_STEP_MS * NS_PER_MS)
        return;
    if (clock_settime(CLOCK_REALTIME, &ts) < 0)
        log_warn("relay", "event=clock error=%s", strerror(errno));
    else
        log_info("relay", "event=clock stepped_ms=%lld",
                 (long long)(realtime_ns - now_ns) / 1000000);
}

/*
 * Connects as a user: the daemon judges by what the kernel says of its peer. Files are still
 * reached as before, for who may open the socket was decided outside.
 */
static int relay_dial(const char *path, uid_t uid)
{
    const uid_t own = geteuid();
    int fd;

    if (uid != own && seteuid(uid) < 0)
        return -errno;
    (void)setfsuid(own);
    fd = fd_connect_unix(path, SOCK_NONBLOCK);
    if (uid != own && seteuid(own) < 0) {
        log_error("relay", "event=user error=%s", strerror(errno));
        _exit(1);
    }
    return fd;
}

static void relay_power_off(void)
{
    log_info("relay", "event=poweroff");
    if (fork() == 0) {
        execlp("poweroff", "poweroff", (char *)NULL);
        _exit(127);
    }
}

/* The preamble is whole. True while the connection lives on. */
static bool relay_begin(struct relay *relay, struct relay_conn *conn)
{
    struct wire_request request;
    uint64_t dropped;
    int r = wire_decode(conn->preamble, relay->token, &request), fd;

    if (r < 0) {
        if (log_limit_allow(&relay->refused, clock_monotonic_ns(), &dropped))
            log_warn("relay", "event=refused reason=%s suppressed=%llu",
                     r == -EACCES ? "token" : "preamble", (unsigned long long)dropped);
        return false;
    }
    if (request.op == WIRE_OP_CLOCK) {
        relay_set_clock(request.realtime_ns);
        relay_answer(conn->fd, WIRE_OK);
        return false;
    }
    if (request.op == WIRE_OP_POWEROFF) {
        relay_answer(conn->fd, WIRE_OK);
        relay_power_off();
        return false;
    }
    fd = relay_dial(relay->socket_path, request.uid);
    if (fd < 0) {
        relay_answer(conn->fd, WIRE_NO_DAEMON);
        return false;
    }
    r = pump_init(&conn->pump, fd_steal(&conn->fd), fd);
    if (r < 0)
        return false;
    conn->joined = true;
    relay->n_joined++;
    pump_preload(&conn->pump, 1, (const char[]){WIRE_OK}, 1);
    return pump_run(&conn->pump);
}

/* True while the connection lives on. */
static bool relay_read_preamble(struct relay *relay, struct relay_conn *conn)
{
    ssize_t n = recv(conn->fd, conn->preamble + conn->got, WIRE_PREAMBLE_SIZE - conn->got, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    conn->got += (size_t)n;
    return conn->got < WIRE_PREAMBLE_SIZE || relay_begin(relay, conn);
}

/*
 * Makes room by dropping the stranger that has been silent longest. An honest one sends its
 * preamble at once, so many others would have to come within that moment to push it out.
 */
static void relay_drop_oldest_stranger(struct relay *relay)
{
    struct relay_conn *oldest = NULL;

    for (size_t i = 0; i < relay->n_conns; i++) {
        struct relay_conn *conn = &relay->conns[i];

        if (!conn->joined && (!oldest || conn->deadline_ns < oldest->deadline_ns))
            oldest = conn;
    }
    if (oldest)
        relay_drop(relay, oldest);
}

static void relay_accept(struct relay *relay)
{
    int one = 1, fd = accept4(relay->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (relay->n_conns - relay->n_joined >= RELAY_STRANGERS_MAX)
        relay_drop_oldest_stranger(relay);
    /* There is room: the loop accepts only while fewer than RELAY_JOINED_MAX are joined. */
    relay->conns[relay->n_conns++] = (struct relay_conn){
        .fd = fd, .deadline_ns = clock_monotonic_ns() + RELAY_PREAMBLE_MS * NS_PER_MS};
}

static int relay_loop(struct relay *relay)
{
    struct pollfd fds[1 + 2 * RELAY_CONNECTIONS_MAX];

    for (;;) {
        uint64_t now_ns, next_ns = UINT64_MAX;

        fds[0] = (struct pollfd){
            .fd = relay->n_joined < RELAY_JOINED_MAX ? relay->listen_fd : -1, .events = POLLIN};
        for (size_t i = 0; i < relay->n_conns; i++) {
            struct relay_conn *conn = &relay->conns[i];
            struct pollfd *pair = &fds[1 + 2 * i];

            pair[0] = pair[1] = (struct pollfd){.fd = -1};
            if (conn->joined) {
                pump_poll(&conn->pump, pair);
                continue;
            }
            pair[0] = (struct pollfd){.fd = conn->fd, .events = POLLIN};
            if (conn->deadline_ns < next_ns)
                next_ns = conn->deadline_ns;
        }
        if (poll(fds, 1 + 2 * relay->n_conns,
                 next_ns == UINT64_MAX ? -1 : clock_timeout_ms(next_ns)) < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        now_ns = clock_monotonic_ns();
        for (size_t i = relay->n_conns; i-- > 0;) {
            struct relay_conn *conn = &relay->conns[i];
            bool alive = true;

            if (fds[1 + 2 * i].revents || fds[2 + 2 * i].revents)
                alive = conn->joined ? pump_run(&conn->pump) : relay_read_preamble(relay, conn);
            else if (!conn->joined && now_ns >= conn->deadline_ns)
                alive = false;
            if (!alive)
                relay_drop(relay, conn);
        }
        if (fds[0].revents)
            relay_accept(relay);
    }
}

static int relay_listen(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 64) < 0)
        return -errno;
    return fd_steal(&fd);
}

int host_relay_main(int argc, char **argv)
{
    static const struct option options[] = {{"port", required_argument, NULL, 0},
                                            {"socket", required_argument, NULL, 0},
                                            {"token-file", required_argument, NULL, 0},
                                            {0}};
    static struct relay relay = {.refused = {.per_second = 1, .burst = 5}};
    const char *token_path = NULL, *port_text = "0";
    const char **const values[] = {&port_text, &relay.socket_path, &token_path};
    int c, at, r;

    optind = 1;
    while ((c = getopt_long(argc, argv, "", options, &at)) == 0)
        *values[at] = optarg;
    if (c != -1)
        return 2;
    long port = strtol(port_text, NULL, 10);
    if (port < 1 || port > 65535 || !relay.socket_path || !token_path) {
        fprintf(stderr, "usage: skillvm relay --port N --socket PATH --token-file FILE\n");
        return 2;
    }
    r = wire_token_read(token_path, relay.token);
    if (r < 0) {
        log_error("relay", "event=token file=%s error=%s", token_path, strerror(-r));
        return 1;
    }
    relay.listen_fd = relay_listen((uint16_t)port);
    if (relay.listen_fd < 0) {
        log_error("relay", "event=listen port=%ld error=%s", port, strerror(-relay.listen_fd));
        return 1;
    }
    log_info("relay", "event=listening port=%ld", port);
    r = relay_loop(&relay);
    log_error("relay", "event=poll error=%s", strerror(-r));
    return 1;
}
