/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the manuals, the completion, the sample settings and docs/config.md take from the tables
 * that the programs are made of. All of it goes to standard output.
 */
#ifndef SKILLVM_API_PAGES_PAGES_H
#define SKILLVM_API_PAGES_PAGES_H

#include "api/daemon/config/config.h"

#include <stddef.h>

/* Text of a manual: a sentence is a line, and none begins as a request does. */
void pages_roff(const char *text, size_t len);

/* The command line's: its global options and its commands for the manual, its completion. */
void pages_globals(void);
void pages_commands(void);
void pages_completion(void);

/* The daemon's: its options and its settings for the manuals. */
void pages_options(void);
void pages_settings(void);
/* The settings of sample as a file with comments. */
void pages_sample(const struct config *sample);
/* The rows of a table in Markdown. */
void pages_rows(void);

#endif
