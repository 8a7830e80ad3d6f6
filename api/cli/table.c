/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/table.h"

#include "api/skill/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define CELLS_MAX (64u << 20)
#define GAP       2u
#define CUT_MIN   8u /* the last column is never narrower */

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
        if (t->cells.data[at] < 0x20 || t->cells.data[at] == 0x7f)
            t->cells.data[at] = ' ';
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
        size_t n = names_utf8_decode(text + at, len - at, &code);
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

static void print_last(const char *cell, size_t room)
{
    size_t width;
    size_t len = fit(cell, room, &width);

    if (!cell[len]) {
        printf("%s\n", cell);
        return;
    }
    len = fit(cell, room - 1, &width);
    printf("%.*s…\n", (int)len, cell);
}

int table_end(struct table *t, size_t width)
{
    const char *cell = (const char *)t->cells.data;
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    size_t before = 0, room = SIZE_MAX;
    int result = t->result;

    if (width == 0)
        width = terminal_width();
    if (result == 0)
        measure(t, widths);
    for (size_t i = 0; i + 1 < t->n_columns; i++)
        before += widths[i] + GAP;
    if (width > 0)
        room = width > before + CUT_MIN ? width - before : CUT_MIN;
    for (size_t i = 0; result == 0 && i < t->n_rows; i++) {
        for (size_t column = 0; column + 1 < t->n_columns; column++) {
            size_t filled;
            size_t len = fit(cell, SIZE_MAX, &filled);

            printf("%.*s%*s", (int)len, cell, (int)(widths[column] - filled + GAP), "");
            cell += strlen(cell) + 1;
        }
        print_last(cell, room);
        cell += strlen(cell) + 1;
    }
    buf_finish(&t->cells);
    return result;
}
