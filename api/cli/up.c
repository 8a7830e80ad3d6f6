/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm up` and `skillvm down`. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/verbs.h"
#include "base/fd.h"

#include <errno.h>

/* 1 if it is up already, and it is said; 0; or -errno with err. */
static int find_up(const struct cli *cli, struct err *err)
{
    struct daemon_state state;
    int result = daemon_find(cli, &state, err);

    if (result < 0 || !state.up)
        return result;
    daemon_keep(cli);
    cli_say("already up%s: process %d, socket %s", state.soft ? " (in the software host)" : "",
            (int)state.pid, cli->socket_path);
    return 1;
}

static int bring_up(const struct cli *cli, const struct options *options, struct err *err)
{
    struct daemon_state state;
    bool soft;
    int result = find_up(cli, err);

    if (result != 0)
        return result < 0 ? result : 0;
    _cleanup_fd_ int lock_fd = daemon_lock(cli, true, err);
    if (lock_fd < 0)
        return lock_fd;
    /* Another one may have started it while this one waited. */
    result = find_up(cli, err);
    if (result != 0)
        return result < 0 ? result : 0;
    result = daemon_choose(cli, options->host, &soft, err);
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

int cmd_up(const struct cli *cli, const struct options *options)
{
    struct err err = {0};
    int result = bring_up(cli, options, &err);

    if (result >= 0)
        return result;
    (void)verbs_failed(&err);
    return cli_interrupted() ? 128 + cli_interrupted() : CLI_FAILED;
}

int cmd_down(const struct cli *cli, const struct options *options)
{
    struct err err = {0};
    int result = daemon_stop(cli, &err);

    (void)options;
    if (result < 0 && result != -ESRCH)
        return verbs_failed(&err);
    cli_say(result < 0 ? "not up" : "down");
    return CLI_OK;
}
