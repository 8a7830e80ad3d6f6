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

struct options;
struct skillvm;
struct verb;

enum cli_exit {
    CLI_OK = 0,
    CLI_NO = 1,        /* the answer is no: not up, KVM not usable */
    CLI_USAGE = 2,     /* wrong command line */
    CLI_TIMEOUT = 124, /* the skill ran out of time */
    CLI_FAILED = 125,  /* skillvm itself failed */
};

#define CLI_SERVER_MAX 2048u
#define CLI_KEY_MAX    1024u

struct cli {
    char data_dir[PATH_MAX];
    char socket_path[108]; /* what sockaddr_un can hold */
    char share_dir[PATH_MAX];
    char images_dir[PATH_MAX];   /* of images that were made here; it need not be there */
    char bin_dir[PATH_MAX];      /* where this executable and its siblings are */
    char server[CLI_SERVER_MAX]; /* a URL; "" where the daemon is behind the socket */
    char key[CLI_KEY_MAX];       /* "" where there is none */
    const char *server_from;     /* what named the server, "--server" or a variable */
    const char *key_from;        /* what gave the key; NULL: nothing did */
    const char *tenant;          /* to work for; borrowed; NULL: the caller's own */
    struct skillvm *client;      /* of that daemon; NULL: not asked for */
};

/*
 * Fills in the places: the two arguments where they are not NULL, else the environment, else
 * the defaults (docs: --data, --socket); with data_dir alone the socket is the one in it. Makes
 * the data directory (0700). 0, or -errno with err.
 */
int cli_find_places(struct cli *cli, const char *data_dir, const char *socket_path,
                    struct err *err);

struct cli_globals;

/*
 * Finds the daemon that a command speaks with (docs: which daemon): a server's URL, and then
 * nothing of this machine, or the places of one on this machine; and the key. 0, or -errno with
 * err.
 */
int cli_find_daemon(struct cli *cli, const struct cli_globals *globals, struct err *err);
/*
 * For what concerns this machine alone. A --server is refused: an exit status. One of the
 * environment is left alone, and that is said: -1, go on. what is what the command does.
 */
int cli_refuse_server(const struct cli_globals *globals, const char *command, const char *what);

/* Fills in bin_dir, share_dir and images_dir alone, and makes nothing. 0, or -errno with err.
 */
int cli_find_images(struct cli *cli, const char *data_dir, struct err *err);

/* A variable of the environment; NULL where it is not there or empty. */
const char *cli_variable(const char *name);
/* "<dir>/<name>" in out (PATH_MAX bytes), "" where that is too long. Returns out. */
const char *cli_join(const char *dir, const char *name, char *out);
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

/* What the options say that every command takes: see options.h. */
struct cli_globals {
    const char *data_dir;
    const char *socket_path;
    const char *server;
    const char *key;    /* itself, or "@" and the name of a file */
    const char *tenant; /* whom the operator works for; NULL: its own */
    const char *output; /* "json" or "table", for commands that take -o; NULL: not given */
};

/* Commands without verbs, as of struct verb. */
int cmd_run(struct cli_globals *globals, int argc, char **argv);
int cmd_up(const struct cli *cli, const struct options *options);
int cmd_down(const struct cli *cli, const struct options *options);
int cmd_status(const struct cli *cli, const struct options *options);
int cmd_doctor(const struct cli *cli, const struct options *options);
int cmd_health(const struct cli *cli, const struct options *options);
int cmd_help(const struct cli *cli, const struct options *options);
int cmd_mcp(const struct cli *cli, const struct options *options);
int cmd_version(const struct cli *cli, const struct options *options);

/* Prints a command's help ("" for the program's), or that of one of its verbs, to standard
   output. Returns CLI_OK. */
int help_print(const char *command);
int help_print_verb(const char *command, const struct verb *verb);
/* Says what was wrong with the command line and where help is. Returns CLI_USAGE. */
int help_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
