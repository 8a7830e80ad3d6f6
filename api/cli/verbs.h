/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands with subcommands, such as `skillvm skill push`: one table of verbs for each, one
 * reading of their options.
 */
#ifndef SKILLVM_API_CLI_VERBS_H
#define SKILLVM_API_CLI_VERBS_H

#include "api/cli/cli.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
struct skillvm_error;

enum verb_option {
    VERB_FORMAT = 1u << 0, /* -o, --output json|table */
    VERB_FOLLOW = 1u << 1, /* -f, --follow */
    VERB_STRICT = 1u << 2, /* --strict */
    VERB_DIR = 1u << 3,    /* -d, --output-dir DIR */
    VERB_FILTER = 1u << 4, /* --skill NAME, --status WORD, -n, --limit N */
    VERB_OFFLINE = 1u << 5 /* no option: it needs no daemon */
};

struct verb_options {
    bool json;
    bool follow;
    bool strict;
    const char *output_dir;
    const char *skill;
    const char *status;
    const char *limit;
    char **args;
    int n_args;
};

struct verb {
    const char *name;
    const char *help; /* all of it, with its usage line */
    unsigned options; /* of enum verb_option */
    int min_args;
    int max_args;
    int (*run)(const struct cli *cli, const struct verb_options *options);
};

/* Finds the verb in argv[1] and runs it. verbs ends with one without a name. */
int verbs_main(struct cli_globals *globals, const char *command, const struct verb *verbs,
               int argc, char **argv);

/* Says it and gives the exit status for what failed on this side. */
int verbs_failed(const struct err *err);

/*
 * Ends a call of libskillvm: what failed is said; else the JSON that it gave, which is freed,
 * is printed as it came or by print_table. Returns the exit status.
 */
int verbs_print(const struct cli *cli, const struct verb_options *options, int result,
                const struct skillvm_error *error, char *json,
                void (*print_table)(const struct cJSON *json));
/* Prints JSON text to standard output, with a line end. Returns the exit status. */
int verbs_print_json(const char *json);
/* The string member of a JSON object, or NULL. */
const char *verbs_text(const struct cJSON *json, const char *key);

#endif
