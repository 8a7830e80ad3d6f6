/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon whose tools a test pushes and calls. Only for test programs of cmocka. */
#ifndef SKILLVM_TESTS_DAEMON_TOOLS_WORLD_H
#define SKILLVM_TESTS_DAEMON_TOOLS_WORLD_H

#include "tests/daemon/daemon_harness.h"

extern struct harness h;

/* For cmocka. */
int start(void **state);
int stop(void **state);
/* Registers a skill, which must go well. */
void push(const struct harness_file *files);
/* Calls a tool; the answer is the caller's to finish. */
struct answer call(const char *json);

#endif
