/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/verbs.h"

#include "api/cli/remote.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse_count(const char *command, const struct verb *verb, int n)
{
    bool few = n < verb->min_args;
    int bound = few ? verb->min_args : verb->max_args;

    return help_usage_error(command, "`skillvm %s %s` takes %s than %d argument%s", command,
                            verb->name, few ? "no fewer" : "no more", bound,
                            bound == 1 ? "" : "s");
}

const struct verb *verbs_find(const struct verb *verbs, const char *name)
{
    while (verbs->name && strcmp(verbs->name, name) != 0)
        verbs++;
    return verbs->name ? verbs : NULL;
}

static int run_verb(struct cli_globals *globals, const char *command, const struct verb *verb,
                    int argc, char **argv)
{
    struct options options = {0};
    struct cli cli = {0};
    struct err err = {0};
    int status = options_parse(globals, command, verb, argc, argv, &options);

    if (status >= 0)
        return status;
    if (options.n_args < verb->min_args || options.n_args > verb->max_args)
        return refuse_count(command, verb, options.n_args);
    if (!(verb->options & OPTION_OFFLINE) &&
        (cli_find_daemon(&cli, globals, &err) < 0 || remote_open(&cli, &cli.client, &err) < 0))
        return verbs_failed(&err);
    status = verb->run(&cli, &options);
    skillvm_close(cli.client);
    return status;
}

int verbs_main(struct cli_globals *globals, const struct verb *command, int argc, char **argv)
{
    char program[] = "skillvm";
    const struct verb *verb;

    argv[0] = program;
    if (command->start)
        return command->start(globals, argc, argv);
    if (argc < 2)
        return help_usage_error(command->name, "say what to do");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_verb(command->name, command);
    verb = verbs_find(command->verbs, argv[1]);
    if (!verb)
        return help_usage_error(command->name, "there is no `skillvm %s %s`", command->name,
                                argv[1]);
    argv[1] = program;
    return run_verb(globals, command->name, verb, argc - 1, argv + 1);
}

int verbs_failed(const struct err *err)
{
    cli_say("%s", err->message);
    return CLI_FAILED;
}

int verbs_print_json(const char *json)
{
    size_t len = strlen(json);

    if (fd_write_full(STDOUT_FILENO, json, len) < 0 ||
        (len > 0 && json[len - 1] != '\n' && fd_write_full(STDOUT_FILENO, "\n", 1) < 0)) {
        cli_say("cannot write to standard output");
        return CLI_FAILED;
    }
    return CLI_OK;
}

int verbs_print(const struct cli *cli, const struct options *options, int result,
                const struct skillvm_error *error, char *json,
                void (*print_table)(const struct cJSON *json))
{
    int status = CLI_OK;
    cJSON *tree;

    if (result < 0)
        return remote_failed(cli, error);
    if (options->json) {
        status = verbs_print_json(json);
    } else {
        tree = cJSON_Parse(json);
        if (tree) {
            print_table(tree);
        } else {
            cli_say("the daemon's answer cannot be read");
            status = CLI_FAILED;
        }
        cJSON_Delete(tree);
    }
    skillvm_free(json);
    return status;
}

const char *verbs_text(const struct cJSON *json, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

double verbs_number(const struct cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

int verbs_print_tree(struct cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);
    int status = CLI_FAILED;

    if (text)
        status = verbs_print_json(text);
    else
        cli_say("out of memory");
    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}
