/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands with subcommands, such as `skillvm skill push`: one table of verbs for each, one
 * reading of their options.
 */
#ifndef SKILLVM_API_CLI_VERBS_H
#define SKILLVM_API_CLI_VERBS_H

#include "api/cli/cli.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

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

/* GET of JSON into body; what failed is said on standard error. 0, or an exit status. */
int verbs_get(const struct cli *cli, const char *path, struct buf *body);
/* Says it and gives the exit status for a call of client.h that failed. */
int verbs_failed(const struct err *err);

/* Appends text with what a path may not hold as %NN; '/' stays where slashes is set. */
int verbs_append_encoded(struct buf *path, const char *text, bool slashes);

#endif
