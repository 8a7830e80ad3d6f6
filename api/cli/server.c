/* SPDX-License-Identifier: Apache-2.0 */
/* Which daemon a command speaks with, and with which key. */
#include "api/cli/cli.h"
#include "base/fd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* The server's URL and what named it; NULL where a daemon of this machine is meant. */
static const char *find_server(const struct cli_globals *globals, const char **ret_from)
{
    static const char *const names[] = {"SKILLVM_SERVER", "SKILLBOX_SERVER_URL"};

    *ret_from = "--server";
    if (globals->server)
        return globals->server;
    if (globals->socket_path || globals->data_dir || cli_variable("SKILLVM_SOCKET"))
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *ret_from = names[i];
        if (cli_variable(names[i]))
            return cli_variable(names[i]);
    }
    return NULL;
}

static int read_key(const char *path, char *key, struct err *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open the key's file \"%s\"", path);
    n = fd_read_full(fd, key, CLI_KEY_MAX);
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read the key's file \"%s\"", path);
    while (n > 0 && isspace((unsigned char)key[n - 1]))
        n--;
    if (n == 0 || n >= (ssize_t)CLI_KEY_MAX || memchr(key, '\0', (size_t)n))
        return err_set(err, EINVAL, "\"%s\" does not hold a key", path);
    key[n] = '\0';
    return 0;
}

static int copy_key(struct cli *cli, const char *key, const char *from, struct err *err)
{
    if (strlen(key) >= CLI_KEY_MAX)
        return err_set(err, EINVAL, "the key of %s is too long to be one", from);
    strcpy(cli->key, key);
    cli->key_from = from;
    return 0;
}

static int find_key(struct cli *cli, const struct cli_globals *globals, struct err *err)
{
    if (globals->key && globals->key[0] == '@') {
        cli->key_from = "--key";
        return read_key(globals->key + 1, cli->key, err);
    }
    if (globals->key) {
        cli_say("warning: others on this machine can see a key on the command line; use "
                "--key @FILE or SKILLVM_API_KEY");
        return copy_key(cli, globals->key, "--key", err);
    }
    if (cli_variable("SKILLVM_API_KEY"))
        return copy_key(cli, cli_variable("SKILLVM_API_KEY"), "SKILLVM_API_KEY", err);
    /* The key of another service's client is not for a daemon of this machine. */
    if (cli->server[0] && cli_variable("SKILLBOX_API_KEY"))
        return copy_key(cli, cli_variable("SKILLBOX_API_KEY"), "SKILLBOX_API_KEY", err);
    return 0;
}

int cli_find_daemon(struct cli *cli, const struct cli_globals *globals, struct err *err)
{
    const char *from, *server = find_server(globals, &from);
    int result = 0;

    cli->tenant = globals->tenant;
    if (globals->server && globals->socket_path)
        return err_set(err, EINVAL, "give --server or --socket, not both");
    if (server && strlen(server) >= sizeof(cli->server))
        return err_set(err, EINVAL, "the URL of %s is too long", from);
    if (server) {
        strcpy(cli->server, server);
        cli->server_from = from;
    } else {
        result = cli_find_places(cli, globals->data_dir, globals->socket_path, err);
    }
    return result ? result : find_key(cli, globals, err);
}

int cli_refuse_server(const struct cli_globals *globals, const char *command, const char *what)
{
    const char *from, *server = find_server(globals, &from);

    if (globals->server)
        return help_usage_error(command, "`skillvm %s` %s; it has no --server", command, what);
    if (server)
        cli_say("%s is left alone: `skillvm %s` %s", from, command, what);
    return -1;
}
