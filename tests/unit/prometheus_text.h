/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of the Prometheus text format 0.0.4: stricter than Prometheus, for it also
 * wants the naming conventions kept.
 */
#ifndef SKILLVM_TESTS_UNIT_PROMETHEUS_TEXT_H
#define SKILLVM_TESTS_UNIT_PROMETHEUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Checks a whole answer: every family has HELP and TYPE once and before its samples, stands in
 * one piece, and is named for its type; every series is there once; histograms add up. False
 * with the reason and the line.
 */
bool prometheus_check(const char *text, char *ret_why, size_t size);
/* The value of a series, written as it stands there: name{label="value"}. False without it. */
bool prometheus_value(const char *text, const char *series, double *ret);
/* How many series there are. */
size_t prometheus_count(const char *text);

#endif
