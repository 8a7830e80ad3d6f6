/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm up` and `skillvm down`. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/verbs.h"
#include "base/fd.h"
#include "base/ip_address.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The settings' file, absolute in path, for the daemon works elsewhere. 0 or -errno with err.
 */
static int find_config(const char *config, char path[PATH_MAX], struct err *err)
{
    _cleanup_fd_ int fd = open(config, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !realpath(config, path))
        return err_set_errno(err, errno, "cannot read the settings \"%s\"", config);
    return S_ISREG(st.st_mode)
               ? 0
               : err_set(err, EINVAL, "the settings \"%s\" are no regular file", config);
}

/*
 * The daemon's own judgement of a file, before a host boots for it. Without this process's
 * variables, which a daemon in the software host does not see. 0 or -errno with err; what is
 * wrong, and in which line, is on standard error then.
 */
static int check_config(const struct cli *cli, char *path, struct err *err)
{
    char program[PATH_MAX] = "", name[] = "skillvmd", config[] = "--config",
         check[] = "--check-config";
    char *const argv[] = {name, config, path, check, NULL};
    char *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int code = posix_spawn_file_actions_init(&actions);

    if (code)
        return err_set_errno(err, code, "cannot check the settings");
    code = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!code)
        code =
            posix_spawn(&pid, cli_sibling(cli, name, program), &actions, NULL, argv, nothing);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (code)
        return err_set_errno(err, code, "cannot run %s", program);
    code = process_reap(pid);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0
               ? 0
               : err_set(err, EINVAL, "the settings \"%s\" are no good", path);
}

/* What the options say of a daemon that is started. path (PATH_MAX bytes) is for its file. */
static int take_settings(const struct cli *cli, const struct options *options, char *path,
                         struct daemon_settings *ret, struct err *err)
{
    union ip_address address;

    if (options->listen && ip_address_parse(options->listen, &address) == 0)
        return err_set(err, EINVAL,
                       "--listen %.64s: use an address and a port, such as 127.0.0.1:8080 or "
                       "[::1]:8080",
                       options->listen);
    if (options->config &&
        (find_config(options->config, path, err) < 0 || check_config(cli, path, err) < 0))
        return -EINVAL;
    *ret = (struct daemon_settings){.listen = options->listen,
                                    .config = options->config ? path : NULL};
    return 0;
}

/* 1 if it is up already, and it is said; 0; or -errno with err. */
static int find_up(const struct cli *cli, const struct daemon_settings *settings,
                   struct err *err)
{
    struct daemon_state state;
    int result = daemon_find(cli, &state, err);

    if (result < 0 || !state.up)
        return result;
    if (settings->listen || settings->config)
        return err_set(
            err, EALREADY,
            "already up (process %d): --listen and --config are for a daemon that is "
            "started; `skillvm down` stops this one",
            (int)state.pid);
    daemon_keep(cli);
    cli_say("already up%s: process %d, socket %s", state.soft ? " (in the software host)" : "",
            (int)state.pid, cli->socket_path);
    return 1;
}

static int bring_up(const struct cli *cli, const struct options *options, struct err *err)
{
    struct daemon_settings settings;
    struct daemon_state state;
    char path[PATH_MAX];
    bool soft;
    int result = take_settings(cli, options, path, &settings, err);

    if (result < 0)
        return result;
    result = find_up(cli, &settings, err);
    if (result != 0)
        return result < 0 ? result : 0;
    _cleanup_fd_ int lock_fd = daemon_lock(cli, true, err);
    if (lock_fd < 0)
        return lock_fd;
    /* Another one may have started it while this one waited. */
    result = find_up(cli, &settings, err);
    if (result != 0)
        return result < 0 ? result : 0;
    result = daemon_choose(cli, options->host, &soft, err);
    if (result < 0)
        return result;
    if (options->foreground) {
        daemon_keep(cli);
        fd_close(&lock_fd);
        return daemon_run_foreground(cli, &settings, soft);
    }
    cli_catch_interrupts();
    result = daemon_start(cli, &settings, soft, false, err);
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
