/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm health`: one question to the daemon, for scripts; and `skillvm version`. */
#include "api/cli/remote.h"
#include "api/cli/verbs.h"

#include <cjson/cJSON.h>
#include <stdio.h>

int cmd_health(struct cli_globals *globals, int argc, char **argv)
{
    struct options options = {0};
    struct skillvm_error error;
    struct cli cli = {0};
    struct err err = {0};
    cJSON *json;
    int status = options_parse_simple(globals, "health", argc, argv, &options);

    if (status >= 0)
        return status;
    if (cli_find_daemon(&cli, globals, &err) < 0 || remote_open(&cli, &cli.client, &err) < 0)
        return verbs_failed(&err);
    status = skillvm_ready(cli.client, &error) < 0 ? CLI_NO : CLI_OK;
    skillvm_close(cli.client);
    if (status == CLI_NO && !options.json)
        (void)remote_failed(&cli, &error);
    else if (!options.json)
        puts("ready");
    if (!options.json)
        return status;
    json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ready", status == CLI_OK);
    if (status == CLI_NO)
        cJSON_AddStringToObject(json, "detail", error.message);
    return verbs_print_tree(json) == CLI_OK ? status : CLI_FAILED;
}

int cmd_version(struct cli_globals *globals, int argc, char **argv)
{
    struct options options = {0};
    int status = options_parse_simple(globals, "version", argc, argv, &options);

    if (status >= 0)
        return status;
    if (options.json)
        return verbs_print_json("{\"version\":\"" SKILLVM_VERSION "\"}");
    puts("skillvm " SKILLVM_VERSION);
    return CLI_OK;
}
