/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's HTTP server in this process, on a unix socket and on TCP (a descriptor that
 * listens already), with routes that show what of a request arrived and deadlines of the
 * test's.
 */
#ifndef SKILLVM_TESTS_UNIT_HTTP_FIXTURE_H
#define SKILLVM_TESTS_UNIT_HTTP_FIXTURE_H

#include "api/daemon/http/http.h"

#include <stdatomic.h>
#include <stdint.h>

#define HTTP_FIXTURE_LARGE (8u << 20)

struct http_fixture {
    char dir[64];
    char socket[96];
    int tmp_fd;
    uint16_t port;
    int listen_fd; /* the socket of that port, which the server has too */
    struct http_server *server;
    atomic_uint streams;  /* that are open */
    atomic_ulong given;   /* bytes that all streams gave */
    atomic_uint blocked;  /* handlers of /block at work */
    atomic_bool released; /* they may end */
};

/*
 * GET /hello          {"hello":true}
 * GET /files/A/B      A and B, which may have slashes
 * POST /json          the length of a body of at most 1 MiB, or of the parts "a" and "b"
 * POST /file          the same of at most 64 MiB of any type, or of the part "file"
 * GET /stream         events without an end; ten with "?short"
 * GET /large          HTTP_FIXTURE_LARGE bytes of spaces
 * GET /public         the same for everybody
 * GET /block          answers when released is set
 * Bearer keys are the names of tenants; who has none is the operator.
 */
void http_fixture_start(struct http_fixture *f, const struct http_deadlines *deadlines,
                        unsigned max_connections);
void http_fixture_stop(struct http_fixture *f);
/* A connection, or -1. */
int http_fixture_connect(const struct http_fixture *f, bool tcp);

#endif
