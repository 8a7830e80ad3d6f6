/* SPDX-License-Identifier: Apache-2.0 */
/* Times, amounts and colours as a person reads them. */
#ifndef SKILLVM_API_CLI_SHOW_H
#define SKILLVM_API_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define SHOW_SIZE 32u

/* How long ago an RFC 3339 time in UTC was, "12s", "5m", "3h", "40d"; "-" for NULL or no time.
 * Returns out. */
const char *show_age(const char *time_text, time_t now, char out[SHOW_SIZE]);
/* "512 B", "1.5 MiB". Returns out. */
const char *show_bytes(double bytes, char out[SHOW_SIZE]);
/* "250 ms", "12.3 s", "5 m 20 s", "3 h 5 m". Returns out. */
const char *show_ms(double ms, char out[SHOW_SIZE]);

/*
 * Prints a text of somebody else's without what a terminal would obey: control characters but
 * line ends and tabs, and bytes that are no UTF-8, become "?".
 */
void show_text(FILE *to, const char *text);
/* Prints "LABEL  TEXT" to standard output by show_text(); NULL shows as "-". */
void show_field(const char *label, int width, const char *text);

/* Whether colours go to a descriptor: a terminal, no NO_COLOR, and not TERM=dumb. */
bool show_colours(int fd);
/*
 * The escape sequence that begins the colour of a state ("success", "failed", "ok", …), or ""
 * for a word that has none. "\033[0m" ends it.
 */
const char *show_colour_of(const char *word);

#endif
