/* SPDX-License-Identifier: Apache-2.0 */
/* Executions in sessions, for the tests of them: the guest's stand-in does as it is told. */
#ifndef SKILLVM_TESTS_DAEMON_SESSIONS_WORLD_H
#define SKILLVM_TESTS_DAEMON_SESSIONS_WORLD_H

#include "tests/daemon/daemon_harness.h"

#define expect harness_expect
#define ACME   "X-Tenant-ID: acme\r\n"
#define SMALL  "X-Tenant-ID: small\r\n"

struct answer request(const struct harness *h, const char *more, const char *method,
                      const char *path, const char *json);
/* An execution of a skill that a tenant has, in a session; the second as the operator's. */
struct answer session_run_as(const struct harness *h, const char *more, const char *session,
                             const char *how, const char *data);
struct answer run(const struct harness *h, const char *session, const char *how,
                  const char *data);
/* Members of one object of the answer, and of the same or another. */
void expect_both(struct answer a, const char *one, const char *other);
void expect_status(struct answer a, int status);
void forget(const struct harness *h, const char *session);
struct answer remove_file(const struct harness *h, const char *more, const char *session,
                          const char *path);

#endif
