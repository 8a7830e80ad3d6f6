/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/remote.h"

#include "api/cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int remote_open(const struct cli *cli, struct skillvm **ret_client, struct err *err)
{
    struct skillvm_error error;
    struct skillvm *client;
    int result = skillvm_open(cli->server[0] ? cli->server : cli->socket_path,
                              cli->key[0] ? cli->key : NULL, &client, &error);

    if (result == 0 && skillvm_set_tenant(client, cli->tenant, &error) < 0) {
        result = -error.code;
        skillvm_close(client);
    }
    if (result < 0)
        return err_set(err, error.code, "%s", error.message);
    *ret_client = client;
    return 0;
}

/* What to do about it, with "; " before it, or "". */
static void advise(const struct cli *cli, const struct skillvm_error *error, char *out,
                   size_t size)
{
    out[0] = '\0';
    if (error->http_status == 401 && cli->key_from)
        (void)snprintf(out, size, "; the key of %s may not do this", cli->key_from);
    else if (error->http_status == 401)
        (void)snprintf(out, size, "; give a key with SKILLVM_API_KEY or --key @FILE");
    else if (error->http_status == 429 && error->retry_after_s)
        (void)snprintf(out, size, "; try again in %u s", error->retry_after_s);
    else if (error->http_status || !(error->code == ENOENT || error->code == ECONNREFUSED))
        return;
    else if (cli->server[0])
        (void)snprintf(out, size, "; the server was named by %s", cli->server_from);
    else
        (void)snprintf(out, size, "; start one with `skillvm up`");
}

int remote_explain(const struct cli *cli, const struct skillvm_error *error, struct err *err)
{
    char advice[256];

    advise(cli, error, advice, sizeof(advice));
    return err_set(err, error->code, "%s%s", error->message, advice);
}

int remote_failed(const struct cli *cli, const struct skillvm_error *error)
{
    struct err err = {0};

    (void)remote_explain(cli, error, &err);
    return verbs_failed(&err);
}
