/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm, the command line. It speaks HTTP to a daemon and starts and stops one; it never runs
 * a machine or opens a skill's content by itself.
 */
#include "api/cli/cli.h"
#include "api/host/host.h"
#include "api/mcp/command.h"

#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static int cmd_version(struct cli_globals *globals, int argc, char **argv)
{
    (void)globals;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return help_print("version");
    if (argc > 1)
        return help_usage_error("version", "\"%s\" is one argument too many", argv[1]);
    puts("skillvm " SKILLVM_VERSION);
    return CLI_OK;
}

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
} commands[] = {
    {"run", cmd_run},
    {"up", cmd_up},
    {"down", cmd_down},
    {"status", cmd_status},
    {"doctor", cmd_doctor},
    {"version", cmd_version},
    {"skill", cmd_skill},
    {"exec", cmd_exec},
    {"health", cmd_health},
    {"mcp", cmd_mcp},
    {"help", cmd_help},
    {"relay", cmd_relay},
    {"host-soft", cmd_host_soft},
};

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"version", no_argument, NULL, 'V'},
        CLI_GLOBAL_OPTIONS,
        {0},
    };
    struct cli_globals globals = {0};
    char *none[] = {NULL, NULL};
    int c;

    /* File names are UTF-8 in archives; the user's locale decides nothing else. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    while ((c = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
        switch (c) {
        case CLI_OPTION_SOCKET:
            globals.socket_path = optarg;
            break;
        case CLI_OPTION_DATA:
            globals.data_dir = optarg;
            break;
        case 'V':
            return cmd_version(&globals, 1, none);
        case 'h':
            return help_print("");
        default:
            return help_usage_error("", NULL);
        }
    }
    if (optind == argc)
        return help_usage_error("", "name a command");
    argc -= optind;
    argv += optind;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, argv[0]) == 0)
            return commands[i].run(&globals, argc, argv);
    }
    return help_usage_error("", "there is no command \"%s\"", argv[0]);
}
