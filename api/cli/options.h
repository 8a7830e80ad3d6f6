/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of commands, each described once in options.c: parsing, help, completion and
 * manual are made of that table, and a command names those that it takes. A new option is a row
 * there, a member here and a bit.
 */
#ifndef SKILLVM_API_CLI_OPTIONS_H
#define SKILLVM_API_CLI_OPTIONS_H

#include "api/cli/cli.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verb;

enum option_kind {
    OPTION_FORMAT = 1u << 0,      /* -o, --output json|table, --json */
    OPTION_FOLLOW = 1u << 1,      /* -f, --follow */
    OPTION_STRICT = 1u << 2,      /* --strict */
    OPTION_DIR = 1u << 3,         /* -d, --output-dir DIR */
    OPTION_FILTER = 1u << 4,      /* --skill, --status, -n, --limit, --cursor */
    OPTION_TENANT = 1u << 6,      /* --tenant TENANT */
    OPTION_NAME = 1u << 7,        /* --name NAME */
    OPTION_ROLE = 1u << 8,        /* --role tenant|operator */
    OPTION_LIMITS = 1u << 9,      /* what a tenant may use */
    OPTION_SWITCH = 1u << 10,     /* --enable, --disable */
    OPTION_RUN = 1u << 11,        /* what is run, with what */
    OPTION_HOST = 1u << 12,       /* --host auto|native|soft */
    OPTION_FOREGROUND = 1u << 13, /* -f, --foreground */
    OPTION_PROGRAM = 1u << 14,    /* before a command: --version */
    OPTION_GLOBAL = 1u << 15,     /* every command takes these: which daemon */
    OPTION_HELP = 1u << 16,       /* and -h, --help */
    OPTION_REPLACE = 1u << 17,    /* --replace */
    OPTION_LANG = 1u << 18,       /* --lang python|bash|shell|node */
    OPTION_DAEMON = 1u << 19,     /* --listen ADDRESS, --config FILE */
    OPTION_NO_NETWORK = 1u << 20, /* --no-network */
    OPTION_SPDX = 1u << 21,       /* --spdx */
    OPTION_DRAIN = 1u << 22,      /* --undo, --timeout 10m */
    OPTION_IMAGE = 1u << 23,      /* --build-image */
    OPTION_OFFLINE = 1u << 31     /* none: the command needs no daemon */
};

/* In place of an offset: the value goes to options.repeat. */
#define OPTION_REPEATS SIZE_MAX

struct option_rule {
    unsigned kind; /* of enum option_kind */
    char letter;   /* 0: none */
    const char *name;
    const char *argument; /* what it takes, words parted by "|" or a name; NULL: it is a flag */
    size_t offset; /* of its member in struct options or cli_globals: a bool, or a text */
    const char *help;
};

extern const struct option_rule option_rules[];
extern const size_t option_n_rules;

/* Texts are borrowed from the command line, NULL where absent. */
struct options {
    bool json;
    bool follow;
    bool strict;
    bool spdx;
    bool replace;
    bool enable;
    bool disable;
    bool fresh;
    bool no_network;
    bool build_image;
    bool foreground;
    bool version;
    bool undo;
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
    const char *images;
    const char *network_policy;
    const char *input;
    const char *timeout;
    const char *script;
    const char *module;
    const char *image;
    const char *code;
    const char *lang;
    const char *host;
    const char *session;
    const char *listen;
    const char *config;
    /* Takes a value of an option that repeats. -1: go on; else the exit status. */
    int (*repeat)(void *ctx, const char *name, const char *value);
    void *ctx;
    char **args; /* what is left, NULL-terminated */
    int n_args;
};

/*
 * Takes the options of verb (argv[0] is skipped), which is the command of this name or one of
 * its verbs, and the global ones. -1: go on; else the exit status.
 */
int options_parse(struct cli_globals *globals, const char *command, const struct verb *verb,
                  int argc, char **argv, struct options *o);

#endif
