/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm up` and `skillvm down`. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/options.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>

static int already_up(const struct cli *cli, const struct daemon_state *state)
{
    daemon_keep(cli);
    cli_say("already up%s: process %d, socket %s", state->soft ? " (in the software host)" : "",
            (int)state->pid, cli->socket_path);
    return 0;
}

static int bring_up(const struct cli *cli, const struct options *options, struct err *err)
{
    struct daemon_state state;
    bool soft;
    int result = daemon_find(cli, &state, err);

    if (result < 0)
        return result;
    if (state.up)
        return already_up(cli, &state);
    _cleanup_fd_ int lock_fd = daemon_lock(cli, true, err);
    if (lock_fd < 0)
        return lock_fd;
    /* Another one may have started it while this one waited. */
    result = daemon_find(cli, &state, err);
    if (result < 0)
        return result;
    if (state.up)
        return already_up(cli, &state);
    result = daemon_choose(cli, daemon_parse_host(options->host), &soft, err);
    if (result < 0)
        return result;
    if (options->foreground) {
        daemon_keep(cli);
        fd_close(&lock_fd);
        return daemon_run_foreground(cli, soft);
    }
    cli_catch_interrupts();
    result = daemon_start(cli, soft, false, err);
    if (result < 0)
        return result;
    daemon_keep(cli);
    result = daemon_find(cli, &state, err);
    if (result < 0)
        return result;
    cli_say("up: process %d, socket %s", (int)state.pid, cli->socket_path);
    return 0;
}

static int up(const struct cli_globals *globals, const struct options *options, struct err *err)
{
    struct cli cli = {0};
    int result = cli_find_places(&cli, globals->data_dir, globals->socket_path, err);

    return result < 0 ? result : bring_up(&cli, options, err);
}

static int down(const struct cli_globals *globals, struct err *err)
{
    struct cli cli = {0};
    int result = cli_find_places(&cli, globals->data_dir, globals->socket_path, err);

    return result < 0 ? result : daemon_stop(&cli, err);
}

int cmd_up(struct cli_globals *globals, int argc, char **argv)
{
    struct options options = {0};
    struct err err = {0};
    int status = options_parse_simple(globals, "up", argc, argv, &options);

    if (status < 0)
        status = cli_refuse_server(globals, "up", "starts a daemon on this machine");
    if (status >= 0)
        return status;

    int result = up(globals, &options, &err);
    if (result < 0) {
        cli_say("%s", err.message);
        return cli_interrupted() ? 128 + cli_interrupted() : CLI_FAILED;
    }
    return result;
}

int cmd_down(struct cli_globals *globals, int argc, char **argv)
{
    struct options options = {0};
    struct err err = {0};
    int status = options_parse_simple(globals, "down", argc, argv, &options);

    if (status < 0)
        status = cli_refuse_server(globals, "down", "stops the daemon of this machine");
    if (status >= 0)
        return status;

    int result = down(globals, &err);
    if (result == -ESRCH) {
        cli_say("not up");
        return CLI_OK;
    }
    if (result < 0) {
        cli_say("%s", err.message);
        return CLI_FAILED;
    }
    cli_say("down");
    return CLI_OK;
}
