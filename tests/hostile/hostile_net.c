/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of the hostile guest, which speaks to the host's relay itself: it asks for names
 * that no resolver would pass on, opens what it was not told of, and holds what it opened.
 * Names come as arguments, in hexadecimal digits, so that they may be of any bytes.
 */
#include "tests/hostile/hostile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "guest-init/proto.h"

#define ALL         PROTO_NET_CONNECTIONS
#define NUMBERS_MAX 8u

static uint8_t payload[2 + PROTO_NET_DATA_MAX];

struct answer {
    uint8_t kind; /* enum proto_net_answer */
    unsigned name;
    uint16_t ports[PROTO_NET_PORTS];
    size_t n_ports;
};

/* A frame of three numbers of 16 bits, and zeros behind them, cut to len bytes. */
static void put_numbers(struct bytes_writer *w, uint8_t type, unsigned a, unsigned b,
                        unsigned c, size_t len)
{
    uint8_t raw[NUMBERS_MAX] = {0};
    struct bytes_writer numbers = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u16(&numbers, (uint16_t)a);
    bytes_put_u16(&numbers, (uint16_t)b);
    bytes_put_u16(&numbers, (uint16_t)c);
    bytes_put_u32(w, (uint32_t)len);
    bytes_put_u32(w, type);
    bytes_put(w, raw, len);
}

static void numbers(int conn, uint8_t type, unsigned a, unsigned b, unsigned c, size_t len)
{
    uint8_t frame[PROTO_HEADER_SIZE + NUMBERS_MAX];
    struct bytes_writer w = bytes_writer_init(frame, sizeof(frame));

    put_numbers(&w, type, a, b, c, len);
    hostile_send(conn, frame, w.len);
}

static void open_to(int conn, unsigned key, unsigned name, unsigned port)
{
    numbers(conn, PROTO_NET_OPEN, key, name, port, 6);
}

static void end(int conn, unsigned key, bool broke)
{
    numbers(conn, PROTO_NET_GUEST_END, key, broke, 0, 4);
}

static void room(int conn, unsigned key, unsigned bytes)
{
    numbers(conn, PROTO_NET_GUEST_ROOM, key, 0, bytes, 8);
}

/* payload's first bytes are the number, the others whatever was there. */
static void data(int conn, unsigned key, size_t len)
{
    payload[0] = (uint8_t)key;
    payload[1] = 0;
    hostile_frame(conn, PROTO_NET_GUEST_DATA, payload, 2 + len);
}

static void ask(int conn, unsigned query, const void *name, size_t len)
{
    payload[0] = (uint8_t)query;
    payload[1] = 0;
    memcpy(payload + 2, name, len);
    hostile_frame(conn, PROTO_NET_ASK, payload, 2 + len);
}

/* The host's next frame, and the connection or query that it is of. */
static unsigned receive(int conn, struct hostile_received *ret)
{
    struct bytes_reader r;

    if (hostile_receive(conn, ret) < 0)
        hostile_wait();
    r = bytes_reader_init(ret->data, ret->len);
    return bytes_get_u16(&r);
}

static struct answer take_answer(int conn)
{
    struct answer a = {0};
    struct hostile_received got;
    struct bytes_reader r;

    do
        (void)receive(conn, &got);
    while (got.type != PROTO_NET_ANSWER);
    r = bytes_reader_init(got.data, got.len);
    (void)bytes_get_u16(&r);
    a.kind = bytes_get_u8(&r);
    a.name = bytes_get_u8(&r);
    while (bytes_left(&r) > 0 && a.n_ports < PROTO_NET_PORTS)
        a.ports[a.n_ports++] = bytes_get_u16(&r);
    return a;
}

/* Asks for the name of an argument. */
static void ask_digits(int conn, const char *digits)
{
    uint8_t name[HOSTILE_ARG_SIZE / 2];
    size_t len = strlen(digits) / 2;

    for (size_t i = 0; i < len; i++) {
        const char byte[] = {digits[2 * i], digits[2 * i + 1], '\0'};

        name[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    ask(conn, 0, name, len);
}

static struct answer ask_for(int conn, const char *digits)
{
    ask_digits(conn, digits);
    return take_answer(conn);
}

/* Opens a connection, says something and ends it. True when it was one. */
static bool converse(int conn, const struct answer *a, unsigned port)
{
    struct hostile_received got;

    open_to(conn, 0, a->name, port);
    do
        (void)receive(conn, &got);
    while (got.type != PROTO_NET_OPENED && got.type != PROTO_NET_REFUSED);
    if (got.type == PROTO_NET_REFUSED)
        return false;
    data(conn, 0, 5);
    end(conn, 0, false);
    do
        (void)receive(conn, &got);
    while (got.type != PROTO_NET_HOST_END);
    return true;
}

/* What comes of each name and of each port that it is told for it: a line each. */
static void try_names(int conn, const struct hostile_args *args)
{
    static const char *const kinds[] = {"good", "nobody", "failed"};
    char line[64];

    for (size_t i = 1; i < args->n; i++) {
        struct answer a = ask_for(conn, args->all[i]);

        (void)snprintf(line, sizeof(line), "%zu %s", i - 1,
                       a.kind <= PROTO_NET_FAILED ? kinds[a.kind] : "?");
        hostile_say(conn, line);
        for (size_t p = 0; p < a.n_ports; p++) {
            bool is_open = converse(conn, &a, a.ports[p]);

            (void)snprintf(line, sizeof(line), " %u:%s", a.ports[p], is_open ? "open" : "not");
            hostile_say(conn, line);
        }
        hostile_say(conn, "\n");
    }
}

/* So many in a row, under all numbers at once, as fast as it goes: what is due goes together.
 */
static void open_many(int conn, const struct answer *a, unsigned long n)
{
    uint8_t frames[ALL * (PROTO_HEADER_SIZE + NUMBERS_MAX)];
    struct bytes_writer due = bytes_writer_init(frames, sizeof(frames));
    unsigned long begun = 0, opened = 0, refused = 0;
    char line[64];

    while (begun < ALL && begun < n)
        put_numbers(&due, PROTO_NET_OPEN, (unsigned)begun++, a->name, a->ports[0], 6);
    while (opened + refused < n) {
        struct hostile_received got;
        bool is_over;
        unsigned key;

        if (due.len > sizeof(frames) / 2 || !fd_is_readable(conn)) {
            hostile_send(conn, frames, due.len);
            due.len = 0;
        }
        key = receive(conn, &got);
        is_over = got.type == PROTO_NET_HOST_END || got.type == PROTO_NET_REFUSED;
        opened += got.type == PROTO_NET_HOST_END;
        refused += got.type == PROTO_NET_REFUSED;
        if (got.type == PROTO_NET_OPENED)
            put_numbers(&due, PROTO_NET_GUEST_END, key, 1, 0, 4);
        if (is_over && begun < n) {
            put_numbers(&due, PROTO_NET_OPEN, key, a->name, a->ports[0], 6);
            begun++;
        }
    }
    (void)snprintf(line, sizeof(line), "%lu opened, %lu refused\n", opened, refused);
    hostile_say(conn, line);
}

/* All that it may have at once, and all that comes, but no room is given for more. */
static void take_all(int conn, const struct answer *a, const char *digits)
{
    uint32_t came[ALL] = {0};
    unsigned full = 0, asked = 0, answers = 0;

    for (unsigned key = 0; key < ALL; key++)
        open_to(conn, key, a->name, a->ports[0]);
    /* What else the host had to say comes before its second answer. */
    while (answers < 2) {
        struct hostile_received got;
        unsigned key = receive(conn, &got);

        if (got.type == PROTO_NET_HOST_DATA && key < ALL) {
            came[key] += got.len - 2;
            full += came[key] == PROTO_NET_WINDOW;
            if (came[key] > PROTO_NET_WINDOW)
                hostile_say(conn, "more than there was room for\n");
        }
        answers += got.type == PROTO_NET_ANSWER;
        if (full == ALL && asked == answers && answers < 2) {
            ask_digits(conn, digits);
            asked++;
        }
    }
}

/* The same for as long as it is let, sending what it may, or hearing nothing. */
static void hold_all(int conn, const struct answer *a, bool is_deaf)
{
    for (unsigned key = 0; key < ALL; key++)
        open_to(conn, key, a->name, a->ports[0]);
    if (is_deaf)
        hostile_wait();
    for (;;) {
        struct hostile_received got;
        unsigned key = receive(conn, &got);
        struct bytes_reader r = bytes_reader_init(got.data, got.len);
        uint32_t may_send = got.type == PROTO_NET_OPENED ? PROTO_NET_WINDOW : 0;

        (void)bytes_take(&r, 4);
        if (got.type == PROTO_NET_HOST_ROOM)
            may_send = bytes_get_u32(&r);
        for (uint32_t n; may_send > 0; may_send -= n) {
            n = may_send < PROTO_NET_DATA_MAX ? may_send : PROTO_NET_DATA_MAX;
            data(conn, key, n);
        }
    }
}

/* Opens the first connection, and waits until it is one. */
static void open_first(int conn, const struct answer *a)
{
    struct hostile_received got;
    unsigned key;

    open_to(conn, 0, a->name, a->ports[0]);
    do
        key = receive(conn, &got);
    while (got.type != PROTO_NET_OPENED || key != 0);
}

/* One that the host's side of the conversation forbids. */
static void breach_in_connections(int conn, const struct answer *a, const char *mode)
{
    const unsigned port = a->ports[0];

    if (strcmp(mode, "net-untold-name") == 0) {
        open_to(conn, 0, PROTO_NET_NAMES - 1, port);
    } else if (strcmp(mode, "net-untold-port") == 0) {
        open_to(conn, 0, a->name, port + 1);
    } else if (strcmp(mode, "net-number-over") == 0) {
        open_to(conn, ALL, a->name, port);
    } else if (strcmp(mode, "net-number-in-use") == 0) {
        open_to(conn, 0, a->name, port);
        open_to(conn, 0, a->name, port);
    } else if (strcmp(mode, "net-data-unopened") == 0) {
        data(conn, 5, 1);
    } else if (strcmp(mode, "net-host-frame") == 0) {
        numbers(conn, PROTO_NET_OPENED, 0, 0, 0, 2);
    } else if (strcmp(mode, "net-after-exit") == 0) {
        hostile_exit(conn, 0, 0, 0);
        open_to(conn, 0, a->name, port);
    }
    if (strncmp(mode, "net-open-", 9) != 0)
        return;
    open_first(conn, a);
    if (strcmp(mode, "net-open-room") == 0) {
        room(conn, 0, 1);
    } else if (strcmp(mode, "net-open-ends-twice") == 0) {
        end(conn, 0, false);
        end(conn, 0, false);
    } else if (strcmp(mode, "net-open-floods") == 0) {
        for (;;)
            data(conn, 0, PROTO_NET_DATA_MAX);
    }
}

/* The same of questions; the second name is one whose answer does not come. */
static void breach_in_questions(int conn, const char *mode, const char *silent)
{
    if (strcmp(mode, "net-query-over") == 0) {
        ask(conn, PROTO_NET_QUERIES, "x", 1);
    } else if (strcmp(mode, "net-query-in-use") == 0) {
        ask_digits(conn, silent);
        ask_digits(conn, silent);
    }
}

/* In the middle of everything the machine is gone. */
static void break_off(int conn, const struct answer *a)
{
    for (unsigned key = 1; key < ALL; key++)
        open_to(conn, key, a->name, a->ports[0]);
    open_first(conn, a);
    data(conn, 0, PROTO_NET_DATA_MAX);
    hostile_header(conn, 2 + PROTO_NET_DATA_MAX, PROTO_NET_GUEST_DATA, 0, 0);
    (void)reboot(RB_AUTOBOOT);
}

void hostile_connections(int conn, const struct hostile_args *args)
{
    const char *mode = args->all[0];
    struct answer a;

    if (strcmp(mode, "net-names") == 0) {
        try_names(conn, args);
        return;
    }
    a = ask_for(conn, args->all[1]);
    if (strcmp(mode, "net-many") == 0)
        open_many(conn, &a, strtoul(args->all[2], NULL, 10));
    else if (strcmp(mode, "net-break-off") == 0)
        break_off(conn, &a);
    else if (strncmp(mode, "net-query-", 10) == 0)
        breach_in_questions(conn, mode, args->all[2]);
    else if (strcmp(mode, "net-takes-all") == 0)
        take_all(conn, &a, args->all[1]);
    else if (strcmp(mode, "net-pushes") == 0 || strcmp(mode, "net-deaf") == 0)
        hold_all(conn, &a, strcmp(mode, "net-deaf") == 0);
    else
        breach_in_connections(conn, &a, mode);
}
