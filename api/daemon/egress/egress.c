/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/egress.h"

#include "api/daemon/egress/reachable.h"
#include "api/daemon/egress/stream.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define EVENTS 32
/* The guest is told of room when it is worth a frame. */
#define ROOM_MIN (PROTO_NET_WINDOW / 4)

_Static_assert(HOST_NAME_SIZE == PROTO_NET_NAME_MAX + 1, "a name fits");
_Static_assert(HOST_PORTS_MAX <= PROTO_NET_PORTS, "its ports do");

enum query_state { QUERY_FREE, QUERY_WAITS, QUERY_DUE };

/* A name that the guest asked for. */
struct query {
    enum query_state state;
    uint8_t answer; /* enum proto_net_answer, where it is due */
    unsigned name;
};

struct egress {
    const struct egress_settings *settings;
    int epoll_fd;
    uint64_t opened; /* connections so far */
    unsigned turn;   /* whose data comes next */
    struct stream_shared shared;
    struct egress_records records;
    struct names names;
    struct query queries[PROTO_NET_QUERIES];
    struct stream streams[PROTO_NET_CONNECTIONS];
};

struct egress *egress_open(const struct egress_settings *settings,
                           const struct egress_rules *rules, struct err *err)
{
    struct egress *e = calloc(1, sizeof(*e));

    if (!e) {
        err_no_memory(err);
        return NULL;
    }
    e->settings = settings;
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++)
        e->streams[i] = stream_init();
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (e->epoll_fd < 0) {
        err_set_errno(err, errno, "cannot watch connections");
        egress_close(e);
        return NULL;
    }
    e->names = names_init(settings, rules, e->epoll_fd);
    e->shared = (struct stream_shared){
        .records = &e->records, .bytes_max = settings->bytes_max, .epoll_fd = e->epoll_fd};
    return e;
}

void egress_close(struct egress *e)
{
    if (!e)
        return;
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++)
        stream_abort(&e->streams[i]);
    names_finish(&e->names);
    fd_close(&e->epoll_fd);
    free(e);
}

int egress_fd(const struct egress *e)
{
    return e->epoll_fd;
}

uint64_t egress_deadline_ns(const struct egress *e)
{
    uint64_t first = names_deadline_ns(&e->names);

    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        uint64_t due_ns = stream_due_ns(&e->streams[i]);

        first = due_ns < first ? due_ns : first;
    }
    return first;
}

const struct egress_records *egress_log(const struct egress *e)
{
    return &e->records;
}

/* Why a connection may not be begun; NULL: it may. */
static const char *over_limit(const struct egress *e, char text[EGRESS_REFUSED_SIZE])
{
    if (e->shared.bytes >= e->shared.bytes_max)
        (void)snprintf(text, EGRESS_REFUSED_SIZE, "more than %llu bytes in one execution",
                       (unsigned long long)e->shared.bytes_max);
    else if (e->opened > e->settings->connections_max)
        (void)snprintf(text, EGRESS_REFUSED_SIZE, "more than %llu connections in one execution",
                       (unsigned long long)e->settings->connections_max);
    else
        return NULL;
    return text;
}

/* Begins the connection that the guest asked for, or refuses it. */
static void begin_stream(struct egress *e, unsigned key, unsigned at, uint16_t port)
{
    struct stream *s = &e->streams[key];
    const struct name *name = &e->names.all[at];
    char text[EGRESS_REFUSED_SIZE];

    e->opened++;
    s->opens_again = false;
    if (over_limit(e, text)) {
        (void)egress_records_add(&e->records, name->text, port, EGRESS_OVER_LIMIT, text);
        stream_refuse(s);
    } else if (name->n_addresses == 0 || name->state == NAME_BAD) {
        (void)egress_records_add(&e->records, name->text, port,
                                 name->state == NAME_BAD ? name->refusal : EGRESS_FAILED,
                                 name->state == NAME_BAD ? name->refused
                                                         : "it was not looked up before");
        stream_refuse(s);
    } else {
        stream_connect(s, &e->shared, name, port, key);
    }
}

/* The queries whose name is known now. */
static void settle_queries(struct egress *e)
{
    for (unsigned i = 0; i < PROTO_NET_QUERIES; i++) {
        struct query *q = &e->queries[i];
        const struct name *name = &e->names.all[q->name];

        if (q->state != QUERY_WAITS || name->state == NAME_LOOKING)
            continue;
        q->state = QUERY_DUE;
        q->answer = PROTO_NET_GOOD;
        if (name->state == NAME_GOOD)
            continue;
        q->answer = name->refusal == EGRESS_FAILED ? PROTO_NET_FAILED : PROTO_NET_NOBODY;
        (void)egress_records_add(&e->records, name->text, 0, name->refusal, name->refused);
    }
}

/* One whose name is looked up waits for that, which ends in time (reachable.h). */
static bool may_begin(const struct egress *e, const struct stream *s)
{
    return s->state == STREAM_FREE && s->opens_again &&
           e->names.all[s->next_name].state != NAME_LOOKING;
}

void egress_work(struct egress *e)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(e->epoll_fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.u32 < PROTO_NET_CONNECTIONS)
            stream_note(&e->streams[events[i].data.u32], events[i].events);
    }
    names_work(&e->names);
    settle_queries(e);
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        struct stream *s = &e->streams[i];

        stream_work(s, &e->shared, i);
        if (may_begin(e, s))
            begin_stream(e, i, s->next_name, s->next_port);
    }
}

void egress_end(struct egress *e, uint64_t deadline_ns)
{
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        e->streams[i].opens_again = false;
        stream_end(&e->streams[i], deadline_ns);
    }
    names_finish(&e->names);
}

bool egress_is_sending(const struct egress *e)
{
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        if (e->streams[i].state == STREAM_DRAINING)
            return true;
    }
    return false;
}

static int breach(struct err *err, const char *what)
{
    return err_set(err, EPROTO, "the guest broke the protocol: %s", what);
}

static int take_ask(struct egress *e, const uint8_t *payload, size_t len, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(payload, len);
    unsigned key = bytes_get_u16(&r);
    size_t n = bytes_left(&r);
    const char *text = (const char *)bytes_take(&r, n);
    enum egress_refusal refusal;
    char name[HOST_NAME_SIZE], refused[EGRESS_REFUSED_SIZE];
    struct query *q;

    if (key >= PROTO_NET_QUERIES || n == 0 || !text || e->queries[key].state != QUERY_FREE)
        return breach(err, "a query that cannot be");
    q = &e->queries[key];
    *q = (struct query){.state = QUERY_DUE, .answer = PROTO_NET_NOBODY};
    /* What is no name is nobody's, and is not worth a row. */
    if (host_name_clean(text, n, name) < 0)
        return 0;
    q->name = names_ask(&e->names, name, &refusal, refused);
    if (q->name < NAMES_NONE) {
        q->state = QUERY_WAITS;
        return 0;
    }
    q->name = 0;
    (void)egress_records_add(&e->records, name, 0, refusal, refused);
    return 0;
}

static int take_open(struct egress *e, unsigned key, struct bytes_reader *r, struct err *err)
{
    unsigned at = bytes_get_u16(r);
    uint16_t port = bytes_get_u16(r);
    struct stream *s = &e->streams[key];

    if (!bytes_done(r) || at >= e->names.n || !names_has_port(&e->names.all[at], port))
        return breach(err, "a connection to what it was not told of");
    if ((s->state != STREAM_FREE && s->state != STREAM_DRAINING) || s->opens_again)
        return breach(err, "a connection under a number that is in use");
    s->opens_again = true;
    s->in_flight = 0;
    s->next_name = at;
    s->next_port = port;
    return 0;
}

/*
 * It may come after the end of its connection, of which the guest did not know yet, but never
 * for more bytes than those that it was sent.
 */
static int take_room(struct stream *s, struct bytes_reader *r, struct err *err)
{
    uint16_t zero = bytes_get_u16(r);
    uint32_t room = bytes_get_u32(r);

    if (!bytes_done(r) || zero != 0 || room == 0 || room > s->in_flight)
        return breach(err, "more room than it was given bytes");
    s->in_flight -= room;
    return 0;
}

static int take_end(struct stream *s, struct bytes_reader *r, struct err *err)
{
    uint16_t broke = bytes_get_u16(r);

    if (!bytes_done(r) || broke > 1 || stream_take_end(s, broke == 1) < 0)
        return breach(err, "an end that cannot be");
    return 0;
}

static int take_data(struct stream *s, struct bytes_reader *r, struct err *err)
{
    size_t n = bytes_left(r);
    const uint8_t *data = bytes_take(r, n);
    int result = n == 0 || n > PROTO_NET_DATA_MAX ? -EPROTO : stream_take(s, data, n);

    if (result == -EPROTO || result == -E2BIG)
        return breach(err, "more bytes than it was given room for");
    return result < 0 ? err_no_memory(err) : 0;
}

int egress_take(struct egress *e, uint8_t type, const uint8_t *payload, size_t len,
                struct err *err)
{
    struct bytes_reader r = bytes_reader_init(payload, len);
    unsigned key = bytes_get_u16(&r);
    struct stream *s;

    if (type == PROTO_NET_ASK)
        return take_ask(e, payload, len, err);
    if (key >= PROTO_NET_CONNECTIONS)
        return breach(err, "a connection that cannot be");
    s = &e->streams[key];
    if (type == PROTO_NET_OPEN)
        return take_open(e, key, &r, err);
    if (type == PROTO_NET_GUEST_ROOM)
        return take_room(s, &r, err);
    if (s->state != STREAM_OPEN || s->opened_due)
        return breach(err, "bytes of a connection that is not open");
    return type == PROTO_NET_GUEST_DATA ? take_data(s, &r, err) : take_end(s, &r, err);
}

static size_t write_answer(struct egress *e, unsigned key, uint8_t *payload)
{
    struct query *q = &e->queries[key];
    const struct name *name = &e->names.all[q->name];
    struct bytes_writer w = bytes_writer_init(payload, PROTO_CHUNK_MAX);

    bytes_put_u16(&w, (uint16_t)key);
    bytes_put_u8(&w, q->answer);
    bytes_put_u8(&w, (uint8_t)q->name);
    for (size_t i = 0; q->answer == PROTO_NET_GOOD && i < name->n_ports; i++)
        bytes_put_u16(&w, name->ports[i]);
    q->state = QUERY_FREE;
    return w.len;
}

/* What is to be said of a connection beside its bytes. */
static size_t write_news(struct stream *s, uint8_t *ret_type, struct bytes_writer *w)
{
    if (s->state == STREAM_REFUSED) {
        *ret_type = PROTO_NET_REFUSED;
        stream_reset(s);
    } else if (s->opened_due) {
        *ret_type = PROTO_NET_OPENED;
        s->opened_due = false;
    } else if (s->state == STREAM_OPEN && s->passed_on >= ROOM_MIN && !s->guest_ended) {
        *ret_type = PROTO_NET_HOST_ROOM;
        bytes_put_u16(w, 0);
        bytes_put_u32(w, s->passed_on);
        s->may_take += s->passed_on;
        s->passed_on = 0;
    } else if (stream_end_is_due(s)) {
        *ret_type = PROTO_NET_HOST_END;
        bytes_put_u16(w, s->broke);
        stream_told_end(s);
    } else {
        return 0;
    }
    return w->len;
}

static size_t write_stream(struct egress *e, unsigned key, uint8_t *ret_type, uint8_t *payload)
{
    struct stream *s = &e->streams[key];
    struct bytes_writer w = bytes_writer_init(payload, PROTO_CHUNK_MAX);
    size_t n;

    bytes_put_u16(&w, (uint16_t)key);
    if (s->state == STREAM_OPEN) {
        n = stream_read(s, &e->shared, payload + w.len, PROTO_NET_DATA_MAX);
        if (n > 0) {
            *ret_type = PROTO_NET_HOST_DATA;
            return w.len + n;
        }
    }
    return write_news(s, ret_type, &w);
}

size_t egress_next(struct egress *e, uint8_t *ret_type, uint8_t *payload)
{
    for (unsigned i = 0; i < PROTO_NET_QUERIES; i++) {
        if (e->queries[i].state == QUERY_DUE) {
            *ret_type = PROTO_NET_ANSWER;
            return write_answer(e, i, payload);
        }
    }
    /* Each in its turn, so that none waits for another's bytes. */
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        unsigned key = e->turn;
        size_t len;

        e->turn = (e->turn + 1) % PROTO_NET_CONNECTIONS;
        len = write_stream(e, key, ret_type, payload);
        if (len > 0)
            return len;
    }
    return 0;
}
