/* SPDX-License-Identifier: Apache-2.0 */
/* What daemons wrote to one log while they came and went. */
#ifndef SKILLVM_TESTS_DAEMON_CHAOS_LOG_H
#define SKILLVM_TESTS_DAEMON_CHAOS_LOG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The ids of what any daemon ran, sorted, each as often as one had it: it says so when one has
 * ended, or when it comes back and finds it. Static.
 */
char (*chaos_log_runs(const char *path, size_t *ret_n))[38];
/* Whether they have one. */
bool chaos_log_has_run(const char (*runs)[38], size_t n, const char *id);
/* Whether any daemon said something. */
bool chaos_log_says(const char *path, const char *text);

#endif
