/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_net.h"

#include "guest-init/proto.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct answer_frame {
    uint8_t type;
    uint8_t *data; /* owned */
    size_t len;
};

static struct answer_frame receive(const struct fake *f)
{
    struct answer_frame a = {0};

    a.type = fake_receive_frame(f, &a.data, &a.len);
    return a;
}

static void ask(const struct fake *f, const char *name)
{
    uint8_t payload[2 + 255] = {0};

    memcpy(payload + 2, name, strlen(name));
    fake_send_frame(f, PROTO_NET_ASK, payload, 2 + strlen(name));
}

static void say_open(const struct fake *f, unsigned key, unsigned name, unsigned port)
{
    const uint8_t payload[] = {(uint8_t)key,        0, (uint8_t)name, 0, (uint8_t)port,
                               (uint8_t)(port >> 8)};

    fake_send_frame(f, PROTO_NET_OPEN, payload, sizeof(payload));
}

static void say_end(const struct fake *f, unsigned key, unsigned broke)
{
    const uint8_t payload[] = {(uint8_t)key, 0, (uint8_t)broke, 0};

    fake_send_frame(f, PROTO_NET_GUEST_END, payload, sizeof(payload));
}

static void say_data(const struct fake *f, unsigned key, size_t len)
{
    static uint8_t payload[2 + PROTO_NET_DATA_MAX];

    payload[0] = (uint8_t)key;
    fake_send_frame(f, PROTO_NET_GUEST_DATA, payload, 2 + len);
}

/* The port in this place among those that an answer gives, or 0. */
static unsigned port_of(const struct answer_frame *a, unsigned place)
{
    return a->len >= 6 + 2 * place
               ? (unsigned)a->data[4 + 2 * place] | (unsigned)a->data[5 + 2 * place] << 8
               : 0;
}

/* Asks for the name and opens a connection to it. Its port, or 0. */
static unsigned reach(struct fake *f, unsigned place)
{
    struct answer_frame a;
    unsigned port;

    ask(f, f->payload);
    a = receive(f);
    port = a.type == PROTO_NET_ANSWER && a.data[2] == PROTO_NET_GOOD ? port_of(&a, place) : 0;
    free(a.data);
    if (port)
        say_open(f, 0, 0, port);
    return port;
}

static void end_honestly(struct fake *f, const char *text)
{
    fake_send_text(f, PROTO_STDOUT, text);
    fake_finish(f, 0, 0, 0);
}

static void converse(struct fake *f, unsigned place)
{
    struct answer_frame a;

    if (!reach(f, place)) {
        end_honestly(f, "nobody");
        return;
    }
    a = receive(f);
    if (a.type != PROTO_NET_OPENED) {
        end_honestly(f, "refused");
        return;
    }
    free(a.data);
    fake_send_frame(f, PROTO_NET_GUEST_DATA, "\0\0hello", 7);
    say_end(f, 0, 0);
    for (a = receive(f); a.type == PROTO_NET_HOST_DATA; a = receive(f)) {
        fake_send_frame(f, PROTO_STDOUT, a.data + 2, a.len - 2);
        free(a.data);
    }
    fake_finish(f, 0, 0, 0);
}

/* As often as it can be said, whatever comes back. */
static void open_ten_thousand(struct fake *f)
{
    unsigned port = reach(f, 0), refused = 0;
    char text[64];

    for (unsigned i = 0; i < 10000; i++) {
        struct answer_frame a = receive(f);

        refused += a.type == PROTO_NET_REFUSED;
        if (a.type == PROTO_NET_OPENED) {
            say_end(f, 0, 1);
            free(a.data);
            for (a = receive(f); a.type != PROTO_NET_HOST_END; a = receive(f))
                free(a.data);
        }
        free(a.data);
        say_open(f, 0, 0, port);
    }
    (void)snprintf(text, sizeof(text), "refused %u", refused);
    end_honestly(f, text);
}

static void behave_badly(struct fake *f, const char *how)
{
    unsigned port;

    if (strcmp(how, "unasked") == 0) {
        say_open(f, 0, 0, 443);
        pause();
    }
    port = reach(f, 0);
    if (strcmp(how, "port") == 0)
        say_open(f, 1, 0, port ^ 1u);
    else if (strcmp(how, "twice") == 0)
        say_open(f, 0, 0, port);
    else if (strcmp(how, "early") == 0)
        say_data(f, 5, 1);
    else if (strcmp(how, "flood") == 0)
        for (free(receive(f).data);;)
            say_data(f, 0, PROTO_NET_DATA_MAX);
    pause();
}

/* Opens all there are, and reads nothing that comes. */
static void hold_all(struct fake *f)
{
    unsigned port = reach(f, 0);

    for (unsigned i = 1; i < PROTO_NET_CONNECTIONS; i++)
        say_open(f, i, 0, port);
    pause();
}

/* Says all that it has room for, to a peer that takes some of it, and ends. */
static void say_all(struct fake *f)
{
    struct pollfd p = {.fd = f->vsock_fd, .events = POLLIN};
    unsigned long room = PROTO_NET_WINDOW, said = 0;
    char text[64];

    (void)reach(f, 0);
    free(receive(f).data);
    do {
        for (; room >= PROTO_NET_DATA_MAX;
             room -= PROTO_NET_DATA_MAX, said += PROTO_NET_DATA_MAX)
            say_data(f, 0, PROTO_NET_DATA_MAX);
        /* How much it is is nobody's concern, but a moment without room is the end. */
        while (room < PROTO_NET_DATA_MAX && poll(&p, 1, 300) > 0) {
            struct answer_frame a = receive(f);

            if (a.type == PROTO_NET_HOST_ROOM)
                room += (unsigned long)a.data[4] | (unsigned long)a.data[5] << 8 |
                        (unsigned long)a.data[6] << 16;
            free(a.data);
        }
    } while (room >= PROTO_NET_DATA_MAX);
    say_end(f, 0, 0);
    (void)snprintf(text, sizeof(text), "said %lu", said);
    end_honestly(f, text);
}

void fake_net_behave(struct fake *f)
{
    const char *how = f->behaviour + 3;
    char *place = strchr(f->payload, ' ');

    if (place)
        *place = '\0';
    if (!*how)
        converse(f, place ? (unsigned)atoi(place + 1) : 0);
    else if (strcmp(how, "-ten-thousand") == 0)
        open_ten_thousand(f);
    else if (strcmp(how, "-all") == 0)
        say_all(f);
    else if (strcmp(how, "-hold") == 0)
        hold_all(f);
    else
        behave_badly(f, how + 1);
}
