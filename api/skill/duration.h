/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts as people write them in front matter, requests and on the command line.
 */
#ifndef SKILLVM_API_SKILL_DURATION_H
#define SKILLVM_API_SKILL_DURATION_H

#include <stdint.h>

/*
 * A Go duration ("30s", "1m30s", "1.5h", "250ms", "0"), or a bare number of seconds, to
 * milliseconds, rounded up. 0, or -EINVAL for anything else: negative, no or unknown unit, more
 * than 1000 hours. *ret_ms is untouched on failure.
 */
int duration_parse(const char *text, uint64_t *ret_ms);

/*
 * Bytes: "256Mi", "256MiB", "256m", "256MB", "1g", "1.5Gi", "268435456". Suffixes with i, and
 * single letters in either case, are powers of 1024; KB, MB and GB are powers of 1000. 0, or
 * -EINVAL (also for more than 1 PiB). *ret_bytes is untouched on failure.
 */
int size_parse(const char *text, uint64_t *ret_bytes);

/* CPUs: "1", "0.5", "500m" to thousandths. 0, or -EINVAL (also for 0 or more than 1024 CPUs).
 */
int cpu_parse(const char *text, uint32_t *ret_millis);

#endif
