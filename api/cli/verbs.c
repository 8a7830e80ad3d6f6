/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/verbs.h"

#include "api/cli/remote.h"
#include "api/skill/skill.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a verb is called elsewhere. */
static const struct {
    const char *word, *name;
} other_words[] = {
    {"add", "push"},  {"check", "lint"},   {"create", "init"},
    {"delete", "rm"}, {"install", "push"}, {"ls", "list"},
    {"new", "init"},  {"remove", "rm"},    {"validate", "lint"},
};

static int refuse_count(const char *command, const struct verb *verb,
                        const struct options *options)
{
    bool few = options->n_args < verb->n_args;
    int bound = verb->n_args + (few ? 0 : verb->n_more);

    if (verbs_find(commands, command) == verb)
        return help_usage_error(command, "\"%s\" is one argument too many",
                                options->args[bound]);
    return help_usage_error(command, "`skillvm %s %s` takes %s than %d argument%s%s%s", command,
                            verb->name, few ? "no fewer" : "no more", bound,
                            bound == 1 ? "" : "s", few ? ": " : "", few ? verb->args : "");
}

const struct verb *verbs_find(const struct verb *verbs, const char *name)
{
    while (verbs->name && strcmp(verbs->name, name) != 0)
        verbs++;
    return verbs->name ? verbs : NULL;
}

/* The verb, of these, that another program calls by this name, or NULL. */
static const struct verb *find_other_word(const struct verb *verbs, const char *word)
{
    for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
        if (strcmp(other_words[i].word, word) == 0)
            return verbs_find(verbs, other_words[i].name);
    }
    return NULL;
}

/* The first command that has a verb of this name, which ret_verb gets; or NULL. */
static const struct verb *find_command_of(const char *name, const struct verb **ret_verb)
{
    for (const struct verb *command = commands; command->name; command++) {
        const struct verb *verb = command->verbs ? verbs_find(command->verbs, name) : NULL;

        if (verb) {
            *ret_verb = verb;
            return command;
        }
    }
    return NULL;
}

/* A verb without its command, or a command behind another one. */
static void hint_elsewhere(const struct verb *verbs, const char *name,
                           char out[NEAREST_HINT_SIZE])
{
    const struct verb *verb, *command = verbs == commands ? find_command_of(name, &verb) : NULL;

    if (command)
        (void)snprintf(out, NEAREST_HINT_SIZE, "; did you mean `skillvm %s %s`?", command->name,
                       verb->name);
    else if (verbs_find(commands, name))
        (void)snprintf(out, NEAREST_HINT_SIZE, "; did you mean `skillvm %s`?", name);
}

const char *verbs_hint(const struct verb *verbs, const char *name, char out[NEAREST_HINT_SIZE])
{
    const struct verb *other = find_other_word(verbs, name);
    struct nearest nearest = nearest_init(name);

    if (other)
        (void)snprintf(out, NEAREST_HINT_SIZE, "; did you mean \"%s\"?", other->name);
    if (other)
        return out;
    for (const struct verb *verb = verbs; verb->name; verb++)
        nearest_offer(&nearest, verb->name);
    (void)nearest_hint(&nearest, out);
    if (!out[0])
        hint_elsewhere(verbs, name, out);
    return out;
}

/* No verb of a command's has this name. */
static int refuse_name(const struct verb *command, const char *name)
{
    char hint[NEAREST_HINT_SIZE];

    return help_usage_error(command->name, "there is no `skillvm %s %s`%s", command->name, name,
                            verbs_hint(command->verbs, name, hint));
}

int verbs_help(const struct verb *command, const char *name)
{
    const struct verb *verb = command->verbs ? verbs_find(command->verbs, name) : NULL;

    if (verb)
        return help_print_verb(command->name, verb);
    return command->verbs ? refuse_name(command, name)
                          : help_usage_error("help", "\"%s\" is one argument too many", name);
}

/* Fills in cli as far as the verb has it. 0, or -errno with err. */
static int find(struct cli *cli, const struct cli_globals *globals, const struct verb *verb,
                struct err *err)
{
    int result;

    if (verb->options & OPTION_OFFLINE)
        return cli_find_images(cli, globals->data_dir, err);
    if (verb->here)
        return cli_find_places(cli, globals->data_dir, globals->socket_path, err);
    result = cli_find_daemon(cli, globals, err);
    return result < 0 ? result : remote_open(cli, &cli->client, err);
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
    if (options.n_args < verb->n_args || options.n_args > verb->n_args + verb->n_more)
        return refuse_count(command, verb, &options);
    if (verb->here)
        status = cli_refuse_server(globals, command, verb->here);
    if (status >= 0)
        return status;
    if (find(&cli, globals, verb, &err) < 0)
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
    if (command->run)
        return run_verb(globals, command->name, command, argc, argv);
    if (argc < 2)
        return help_usage_error(command->name, "say what to do");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_verb(command->name, command);
    verb = verbs_find(command->verbs, argv[1]);
    if (!verb)
        return refuse_name(command, argv[1]);
    argv[1] = program;
    return run_verb(globals, command->name, verb, argc - 1, argv + 1);
}

int verbs_failed(const struct err *err)
{
    cli_say("%s", err->message);
    return CLI_FAILED;
}

int verbs_refused(const struct err *err)
{
    cli_say("%s", err->message);
    return err->code == ENOMEM ? CLI_FAILED : CLI_USAGE;
}

int verbs_no_memory(void)
{
    cli_say("out of memory");
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

void verbs_print_warnings(const struct cJSON *json)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, "warnings")) {
        if (cJSON_IsString(item))
            cli_say("warning: %s", item->valuestring);
    }
}

const struct cJSON *verbs_member(const struct cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

const char *verbs_text(const struct cJSON *json, const char *key)
{
    return cJSON_GetStringValue(verbs_member(json, key));
}

const char *verbs_skill(const struct cJSON *json, char *out)
{
    const char *name = verbs_text(json, "name"), *version = verbs_text(json, "version");

    if (json && !name)
        (void)snprintf(out, VERBS_SKILL_SIZE, "(code)");
    else
        (void)snprintf(out, VERBS_SKILL_SIZE, "%s@%s", name ? name : "",
                       version ? version : "");
    return out;
}

bool verbs_add_text(struct cJSON *json, const char *key, const char *text)
{
    return !text || cJSON_AddStringToObject(json, key, text);
}

void verbs_add_strings(cJSON *json, const char *key, const struct skill_strings *strings)
{
    cJSON *array = cJSON_AddArrayToObject(json, key);

    for (size_t i = 0; i < strings->len; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(strings->items[i]));
}

double verbs_number(const struct cJSON *json, const char *key)
{
    const cJSON *item = verbs_member(json, key);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

int verbs_print_tree(struct cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);
    int status = text ? verbs_print_json(text) : verbs_no_memory();

    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}
