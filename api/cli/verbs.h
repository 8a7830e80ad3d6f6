/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands with subcommands, such as `skillvm skill push`: one table of verbs for each, one
 * reading of their options, one way to end.
 */
#ifndef SKILLVM_API_CLI_VERBS_H
#define SKILLVM_API_CLI_VERBS_H

#include "api/cli/cli.h"
#include "api/cli/options.h"
#include "base/err.h"

struct cJSON;
struct skillvm_error;

struct verb {
    const char *name;
    const char *help; /* usage, what it does, "example:"; its options are added before that */
    unsigned options; /* of enum option_kind */
    int min_args;
    int max_args;
    /* Speaks with the daemon by cli->client; with OPTION_OFFLINE cli is all zero. Returns the
     * exit status. */
    int (*run)(const struct cli *cli, const struct options *options);
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
int verbs_print(const struct cli *cli, const struct options *options, int result,
                const struct skillvm_error *error, char *json,
                void (*print_table)(const struct cJSON *json));
/* Prints JSON text to standard output, with a line end. Returns the exit status. */
int verbs_print_json(const char *json);
/* Prints a tree as JSON and deletes it. NULL: there was no memory. Returns the exit status. */
int verbs_print_tree(struct cJSON *json);
/* The string member of a JSON object, or NULL. */
const char *verbs_text(const struct cJSON *json, const char *key);
/* The number member of a JSON object, or 0. */
double verbs_number(const struct cJSON *json, const char *key);

#endif
