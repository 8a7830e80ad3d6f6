/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm, the command line. It speaks HTTP to a daemon and starts and stops one; it never runs
 * a machine or opens a skill's content by itself.
 */
#include "api/cli/cli.h"
#include "api/cli/verbs.h"
#include "api/host/host.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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

/* For this program's own use; no help tells of them. */
static const struct verb own[] = {
    {.name = "relay", .start = cmd_relay},
    {.name = "host-soft", .start = cmd_host_soft},
    {.name = NULL},
};

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
    const struct verb *command;
    char version[] = "version", hint[NEAREST_HINT_SIZE];
    char *alone[] = {version, NULL};
    int status;

    /* Where whoever started it ignored this, the end of a child would tell nothing. */
    (void)signal(SIGCHLD, SIG_DFL);
    /* File names are UTF-8 in archives; the user's locale decides nothing else. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    status = options_parse(&globals, "", &before, argc, argv, &options);
    if (status >= 0)
        return finish(status);
    globals.output = options.output;
    argc = options.version ? 1 : options.n_args;
    argv = options.version ? alone : options.args;
    if (argc == 0)
        return help_usage_error("", "name a command");
    command = verbs_find(commands, argv[0]);
    command = command ? command : verbs_find(own, argv[0]);
    if (command)
        return finish(verbs_main(&globals, command, argc, argv));
    return help_usage_error("", "there is no command \"%s\"%s", argv[0],
                            verbs_hint(commands, argv[0], hint));
}
