/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the verbs that speak with the daemon. */
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "api/cli/table.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

static void print_warnings(const cJSON *json)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, "warnings")) {
        if (cJSON_IsString(item))
            cli_say("warning: %s", item->valuestring);
    }
}

static void print_pushed(const cJSON *json)
{
    const char *digest = verbs_text(json, "digest");
    char skill[VERBS_SKILL_SIZE];

    print_warnings(json);
    show_text(stdout, verbs_skill(json, skill));
    show_text(stdout, "  ");
    (void)snprintf(skill, sizeof(skill), "%.12s\n", digest ? digest : "");
    show_text(stdout, skill);
}

int skill_push(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    _cleanup_fd_ int fd = -1;
    char *json = NULL;
    int result = skillvm_open_skill(options->args[0], &fd, &error);

    if (result < 0) {
        cli_say("%s", error.message);
        return CLI_FAILED;
    }
    result = skillvm_push_skill(cli->client, fd, &json, &error);
    return verbs_print(cli, options, result, &error, json, print_pushed);
}

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

/* NAME[@VERSION]: the name, which the caller frees, and the version behind it, or NULL. */
static char *split_name(const char *text, const char **ret_version)
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
    _cleanup_free_ char *name = split_name(options->args[0], &version);
    char *json = NULL;
    int result;

    if (!name)
        return verbs_no_memory();
    result = skillvm_get_skill(cli->client, name, version, &json, &error);
    return verbs_print(cli, options, result, &error, json, print_skill);
}

int skill_rm(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    const char *version;
    _cleanup_free_ char *name = split_name(options->args[0], &version);

    if (!name)
        return verbs_no_memory();
    if (!version)
        return help_usage_error("skill", "say which version: %s@VERSION, or %s@latest",
                                options->args[0], options->args[0]);
    if (skillvm_remove_skill(cli->client, name, version, &error) < 0)
        return remote_failed(cli, &error);
    return CLI_OK;
}
