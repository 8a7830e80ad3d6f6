/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm up` and `skillvm down`. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "base/fd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

struct up_options {
    enum daemon_host host;
    bool foreground;
};

static int already_up(const struct cli *cli, const struct daemon_state *state)
{
    daemon_keep(cli);
    cli_say("already up%s: process %d, socket %s", state->soft ? " (in the software host)" : "",
            (int)state->pid, cli->socket_path);
    return 0;
}

static int up(const struct cli *cli, const struct up_options *options, struct err *err)
{
    struct daemon_state state;
    bool soft;
    int result = daemon_find(cli, &state, err);

    if (result)
        return result;
    if (state.up)
        return already_up(cli, &state);
    _cleanup_fd_ int lock_fd = daemon_lock(cli, true, err);
    if (lock_fd < 0)
        return lock_fd;
    /* Another one may have started it while this one waited. */
    result = daemon_find(cli, &state, err);
    if (result)
        return result;
    if (state.up)
        return already_up(cli, &state);
    result = daemon_choose(cli, options->host, &soft, err);
    if (result)
        return result;
    if (options->foreground) {
        daemon_keep(cli);
        fd_close(&lock_fd);
        return daemon_run_foreground(cli, soft);
    }
    cli_catch_interrupts();
    result = daemon_start(cli, soft, false, err);
    if (result)
        return result;
    daemon_keep(cli);
    result = daemon_find(cli, &state, err);
    if (result)
        return result;
    cli_say("up: process %d, socket %s", (int)state.pid, cli->socket_path);
    return 0;
}

int cmd_up(struct cli_globals *globals, int argc, char **argv)
{
    static const struct option longs[] = {
        {"host", required_argument, NULL, 'H'},
        {"foreground", no_argument, NULL, 'f'},
        CLI_GLOBAL_OPTIONS,
        {0},
    };
    struct up_options options = {0};
    struct cli cli = {0};
    struct err err = {0};
    int c, status;

    optind = 0;
    while ((c = getopt_long(argc, argv, "fh", longs, NULL)) != -1) {
        switch (c) {
        case 'H':
            if (daemon_parse_host(optarg, &options.host))
                return help_usage_error("up", "--host %s: use auto, native or soft", optarg);
            break;
        case 'f':
            options.foreground = true;
            break;
        default:
            status = cli_take_global(c, globals, "up");
            if (status >= 0)
                return status;
        }
    }
    status = cli_refuse_arguments(argc, argv, "up");
    if (status < 0)
        status = cli_refuse_server(globals, "up", "starts a daemon on this machine");
    if (status >= 0)
        return status;

    int result = cli_find_places(&cli, globals->data_dir, globals->socket_path, &err);
    if (!result)
        result = up(&cli, &options, &err);
    if (result < 0) {
        cli_say("%s", err.message);
        return cli_interrupted() ? 128 + cli_interrupted() : CLI_FAILED;
    }
    return result;
}

int cmd_down(struct cli_globals *globals, int argc, char **argv)
{
    static const struct option longs[] = {CLI_GLOBAL_OPTIONS, {0}};
    struct cli cli = {0};
    struct err err = {0};
    int c, status;

    optind = 0;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        status = cli_take_global(c, globals, "down");
        if (status >= 0)
            return status;
    }
    status = cli_refuse_arguments(argc, argv, "down");
    if (status < 0)
        status = cli_refuse_server(globals, "down", "stops the daemon of this machine");
    if (status >= 0)
        return status;

    int result = cli_find_places(&cli, globals->data_dir, globals->socket_path, &err);
    if (!result)
        result = daemon_stop(&cli, &err);
    if (result == -ESRCH) {
        cli_say("not up");
        return CLI_OK;
    }
    if (result) {
        cli_say("%s", err.message);
        return CLI_FAILED;
    }
    cli_say("down");
    return CLI_OK;
}
