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
#include "base/nearest.h"

#define VERBS_SKILL_SIZE 512u
#define VERBS_ANY_NUMBER 1000000 /* of arguments: the kernel takes fewer */

struct cJSON;
struct skill_strings;
struct skillvm_error;

/*
 * A command or one of its verbs: help, completion and manual are made of this and of the table
 * in options.c.
 */
struct verb {
    const char *name;
    const char *args;         /* what it takes, as its usage says */
    const char *summary;      /* in a list, no more than half a line; NULL: in none */
    const char *text;         /* a line is a paragraph, and stays as it is if it is indented */
    const char *examples;     /* lines without "skillvm" */
    const struct verb *verbs; /* of a command that has some: ends with one without a name */
    unsigned options;         /* of enum option_kind */
    int n_args;               /* that it must have */
    int n_more;               /* that it may have behind them */
    const char *here; /* what it does on this machine, whose daemon's places cli then has and no
                       * client; NULL: it may as well be a server's daemon */
    /* Speaks with the daemon by cli->client. With OPTION_OFFLINE cli is all zero, but where
     * here is set it says where programs are. Returns the exit status. */
    int (*run)(const struct cli *cli, const struct options *options);
    /* In its place: reads its options by itself, with argv[0] for what getopt says. */
    int (*start)(struct cli_globals *globals, int argc, char **argv);
};

/* All commands, in commands.c; ends with one without a name. */
extern const struct verb commands[];
extern const struct verb cluster_verbs[], exec_verbs[], image_verbs[], key_verbs[],
    session_verbs[], skill_verbs[], tenant_verbs[], tools_verbs[];

/* The one of this name, or NULL. */
const struct verb *verbs_find(const struct verb *verbs, const char *name);

/* Prints the help of a command's verb, or says that it has none of this name. The exit status.
 */
int verbs_help(const struct verb *command, const char *name);

/*
 * The end of a message on a name that none of them has, as of nearest_hint(): a near one, what
 * another program calls so, or where else in the command line there is one of this name.
 */
const char *verbs_hint(const struct verb *verbs, const char *name, char out[NEAREST_HINT_SIZE]);

/* Runs a command with its verb in argv[1], where it has some. Returns the exit status. */
int verbs_main(struct cli_globals *globals, const struct verb *command, int argc, char **argv);

/* Says it and gives the exit status for what failed on this side. */
int verbs_failed(const struct err *err);
/*
 * The same for what the command line itself gives, such as a file that is not there: returns
 * CLI_USAGE, and CLI_FAILED only where memory lacked.
 */
int verbs_refused(const struct err *err);
/* The same for a lack of memory. */
int verbs_no_memory(void);

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
/* Says what the daemon warns of, a line each. */
void verbs_print_warnings(const struct cJSON *json);
/* The member of a JSON object, or NULL; as a string, or NULL. */
const struct cJSON *verbs_member(const struct cJSON *json, const char *key);
const char *verbs_text(const struct cJSON *json, const char *key);
/* "NAME@VERSION" of a JSON object, "(code)" for code without a skill, in out (VERBS_SKILL_SIZE
 * bytes). Returns out. */
const char *verbs_skill(const struct cJSON *json, char *out);
/* Adds a string member where text is not NULL. False without memory. */
bool verbs_add_text(struct cJSON *json, const char *key, const char *text);
/* An array of them, also of none. */
void verbs_add_strings(struct cJSON *json, const char *key,
                       const struct skill_strings *strings);
/* The number member of a JSON object, or 0. */
double verbs_number(const struct cJSON *json, const char *key);

#endif
