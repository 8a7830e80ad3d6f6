/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm health`: one question to the daemon, for scripts; and `skillvm version`. */
#include "api/cli/remote.h"
#include "api/cli/verbs.h"

#include <cjson/cJSON.h>
#include <stdio.h>

int cmd_health(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    cJSON *json;
    int status = skillvm_ready(cli->client, &error) < 0 ? CLI_NO : CLI_OK;

    if (!options->json) {
        if (status == CLI_OK)
            puts("ready");
        else
            (void)remote_failed(cli, &error);
        return status;
    }
    json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ready", status == CLI_OK);
    if (status == CLI_NO)
        cJSON_AddStringToObject(json, "detail", error.message);
    return verbs_print_tree(json) == CLI_OK ? status : CLI_FAILED;
}

int cmd_version(const struct cli *cli, const struct options *options)
{
    (void)cli;
    if (options->json)
        return verbs_print_json("{\"version\":\"" SKILLVM_VERSION "\"}");
    puts("skillvm " SKILLVM_VERSION);
    return CLI_OK;
}
