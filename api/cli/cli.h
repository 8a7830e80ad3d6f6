/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of skillvm share: where things are, how they end, and the commands
 * themselves. Commands print for people on standard error; standard output belongs to the
 * skill, to --json and to what was asked for.
 */
#ifndef SKILLVM_API_CLI_CLI_H
#define SKILLVM_API_CLI_CLI_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>

struct skillvm;

enum cli_exit {
    CLI_OK = 0,
    CLI_NO = 1,        /* the answer is no: not up, KVM not usable */
    CLI_USAGE = 2,     /* wrong command line */
    CLI_TIMEOUT = 124, /* the skill ran out of time */
    CLI_FAILED = 125,  /* skillvm itself failed */
};

struct cli {
    char data_dir[PATH_MAX];
    char socket_path[108]; /* what sockaddr_un can hold */
    char share_dir[PATH_MAX];
    char bin_dir[PATH_MAX]; /* where this executable and its siblings are */
    struct skillvm *client; /* of the commands with verbs; borrowed; NULL: not asked for */
};

/*
 * Fills in the places: the two arguments where they are not NULL, else the environment, else
 * the defaults (docs: --data, --socket). Makes the data directory (0700). 0, or -errno with
 * err.
 */
int cli_find_places(struct cli *cli, const char *data_dir, const char *socket_path,
                    struct err *err);

/* Fills in bin_dir and share_dir alone, and makes nothing. 0, or -errno with err. */
int cli_find_programs(struct cli *cli, struct err *err);

/* The path of a sibling program, "<bin_dir>/<name>", in out (PATH_MAX bytes). Returns out. */
const char *cli_sibling(const struct cli *cli, const char *name, char *out);

/* "skillvm: <message>" and a line end on standard error. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From here on SIGINT and SIGTERM set what cli_interrupted() returns, so that what was started
 * is stopped again; a second one ends the process. SIGPIPE is ignored.
 */
void cli_catch_interrupts(void);
/* The signal that came, or 0. */
int cli_interrupted(void);

/* Options that every command takes. getopt_long values from 1000 on. */
#define CLI_OPTION_SOCKET 1000
#define CLI_OPTION_DATA   1001
#define CLI_OPTION_HELP   'h'
#define CLI_GLOBAL_OPTIONS                                                                     \
    {"socket", required_argument, NULL, CLI_OPTION_SOCKET},                                    \
        {"data", required_argument, NULL, CLI_OPTION_DATA},                                    \
    {                                                                                          \
        "help", no_argument, NULL, CLI_OPTION_HELP                                             \
    }

struct cli_globals {
    const char *data_dir;
    const char *socket_path;
};

/*
 * What getopt_long gave and no case of the command's own took: a global option is kept, help is
 * printed, anything else is a usage error. -1: go on; else the exit status.
 */
int cli_take_global(int option, struct cli_globals *globals, const char *command);
/* After the options of a command without arguments. -1: go on; else the exit status. */
int cli_refuse_arguments(int argc, char **argv, const char *command);

/* Commands: argv[0] is the command's name. They return the exit status. */
int cmd_run(struct cli_globals *globals, int argc, char **argv);
int cmd_up(struct cli_globals *globals, int argc, char **argv);
int cmd_down(struct cli_globals *globals, int argc, char **argv);
int cmd_status(struct cli_globals *globals, int argc, char **argv);
int cmd_doctor(struct cli_globals *globals, int argc, char **argv);
int cmd_health(struct cli_globals *globals, int argc, char **argv);
int cmd_skill(struct cli_globals *globals, int argc, char **argv);
int cmd_exec(struct cli_globals *globals, int argc, char **argv);

/* Prints a command's help ("" for the program's) to standard output. Returns CLI_OK. */
int help_print(const char *command);
/* Says what was wrong with the command line and where help is. Returns CLI_USAGE. */
int help_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
