/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the public socket. It never reads a client's bytes before the relay inside has
 * accepted the token, so a request is never half lost to a host that is not there.
 */
#include "api/host/clients.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_DIAL_MS  5000u
#define CLIENTS_RETRY_MS 250u

static const char clients_sorry[] =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "Content-Length: 83\r\nConnection: close\r\n\r\n"
    "{\"error\":\"unavailable\",\"message\":\"the software host did not answer; see its "
    "log\"}\r\n";

bool clients_full(const struct clients *c)
{
    return c->n >= CLIENTS_MAX;
}

bool clients_waiting(const struct clients *c)
{
    return c->n > c->n_joined;
}

/* The last one takes its place: who drops while going through them goes backwards. */
static void clients_drop(struct clients *c, struct client *client)
{
    if (client->joined) {
        pump_finish(&client->pump);
        c->n_joined--;
    } else {
        dial_finish(&client->dial);
        fd_close(&client->fd);
    }
    *client = c->list[--c->n];
}

/* As whom the daemon inside shall see a peer, by what the kernel says of it. 0 or -errno. */
static int clients_identify(int fd, uid_t *ret)
{
    struct ucred peer = {0};
    int r = fd_peer(fd, &peer);

    *ret = peer.uid == geteuid() ? 0 : peer.uid;
    return r;
}

void clients_accept(struct clients *c, int listen_fd, uint64_t now_ns)
{
    uid_t uid = (uid_t)-1;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (clients_full(c) || clients_identify(fd, &uid) < 0) {
        close(fd);
        return;
    }
    c->list[c->n++] = (struct client){.uid = uid,
                                      .fd = fd,
                                      .dial = DIAL_IDLE,
                                      .retry_ns = now_ns,
                                      .deadline_ns = now_ns + CLIENTS_PATIENCE_MS * NS_PER_MS};
}

size_t clients_poll(struct clients *c, struct pollfd *ret_pollfds)
{
    for (size_t i = 0; i < c->n; i++) {
        struct client *client = &c->list[i];
        struct pollfd *pair = &ret_pollfds[2 * i];

        pair[0] = pair[1] = (struct pollfd){.fd = -1};
        if (client->joined)
            pump_poll(&client->pump, pair);
        else
            pair[0] = dial_poll(&client->dial);
    }
    return 2 * c->n;
}

static bool clients_hung_up(int fd)
{
    struct pollfd pollfd = {.fd = fd};

    return poll(&pollfd, 1, 0) == 1 && (pollfd.revents & (POLLHUP | POLLERR)) != 0;
}

/* True while the client stays. */
static bool clients_join(struct clients *c, struct client *client, uint16_t port,
                         const uint8_t *token, uint64_t now_ns)
{
    int fd = -1, r = -EINPROGRESS;

    if (clients_hung_up(client->fd))
        return false;
    if (client->dial.fd >= 0)
        r = dial_run(&client->dial, now_ns, &fd);
    else if (port != 0 && now_ns >= client->retry_ns)
        r = dial_start(&client->dial, port, WIRE_OP_CONNECT, client->uid, token,
                       CLIENTS_DIAL_MS) < 0
                ? -ECONNREFUSED
                : -EINPROGRESS;
    if (r == 0) {
        if (pump_init(&client->pump, fd_steal(&client->fd), fd) < 0)
            return false;
        client->joined = true;
        c->n_joined++;
        return pump_run(&client->pump);
    }
    if (r != -EINPROGRESS)
        client->retry_ns = now_ns + CLIENTS_RETRY_MS * NS_PER_MS;
    if (now_ns < client->deadline_ns)
        return true;
    send(client->fd, clients_sorry, sizeof(clients_sorry) - 1, MSG_NOSIGNAL);
    return false;
}

void clients_run(struct clients *c, uint16_t port, const uint8_t *token, uint64_t now_ns)
{
    for (size_t i = c->n; i-- > 0;) {
        struct client *client = &c->list[i];
        bool alive;

        if (!client->joined && port == 0)
            dial_finish(&client->dial);
        alive = client->joined ? pump_run(&client->pump)
                               : clients_join(c, client, port, token, now_ns);
        if (!alive)
            clients_drop(c, client);
    }
}

/* Reads the beginning of a request, as what is left unread resets the connection. */
static bool clients_asked(int fd)
{
    char request[16384];

    return recv(fd, request, sizeof(request), MSG_DONTWAIT) >= 0;
}

void clients_refuse(struct clients *c, const char *message)
{
    char body[512], answer[768];
    int body_len = snprintf(body, sizeof(body),
                            "{\"error\":\"unavailable\",\"message\":\"%.400s\"}\r\n", message);
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                       body_len, body);

    for (size_t i = c->n; i-- > 0;) {
        if (c->list[i].joined || !clients_asked(c->list[i].fd))
            continue;
        (void)send(c->list[i].fd, answer, (size_t)len, MSG_NOSIGNAL);
        clients_drop(c, &c->list[i]);
    }
}

void clients_drop_joined(struct clients *c)
{
    for (size_t i = c->n; i-- > 0;) {
        if (c->list[i].joined)
            clients_drop(c, &c->list[i]);
    }
}

void clients_finish(struct clients *c)
{
    while (c->n > 0)
        clients_drop(c, c->list);
}
