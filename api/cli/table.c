/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/table.h"

#include "api/cli/show.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define CELLS_MAX (64u << 20)
#define GAP       2u
#define CUT_MIN   6u /* no column is cut to less */
#define BOLD      "\033[1m"

struct table table_begin(const char *const *header, size_t n_columns)
{
    struct table t = {.n_columns = n_columns, .cells = buf_init(CELLS_MAX)};

    table_add(&t, header);
    return t;
}

/* Cells follow each other, each with its NUL. */
static void add_cell(struct table *t, const char *text)
{
    size_t at = t->cells.len;

    if (t->result == 0)
        t->result = buf_append(&t->cells, text, strlen(text) + 1);
    for (; t->result == 0 && at + 1 < t->cells.len; at++) {
        uint8_t *c = t->cells.data + at;

        if (*c < 0x20 || *c == 0x7f)
            *c = ' ';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 to U+009F */
            c[0] = c[1] = ' ';
    }
}

void table_add(struct table *t, const char *const *row)
{
    for (size_t i = 0; i < t->n_columns; i++)
        add_cell(t, row[i] ? row[i] : "-");
    t->n_rows++;
}

/*
 * How many bytes of a text fill at most max columns; *ret_width gets how many they fill. Bytes
 * that are no text end it.
 */
static size_t fit(const char *text, size_t max, size_t *ret_width)
{
    size_t len = strlen(text), at = 0, width = 0;

    while (at < len) {
        uint32_t code = 0;
        size_t n = utf8_decode(text + at, len - at, &code);
        int columns = n ? wcwidth((wchar_t)code) : -1;

        if (n == 0)
            break;
        if (columns < 0)
            columns = 1;
        if (width + (size_t)columns > max)
            break;
        width += (size_t)columns;
        at += n;
    }
    *ret_width = width;
    return at;
}

static size_t terminal_width(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void measure(const struct table *t, size_t widths[TABLE_COLUMNS_MAX])
{
    const char *cell = (const char *)t->cells.data;

    for (size_t i = 0; i < t->n_rows; i++) {
        for (size_t column = 0; column < t->n_columns; column++) {
            size_t width;

            (void)fit(cell, SIZE_MAX, &width);
            if (width > widths[column])
                widths[column] = width;
            cell += strlen(cell) + 1;
        }
    }
}

/* The widest column that may still be cut, or n_columns. */
static size_t find_widest(const struct table *t, const size_t widths[TABLE_COLUMNS_MAX])
{
    size_t last = t->n_columns - 1, found = t->n_columns;

    if (widths[last] > CUT_MIN)
        return last;
    for (size_t i = 1; i < last; i++) {
        if (widths[i] > CUT_MIN && (found == t->n_columns || widths[i] > widths[found]))
            found = i;
    }
    return found == t->n_columns && widths[0] > CUT_MIN ? 0 : found;
}

static void fit_columns(const struct table *t, size_t width, size_t widths[TABLE_COLUMNS_MAX])
{
    size_t total = GAP * (t->n_columns - 1);

    for (size_t i = 0; i < t->n_columns; i++)
        total += widths[i];
    while (total > width) {
        size_t column = find_widest(t, widths);
        if (column == t->n_columns)
            return;
        widths[column]--;
        total--;
    }
}

/* Prints a cell in its column; what fills the rest of the last one is left out. */
static void print_cell(const char *cell, size_t width, bool is_last, const char *colour)
{
    size_t filled, len = fit(cell, width, &filled);
    const char *end = *colour ? "\033[0m" : "", *mark = "";

    if (cell[len]) {
        len = fit(cell, width - 1, &filled);
        filled++;
        mark = "…";
    }
    printf("%s%.*s%s%s", colour, (int)len, cell, mark, end);
    if (is_last)
        printf("\n");
    else
        printf("%*s", (int)(width - filled + GAP), "");
}

int table_end(struct table *t, size_t width)
{
    const char *cell = (const char *)t->cells.data;
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    bool colours = show_colours(STDOUT_FILENO);
    int result = t->result;

    if (width == 0)
        width = terminal_width();
    if (result == 0)
        measure(t, widths);
    if (width > 0)
        fit_columns(t, width, widths);
    for (size_t i = 0; result == 0 && i < t->n_rows; i++) {
        for (size_t column = 0; column < t->n_columns; column++) {
            const char *colour = !colours ? "" : i == 0 ? BOLD : show_colour_of(cell);

            print_cell(cell, widths[column], column + 1 == t->n_columns, colour);
            cell += strlen(cell) + 1;
        }
    }
    buf_finish(&t->cells);
    return result;
}
