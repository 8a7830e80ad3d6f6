/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people: columns as wide as they must be, and together no wider than the terminal.
 * On anything but a terminal nothing is cut and nothing coloured. What is shown holds no
 * control character of a cell's.
 */
#ifndef SKILLVM_API_CLI_TABLE_H
#define SKILLVM_API_CLI_TABLE_H

#include "base/buf.h"

#include <stddef.h>

#define TABLE_COLUMNS_MAX 8u

struct table {
    size_t n_columns;
    size_t n_rows; /* with the header */
    int result;    /* the first failure */
    struct buf cells;
};

/*
 * Begins a table with its header. Where it is too wide the last column is cut, then the widest
 * of the others, and the first one only where all that is not enough.
 */
struct table table_begin(const char *const *header, size_t n_columns);
/* Adds a row of n_columns texts; NULL shows as "-". */
void table_add(struct table *t, const char *const *row);
/* Prints it to standard output, at most width columns wide (0: the terminal's), and ends it. 0
 * or -ENOMEM. */
int table_end(struct table *t, size_t width);

#endif
