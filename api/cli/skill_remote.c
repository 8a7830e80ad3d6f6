/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the verbs that speak with the daemon. */
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "api/cli/table.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

static void print_list(const cJSON *json)
{
    static const char *const header[] = {"NAME", "VERSION", "DIGEST", "AGE", "DESCRIPTION"};
    struct table table = table_begin(header, 5);
    time_t now = time(NULL);
    const cJSON *item;

    cJSON_ArrayForEach(item, json) {
        const char *digest = verbs_text(item, "digest");
        char short_digest[13], age[SHOW_SIZE];

        (void)snprintf(short_digest, sizeof(short_digest), "%s", digest ? digest : "");
        table_add(&table, (const char *const[]){
                              verbs_text(item, "name"), verbs_text(item, "version"),
                              short_digest, show_age(verbs_text(item, "created_at"), now, age),
                              verbs_text(item, "description")});
    }
    (void)table_end(&table, 0);
}

int skill_list(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    char *json = NULL;
    int result = skillvm_list_skills(cli->client, &json, &error);

    return verbs_print(cli, options, result, &error, json, print_list);
}

char *skill_split_name(const char *text, const char **ret_version)
{
    char *name = strdup(text), *at = name ? strchr(name, '@') : NULL;

    *ret_version = at && at[1] ? at + 1 : NULL;
    if (at)
        *at = '\0';
    return name;
}

static void print_skill(const cJSON *json)
{
    static const char *const keys[] = {
        "name", "version",       "description", "digest",  "created_at",   "license",
        "lang", "compatibility", "entry_point", "timeout", "allowed_tools"};
    const cJSON *files = verbs_member(json, "files"), *item;
    const char *instructions = verbs_text(json, "instructions");

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (verbs_text(json, keys[i]))
            show_field(keys[i], 13, verbs_text(json, keys[i]));
    }
    cJSON_ArrayForEach(item, files) {
        show_field(item == files->child ? "files" : "", 13, verbs_text(item, "path"));
    }
    if (instructions && *instructions) {
        (void)fputc('\n', stdout);
        show_text(stdout, instructions);
        (void)fputc('\n', stdout);
    }
}

int skill_show(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    const char *version;
    _cleanup_free_ char *name = skill_split_name(options->args[0], &version);
    char *json = NULL;
    int result;

    if (!name)
        return verbs_no_memory();
    result = skillvm_get_skill(cli->client, name, version, &json, &error);
    if (result < 0)
        return remote_failed_skill(cli, &error, name);
    return verbs_print(cli, options, result, &error, json, print_skill);
}

int skill_rm(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    const char *version;
    _cleanup_free_ char *name = skill_split_name(options->args[0], &version);

    if (!name)
        return verbs_no_memory();
    if (!version)
        return help_usage_error("skill", "say which version: %s@VERSION, or %s@latest",
                                options->args[0], options->args[0]);
    if (skillvm_remove_skill(cli->client, name, version, &error) < 0)
        return remote_failed_skill(cli, &error, name);
    return CLI_OK;
}
