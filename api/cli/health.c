/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm health`: one question to the daemon, for scripts. */
#include "api/cli/cli.h"
#include "api/cli/client.h"
#include "base/buf.h"

#include <getopt.h>
#include <stdio.h>

#define ANSWER_MAX     (64u * 1024u)
#define ANSWER_WAIT_MS 10000

int cmd_health(struct cli_globals *globals, int argc, char **argv)
{
    static const struct option longs[] = {CLI_GLOBAL_OPTIONS, {0}};
    struct buf body = buf_init(ANSWER_MAX);
    struct cli cli;
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
    if (cli_find_places(&cli, globals->data_dir, globals->socket_path, &err) < 0) {
        cli_say("%s", err.message);
        return CLI_FAILED;
    }
    r = client_get(cli.socket_path, "/ready", ANSWER_WAIT_MS, &body, NULL, &err);
    buf_finish(&body);
    if (r < 0) {
        cli_say("%s", err.message);
        return CLI_NO;
    }
    puts("ready");
    return CLI_OK;
}
