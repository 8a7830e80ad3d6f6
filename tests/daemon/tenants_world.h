/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with two tenants that have a skill each, and what tests of limits ask of it. Only
 * for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_DAEMON_TENANTS_WORLD_H
#define SKILLVM_TESTS_DAEMON_TENANTS_WORLD_H

#include "tests/daemon/daemon_harness.h"

#define SLEEP(ms) "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"sleep\",\"FAKE_DATA\":\"" ms "\"}}"
#define ASYNC(how, data)                                                                       \
    "{\"skill\":\"demo\",\"async\":true,\"timeout\":600,\"env\":{\"FAKE\":\"" how              \
    "\",\"FAKE_DATA\":\"" data "\"}}"
#define ID_SIZE 38

struct tenant {
    char id[40];
    char headers[256]; /* with its key */
};

struct world {
    struct harness h;
    struct tenant a, b;
};

/* Starts it with these options; 200 may wait. Both tenants have no limits. */
void begin(struct world *w, const char *max_running, const char *stop_timeout);
/* Stops it, which must go well, and removes everything. */
void end(struct world *w);

/* Requests of the operator and of a tenant; the answer is the caller's to finish. */
struct answer admin(const struct harness *h, const char *method, const char *path,
                    const char *json);
struct answer as(const struct world *w, const struct tenant *t, const char *method,
                 const char *path, const char *json);
struct answer run_as(const struct world *w, const struct tenant *t, const char *json);
struct answer show(const struct world *w, const struct tenant *t, const char *id);
struct answer cancel(const struct world *w, const struct tenant *t, const char *id);

/* Changes limits: members of a JSON object. */
void set_limits(const struct world *w, const struct tenant *t, const char *limits);
/* Begins an execution whose JSON says "async". */
void submit(const struct world *w, const struct tenant *t, const char *json,
            char ret_id[ID_SIZE]);
/* Waits as long as a slow machine may take. */
void wait_status(const struct world *w, const struct tenant *t, const char *id,
                 const char *status);
/* A value of /metrics, whose text is checked; 0 for a series that is not there. */
double metric(const struct world *w, const char *series);
/* The sum of two series as of one moment. */
double metric_sum(const struct world *w, const char *one, const char *other);
/* The same until it is so. */
void wait_metric(const struct world *w, const char *series, double value);
/* The same of a tenant; label is "" or ,name="value". */
double metric_of(const struct world *w, const struct tenant *t, const char *name,
                 const char *label);
/* How many of a tenant's have ended well. */
double ended(const struct world *w, const struct tenant *t);
/* Fails the test unless this was refused, and finishes it. How long it is told to wait. */
unsigned expect_refused(struct answer a, const char *code, const char *part);

#endif
