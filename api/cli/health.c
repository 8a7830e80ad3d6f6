/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm health`: one question to the daemon, for scripts. */
#include "api/cli/cli.h"
#include "api/cli/remote.h"

#include <getopt.h>
#include <stdio.h>

int cmd_health(struct cli_globals *globals, int argc, char **argv)
{
    static const struct option longs[] = {CLI_GLOBAL_OPTIONS, {0}};
    struct skillvm_error error;
    struct skillvm *client;
    struct cli cli = {0};
    struct err err = {0};
    int c, r, status;

    optind = 0;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        status = cli_take_global(c, globals, "health");
        if (status >= 0)
            return status;
    }
    status = cli_refuse_arguments(argc, argv, "health");
    if (status >= 0)
        return status;
    if (cli_find_places(&cli, globals->data_dir, globals->socket_path, &err) < 0 ||
        remote_open(&cli, &client, &err) < 0) {
        cli_say("%s", err.message);
        return CLI_FAILED;
    }
    r = skillvm_ready(client, &error);
    skillvm_close(client);
    if (r < 0) {
        (void)remote_failed(&cli, &error);
        return CLI_NO;
    }
    puts("ready");
    return CLI_OK;
}
