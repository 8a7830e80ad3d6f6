/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of commands, each described once in options.c with its help: a command names
 * those that it takes. A new option is a row there, a member here and a bit.
 */
#ifndef SKILLVM_API_CLI_OPTIONS_H
#define SKILLVM_API_CLI_OPTIONS_H

#include "api/cli/cli.h"

#include <stdbool.h>

enum option_kind {
    OPTION_FORMAT = 1u << 0,  /* -o, --output json|table */
    OPTION_FOLLOW = 1u << 1,  /* -f, --follow */
    OPTION_STRICT = 1u << 2,  /* --strict */
    OPTION_DIR = 1u << 3,     /* -d, --output-dir DIR */
    OPTION_FILTER = 1u << 4,  /* --skill, --status, -n, --limit, --cursor */
    OPTION_JSON = 1u << 5,    /* --json, as -o json */
    OPTION_TENANT = 1u << 6,  /* --tenant TENANT */
    OPTION_NAME = 1u << 7,    /* --name NAME */
    OPTION_ROLE = 1u << 8,    /* --role tenant|operator */
    OPTION_LIMITS = 1u << 9,  /* what a tenant may use */
    OPTION_SWITCH = 1u << 10, /* --enable, --disable */
    OPTION_OFFLINE = 1u << 31 /* none: the verb needs no daemon */
};

/* Texts are borrowed from the command line, NULL where absent. */
struct options {
    bool json;
    bool follow;
    bool strict;
    bool enable;
    bool disable;
    const char *output;
    const char *output_dir;
    const char *skill;
    const char *status;
    const char *limit;
    const char *cursor;
    const char *tenant;
    const char *name;
    const char *role;
    const char *weight;
    const char *max_running;
    const char *max_queued;
    const char *rate;
    const char *cpu_per_day;
    const char *storage;
    const char *max_timeout;
    const char *max_memory;
    const char *reuse;
    char **args; /* what is left, NULL-terminated */
    int n_args;
};

/*
 * Takes the options of a command (argv[0] is its name) that are in kinds, and the global ones.
 * shown is the command as it is called, command what `skillvm help` knows it by; help has a
 * line that begins with "example", and --help prints the options before it. -1: go on; else the
 * exit status.
 */
int options_parse(struct cli_globals *globals, const char *command, const char *shown,
                  const char *help, unsigned kinds, int argc, char **argv, struct options *o);

/* The same for a command without arguments, whose help is that of `skillvm help`. */
int options_parse_simple(struct cli_globals *globals, const char *command, unsigned kinds,
                         int argc, char **argv, struct options *o);

#endif
