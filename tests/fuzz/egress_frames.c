/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NET frames of a hostile guest, as the relay takes them: a type, a length and a payload, over
 * and over. There is one host to reach, in this process. What must hold: no frame of the
 * relay's is larger than a frame may be, and no more is counted than limits allow.
 */
#include "api/daemon/egress/egress.h"
#include "guest-init/proto.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONNECTIONS 8u
#define BYTES       4096u

static int listener = -1;
static char declared[64];

static void open_host(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);

    if (listener >= 0)
        return;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0 ||
        listen(listener, 64) < 0 || getsockname(listener, (struct sockaddr *)&here, &size) < 0)
        abort();
    (void)snprintf(declared, sizeof(declared), "a.test:%u", ntohs(here.sin_port));
}

/* What was connected says something and goes. */
static void serve(void)
{
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        (void)!send(fd, "hello", 5, MSG_NOSIGNAL);
        close(fd);
    }
}

static void drain(struct egress *e)
{
    static uint8_t payload[PROTO_CHUNK_MAX];
    uint8_t type;
    size_t len;

    egress_work(e);
    serve();
    egress_work(e);
    while ((len = egress_next(e, &type, payload)) > 0) {
        if (len > 2 + PROTO_NET_DATA_MAX || type < PROTO_NET_ANSWER ||
            type > PROTO_NET_HOST_END)
            abort();
    }
}

static void check(const struct egress *e)
{
    const struct egress_records *log = egress_log(e);
    uint64_t reached = 0, bytes = 0;

    if (log->n > EGRESS_RECORDS_MAX || log->n_refused > EGRESS_REFUSALS_MAX)
        abort();
    for (size_t i = 0; i < log->n; i++) {
        const struct egress_record *row = &log->rows[i];

        reached += row->refusal == EGRESS_REACHED ? row->connections : 0;
        bytes += row->bytes_sent + row->bytes_received;
        if (row->refusal == EGRESS_REACHED && strcmp(row->host, "a.test") != 0)
            abort();
    }
    if (reached > CONNECTIONS || bytes > BYTES)
        abort();
}

/* The port of the one host stands for 0xffff, which an input cannot know. */
static void put_port(uint8_t *payload, size_t len)
{
    unsigned port = (unsigned)atoi(strchr(declared, ':') + 1);

    if (len == 6 && payload[4] == 0xff && payload[5] == 0xff) {
        payload[4] = (uint8_t)port;
        payload[5] = (uint8_t)(port >> 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct egress_settings settings = {.fixed_names = "a.test=127.0.0.1",
                                                    .servers = "127.0.0.1:1",
                                                    .connections_max = CONNECTIONS,
                                                    .bytes_max = BYTES};
    const struct egress_rules rules = {.declared = declared};
    struct egress *e;
    int r = 0;

    open_host();
    e = egress_open(&settings, &rules, NULL);
    while (e && r == 0 && size >= 2) {
        struct err err = {0};
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        uint8_t *copy = malloc(len + 1);

        if (!copy)
            break;
        memcpy(copy, data + 2, len);
        if (data[0] == PROTO_NET_OPEN)
            put_port(copy, len);
        r = egress_take(e, data[0], copy, len, &err);
        if (r < 0 && err.code == 0)
            abort();
        free(copy);
        drain(e);
        data += 2 + len;
        size -= 2 + len;
    }
    if (e)
        check(e);
    egress_close(e);
    return 0;
}
