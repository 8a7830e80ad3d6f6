/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm, the command line. It speaks HTTP to a daemon and starts and stops one; it never runs
 * a machine or opens a skill's content by itself.
 */
#include "api/cli/cli.h"
#include "api/cli/verbs.h"
#include "api/host/host.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static int cmd_help(struct cli_globals *globals, int argc, char **argv)
{
    (void)globals;
    if (argc > 2)
        return help_usage_error("help", "\"%s\" is one argument too many", argv[2]);
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return help_print("help");
    return help_print(argc == 2 ? argv[1] : "");
}

static int cmd_host_soft(struct cli_globals *globals, int argc, char **argv)
{
    (void)globals;
    return host_soft_main(argc, argv);
}

static int cmd_relay(struct cli_globals *globals, int argc, char **argv)
{
    (void)globals;
    return host_relay_main(argc, argv);
}

static const struct {
    const char *name;
    int (*run)(struct cli_globals *globals, int argc, char **argv);
} programs[] = {
    {"run", cmd_run},       {"up", cmd_up},
    {"down", cmd_down},     {"status", cmd_status},
    {"doctor", cmd_doctor}, {"version", cmd_version},
    {"skill", cmd_skill},   {"exec", cmd_exec},
    {"tenant", cmd_tenant}, {"tools", cmd_tools},
    {"key", cmd_key},       {"health", cmd_health},
    {"mcp", cmd_mcp},       {"help", cmd_help},
    {"relay", cmd_relay},   {"host-soft", cmd_host_soft},
};

#define N_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

/* The exit status, once what was printed is really out. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_say("cannot write to standard output");
    return status == CLI_OK ? CLI_FAILED : status;
}

int main(int argc, char **argv)
{
    static const struct verb before = {.name = "", .options = OPTION_FORMAT | OPTION_PROGRAM};
    struct cli_globals globals = {0};
    struct options options = {0};
    char version[] = "version";
    char program[] = "skillvm";
    char *none[] = {version, NULL};
    int status;
    size_t i;

    /* File names are UTF-8 in archives; the user's locale decides nothing else. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    status = options_parse(&globals, "", &before, argc, argv, &options);
    if (status < 0 && options.version)
        status = cmd_version(&globals, 1, none);
    if (status >= 0)
        return finish(status);
    globals.output = options.output;
    argc = options.n_args;
    argv = options.args;
    if (argc == 0)
        return help_usage_error("", "name a command");
    for (i = 0; i < N_PROGRAMS; i++) {
        if (strcmp(programs[i].name, argv[0]) == 0)
            break;
    }
    if (i < N_PROGRAMS) {
        argv[0] = program; /* what getopt says of an option begins with it */
        return finish(programs[i].run(&globals, argc, argv));
    }
    return help_usage_error("", "there is no command \"%s\"", argv[0]);
}
