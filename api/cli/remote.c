/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/remote.h"

#include <errno.h>

int remote_open(const struct cli *cli, struct skillvm **ret_client, struct err *err)
{
    struct skillvm_error error;

    if (skillvm_open(cli->socket_path, NULL, ret_client, &error) == 0)
        return 0;
    return err_set(err, error.code, "%s", error.message);
}

int remote_explain(const struct cli *cli, const struct skillvm_error *error, struct err *err)
{
    const char *advice = "";

    (void)cli;
    if (error->code == ENOENT || error->code == ECONNREFUSED)
        advice = "; start one with `skillvm up`";
    return err_set(err, error->code, "%s%s", error->message, advice);
}

int remote_failed(const struct cli *cli, const struct skillvm_error *error)
{
    struct err err = {0};

    (void)remote_explain(cli, error, &err);
    cli_say("%s", err.message);
    return CLI_FAILED;
}
