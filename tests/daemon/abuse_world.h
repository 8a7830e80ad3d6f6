/* SPDX-License-Identifier: Apache-2.0 */
/* What clients do to the HTTP server of http_fixture.h. */
#ifndef SKILLVM_TESTS_DAEMON_ABUSE_WORLD_H
#define SKILLVM_TESTS_DAEMON_ABUSE_WORLD_H

#include "tests/daemon/daemon_harness.h"
#include "tests/unit/http_fixture.h"

#include <stdbool.h>

/* The server's own deadlines. */
extern const struct http_deadlines patient;
extern const char hello[];
/* With the wish that the connection ends. */
extern const char hello_once[];

/* Sends what goes at once. */
void say(int fd, const char *text);
/* A connection on which that was said. */
int connect_and_say(const struct http_fixture *f, bool tcp, const char *text);
/* That a newcomer is served. */
void expect_hello(const struct http_fixture *f, bool tcp);
/* Until something of an answer is there; so many milliseconds at most. */
void wait_answered(int fd, int ms);
/* Whether the server has ended it. */
bool has_ended(int fd);

#endif
