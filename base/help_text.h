/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How programs say what they take, on standard output: text in lines that fit a terminal, and
 * pairs of a name and what it does.
 */
#ifndef SKILLVM_BASE_HELP_TEXT_H
#define SKILLVM_BASE_HELP_TEXT_H

#include <stddef.h>

/* Words from column on, further lines behind as many blanks, and a line end. The margin, "" for
   none, takes the place of the last of these blanks. */
void help_text_fill(const char *text, size_t len, size_t column, const char *margin);
/* "  left   help", with help on a line of its own where left is long. */
void help_text_pair(const char *left, const char *help);

#endif
