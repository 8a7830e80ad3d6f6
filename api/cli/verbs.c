/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/verbs.h"

#include "api/cli/remote.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_STRICT = 2000, OPTION_SKILL, OPTION_STATUS };

/* Which verb_option an option is one of; 0 for those that every verb takes. */
static unsigned kind_of(int option)
{
    switch (option) {
    case 'o':
        return VERB_FORMAT;
    case 'f':
        return VERB_FOLLOW;
    case OPTION_STRICT:
        return VERB_STRICT;
    case 'd':
        return VERB_DIR;
    case 'n':
    case OPTION_SKILL:
    case OPTION_STATUS:
        return VERB_FILTER;
    default:
        return 0;
    }
}

static void take_option(int option, struct cli_globals *globals, struct verb_options *o)
{
    switch (option) {
    case CLI_OPTION_SOCKET:
        globals->socket_path = optarg;
        break;
    case CLI_OPTION_DATA:
        globals->data_dir = optarg;
        break;
    case 'f':
        o->follow = true;
        break;
    case OPTION_STRICT:
        o->strict = true;
        break;
    case 'd':
        o->output_dir = optarg;
        break;
    case 'n':
        o->limit = optarg;
        break;
    case OPTION_SKILL:
        o->skill = optarg;
        break;
    case OPTION_STATUS:
        o->status = optarg;
        break;
    default:
        break;
    }
}

/* -1: go on; else the exit status. */
static int parse(struct cli_globals *globals, const char *command, const struct verb *verb,
                 int argc, char **argv, struct verb_options *o)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},
        {"follow", no_argument, NULL, 'f'},
        {"strict", no_argument, NULL, OPTION_STRICT},
        {"output-dir", required_argument, NULL, 'd'},
        {"limit", required_argument, NULL, 'n'},
        {"skill", required_argument, NULL, OPTION_SKILL},
        {"status", required_argument, NULL, OPTION_STATUS},
        CLI_GLOBAL_OPTIONS,
        {0},
    };
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, "o:fd:n:h", longs, NULL)) != -1) {
        if (c == 'h') {
            (void)fputs(verb->help, stdout);
            return CLI_OK;
        }
        if (c == '?')
            return help_usage_error(command, NULL);
        if (kind_of(c) && !(kind_of(c) & verb->options))
            return help_usage_error(command, "`skillvm %s %s` has no such option", command,
                                    verb->name);
        if (c != 'o')
            take_option(c, globals, o);
        else if (strcmp(optarg, "json") == 0 || strcmp(optarg, "table") == 0)
            o->json = optarg[0] == 'j';
        else
            return help_usage_error(command, "--output is json or table, not \"%s\"", optarg);
    }
    o->args = argv + optind;
    o->n_args = argc - optind;
    if (o->n_args < verb->min_args || o->n_args > verb->max_args)
        return help_usage_error(command, "`skillvm %s %s` takes %s than %d argument%s", command,
                                verb->name, o->n_args < verb->min_args ? "no fewer" : "no more",
                                o->n_args < verb->min_args ? verb->min_args : verb->max_args,
                                verb->max_args == 1 ? "" : "s");
    return -1;
}

int verbs_main(struct cli_globals *globals, const char *command, const struct verb *verbs,
               int argc, char **argv)
{
    struct verb_options options = {0};
    struct cli cli = {0};
    struct err err = {0};
    int status;

    if (argc < 2)
        return help_usage_error(command, "say what to do");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print(command);
    for (const struct verb *v = verbs; v->name; v++) {
        if (strcmp(v->name, argv[1]) != 0)
            continue;
        status = parse(globals, command, v, argc - 1, argv + 1, &options);
        if (status >= 0)
            return status;
        if (!(v->options & VERB_OFFLINE) &&
            (cli_find_places(&cli, globals->data_dir, globals->socket_path, &err) < 0 ||
             remote_open(&cli, &cli.client, &err) < 0))
            return verbs_failed(&err);
        status = v->run(&cli, &options);
        skillvm_close(cli.client);
        return status;
    }
    return help_usage_error(command, "there is no `skillvm %s %s`", command, argv[1]);
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

int verbs_print(const struct cli *cli, const struct verb_options *options, int result,
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
