/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes manuals, completion, sample settings and docs/config.md: copies standard input, and
 * puts what the tables of commands, options and settings say in place of lines that are a name
 * between "@", and between two lines that are a name in a comment of Markdown.
 *   skillvm_pages [KEY=VALUE…]    values of settings that the sample has instead of the default
 */
#include "api/pages/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS "<!-- made of the table of settings -->\n"

static struct config sample;

static void put_sample(void)
{
    pages_sample(&sample);
}

static const struct {
    const char *line;
    void (*put)(void);
} parts[] = {
    {"@GLOBALS@\n", pages_globals},   {"@COMMANDS@\n", pages_commands},
    {"@TABLE@\n", pages_completion},  {"@OPTIONS@\n", pages_options},
    {"@SETTINGS@\n", pages_settings}, {"@SAMPLE@\n", put_sample},
};

/* The rows between two lines, in place of those that are there. */
static void put_rows(void)
{
    char line[4096];

    fputs(ROWS, stdout);
    pages_rows();
    while (fgets(line, sizeof(line), stdin) && strcmp(line, ROWS) != 0)
        continue;
    fputs(ROWS, stdout);
}

static void put_line(const char *line)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(parts[i].line, line) == 0) {
            parts[i].put();
            return;
        }
    }
    if (strcmp(line, ROWS) == 0)
        put_rows();
    else
        fputs(line, stdout);
}

/* "key=value" of the sample. */
static int take(char *argument, struct err *err)
{
    char *value = strchr(argument, '=');

    if (!value)
        return -1;
    *value = '\0';
    return config_set(&sample, argument, value + 1, "skillvm_pages", err);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    char line[4096];

    if (config_defaults(&sample, &err) < 0)
        return EXIT_FAILURE;
    for (int i = 1; i < argc; i++) {
        if (take(argv[i], &err) < 0) {
            fprintf(stderr, "skillvm_pages: %s: %s\n", argv[i], err.message);
            return EXIT_FAILURE;
        }
    }
    while (fgets(line, sizeof(line), stdin))
        put_line(line);
    config_finish(&sample);
    return fflush(stdout) == 0 && !ferror(stdout) && !ferror(stdin) ? EXIT_SUCCESS
                                                                    : EXIT_FAILURE;
}
