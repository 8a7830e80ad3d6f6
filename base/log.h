/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error: `level component key=value …`, one write per line.
 * Libraries never log errors, they return them; main programs log.
 */
#ifndef SKILLVM_BASE_LOG_H
#define SKILLVM_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above this level are dropped. Default: LOG_LEVEL_INFO. Any thread, at any time. */
void log_set_level(enum log_level level);

/*
 * Where standard error is the journal's (as $JOURNAL_STREAM says), lines begin with "<N>", the
 * priority that the journal takes off them. Before there are threads. Returns 1 if it is so.
 */
int log_detect_journal(void);

/*
 * Writes one line. The message is `key=value …` text; control bytes and line ends in it are
 * escaped as \xNN, so a value taken from a guest or a caller cannot forge a second line. Quotes
 * and backslashes of a value in quotes are escaped as \" and \\, so that it ends where it ends.
 */
void log_line(enum log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A token bucket for lines that a guest or caller can cause. Zero-initialise, then set both. */
struct log_limit {
    uint32_t per_second;
    uint32_t burst;
    uint64_t refilled_ns;
    uint32_t tokens;
    uint64_t suppressed;
};

/*
 * True when a line may be written now. *ret_suppressed (may be NULL) gets the number of lines
 * dropped since the last one that was allowed.
 */
int log_limit_allow(struct log_limit *limit, uint64_t now_ns, uint64_t *ret_suppressed);

#define log_error(component, ...) log_line(LOG_LEVEL_ERROR, component, __VA_ARGS__)
#define log_warn(component, ...)  log_line(LOG_LEVEL_WARN, component, __VA_ARGS__)
#define log_info(component, ...)  log_line(LOG_LEVEL_INFO, component, __VA_ARGS__)
#define log_debug(component, ...) log_line(LOG_LEVEL_DEBUG, component, __VA_ARGS__)

#endif
