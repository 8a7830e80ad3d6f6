/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm run`: one request to the daemon, its events as they come, an exit status. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/files.h"
#include "api/cli/given_code.h"
#include "api/cli/image_need.h"
#include "api/cli/progress.h"
#include "api/cli/remote.h"
#include "api/cli/run_files.h"
#include "api/cli/run_result.h"
#include "api/cli/skill_verbs.h"
#include "api/cli/verbs.h"
#include "api/skill/duration.h"
#include "api/skill/entry.h"
#include "api/skill/file_names.h"
#include "api/skill/language.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(struct skillvm *, skillvm_close)

struct run_options {
    struct options given;
    struct run_files files;
    cJSON *env;     /* owned; an object, or NULL */
    cJSON *network; /* owned; an array, or NULL */
    char **args;    /* of the skill */
    int n_args;
};

struct run_command {
    bool json;
    bool running; /* the skill's process was started: standard error is its own */
    struct progress progress;
    char progress_text[64];
    char id[REMOTE_ID_SIZE]; /* of the execution once the daemon has said it, else "" */
    char *result;            /* owned; its JSON */
    struct err err;          /* of writing its output */
};

static int should_stop(void *ctx)
{
    struct run_command *run = ctx;

    if (!run->running)
        progress_tick(&run->progress, run->progress_text);
    return cli_interrupted() != 0;
}

static void begin_output(struct run_command *run)
{
    if (!run->running)
        progress_end(&run->progress);
    run->running = true;
}

static int write_output(struct run_command *run, int fd, const char *data, size_t len)
{
    int result;

    begin_output(run);
    if (run->json)
        return 0;
    result = fd_write_full(fd, data, len);
    return result ? err_set_errno(&run->err, -result, "cannot write the skill's output") : 0;
}

static int on_stdout(void *ctx, const char *data, size_t len)
{
    return write_output(ctx, STDOUT_FILENO, data, len);
}

static int on_stderr(void *ctx, const char *data, size_t len)
{
    return write_output(ctx, STDERR_FILENO, data, len);
}

static int on_status(void *ctx, const char *execution_id, const char *status)
{
    struct run_command *run = ctx;

    (void)remote_note_id(run->id, execution_id, status);
    if (strcmp(status, "running") == 0)
        begin_output(run);
    else
        (void)snprintf(run->progress_text, sizeof(run->progress_text), "waiting for a machine");
    return 0;
}

static bool looks_like_path(const char *text)
{
    return strchr(text, '/') || text[0] == '.';
}

/* A path there is, or a registered skill's name: name[@version]. */
static int take_skill(const char *text, cJSON *request, int *ret_fd, struct err *err)
{
    struct skillvm_error why;
    int result;

    /* A name is not opened: what lies beside it would be looked at for a path that is nearest.
     */
    if (looks_like_path(text) || access(text, F_OK) == 0 || errno != ENOENT) {
        result = skillvm_open_skill(text, ret_fd, &why);
        return result ? err_set(err, -result, "%s", why.message) : 0;
    }
    const char *at = strchr(text, '@');
    char *name = at ? strndup(text, (size_t)(at - text)) : strdup(text);
    bool ok = name && cJSON_AddStringToObject(request, "skill", name) &&
              (!at || cJSON_AddStringToObject(request, "version", at + 1));
    free(name);
    return ok ? 0 : err_no_memory(err);
}

/* What is run: code, a script, or a skill. */
static int take_what(const struct options *given, cJSON *request, int *ret_fd, struct err *err)
{
    int is_script;

    if (given->code)
        return run_code_add(given->code, given->lang, request, err);
    is_script = run_code_add_file(given->args[0], given->lang, request, err);
    if (is_script < 0)
        return is_script;
    return is_script ? 0 : take_skill(given->args[0], request, ret_fd, err);
}

/* Options that do not go with what is run. -1: go on; else the exit status. */
static int check_what(const struct options *given, const cJSON *request)
{
    bool is_code = verbs_text(request, "code") != NULL;

    if (is_code && (given->script || given->module))
        return help_usage_error("run", "\"%s\" is a script; --%s is for skills", given->args[0],
                                given->script ? "script" : "module");
    if (!is_code && given->lang)
        return help_usage_error("run", "\"%s\" is no script; --lang is for code",
                                given->args[0]);
    return -1;
}

/* What the command line gives besides: a folder and the input. 0 or -errno with err. */
static int take_given(const struct options *given, struct buf *input, struct err *err)
{
    int r = given->output_dir ? files_check_dir(given->output_dir, err) : 0;

    return r < 0 || !given->input ? r : files_read_input(given->input, input, err);
}

/* All but the skill and the files. The input goes in as it is: no number of it is rounded. */
static bool fill_request(cJSON *request, struct run_options *options, struct buf *input)
{
    const char *const *args = (const char *const *)options->args;

    return verbs_add_text(request, "timeout", options->given.timeout) &&
           verbs_add_text(request, "script", options->given.script) &&
           verbs_add_text(request, "module", options->given.module) &&
           verbs_add_text(request, "session_id", options->given.session) &&
           verbs_add_text(request, "image", options->given.image) &&
           (!options->given.fresh || cJSON_AddTrueToObject(request, "fresh")) &&
           (!options->given.no_network || cJSON_AddFalseToObject(request, "network")) &&
           (!options->network ||
            cJSON_AddItemToObject(request, "network", steal_ptr(&options->network))) &&
           (!options->env || cJSON_AddItemToObject(request, "env", steal_ptr(&options->env))) &&
           (!options->n_args ||
            cJSON_AddItemToObject(request, "args",
                                  cJSON_CreateStringArray(args, options->n_args))) &&
           (!input->len || cJSON_AddRawToObject(request, "input", buf_cstr(input)));
}

static void print_file(void *ctx, const char *path)
{
    (void)ctx;
    fprintf(stderr, "%s\n", path);
}

static int fetch_artifacts(const struct cli *cli, const struct run_result *result,
                           const char *dir, struct err *err)
{
    if (result->n_files == 0 || !result->execution_id)
        return files_make_dirs(dir, err);
    return files_fetch(cli, result->execution_id, dir, print_file, NULL, err);
}

/* For people: what the exit status alone would not say. */
static void print_summary(const struct run_options *options, const struct run_result *result)
{
    const struct names_shown shown =
        names_shown(result->skill_name ? result->skill_name : "the code");
    const char *name = shown.text;
    const cJSON *warning;

    cJSON_ArrayForEach(warning, result->warnings) {
        if (cJSON_IsString(warning))
            cli_say("%s: warning: %s", name, warning->valuestring);
    }
    if (result->status == RUN_RESULT_TIMEOUT)
        cli_say("%s: %s", name, result->error ? result->error : "timed out");
    else if (result->status == RUN_RESULT_CANCELLED)
        cli_say("%s: cancelled", name);
    else if (result->status == RUN_RESULT_FAILED)
        cli_say("%s: failed: %s", name, result->error ? result->error : "no reason is known");
    if (result->n_files > 0 && !options->given.output_dir)
        cli_say("%zu file%s made; --output-dir DIR keeps %s", result->n_files,
                result->n_files == 1 ? " was" : "s were", result->n_files == 1 ? "it" : "them");
}

static int finish_run(const struct cli *cli, const struct run_options *options,
                      struct run_command *run)
{
    struct run_result result;
    struct err err = {0};

    if (run_result_parse(run->result, strlen(run->result), &result, &err))
        return verbs_failed(&err);
    int status = run_result_exit_status(&result);
    if (!run->json)
        print_summary(options, &result);
    if (options->given.output_dir &&
        fetch_artifacts(cli, &result, options->given.output_dir, &err))
        status = verbs_failed(&err);
    if (run->json && verbs_print_json(run->result) != CLI_OK)
        status = CLI_FAILED;
    run_result_finish(&result);
    return status;
}

/* What the daemon refused. A file that is not there was taken for a skill's name. */
static int failed(const struct cli *cli, const cJSON *request,
                  const struct skillvm_error *error)
{
    const char *name = verbs_text(request, "skill");

    if (!name)
        return remote_failed(cli, error);
    if (error->http_status == 404 && language_of_path(name)) {
        cli_say("there is no file \"%s\", and no skill of that name", name);
        return CLI_FAILED;
    }
    return remote_failed_skill(cli, error, name);
}

/* Sends the request and sees it through. Returns the exit status. */
static int call_daemon(const struct cli *cli, const struct run_options *options,
                       const cJSON *request, int archive_fd)
{
    char *text = cJSON_PrintUnformatted(request);
    struct run_command run = {.json = options->given.json,
                              .progress_text = "waiting for the daemon"};
    const struct skillvm_events events = {
        .on_status = on_status,
        .on_stdout = on_stdout,
        .on_stderr = on_stderr,
        .should_stop = should_stop,
        .ctx = &run,
    };
    struct skillvm_error error;
    int result, status;

    if (!text)
        return verbs_no_memory();
    progress_begin(&run.progress);
    result = skillvm_run(cli->client, text, archive_fd, &events, &run.result, &error);
    progress_end(&run.progress);
    cJSON_free(text);
    /* Nobody sees how it goes on. */
    if (run.id[0] && (cli_interrupted() || run.err.code))
        (void)skillvm_cancel(cli->client, run.id, NULL);
    if (cli_interrupted()) {
        status = 128 + cli_interrupted();
    } else if (result && run.err.code) {
        status = verbs_failed(&run.err);
    } else if (result < 0) {
        status = failed(cli, request, &error);
    } else {
        status = finish_run(cli, options, &run);
    }
    skillvm_free(run.result);
    return status;
}

/*
 * What the daemon would refuse once it is up, where to start it takes time: a skill in which
 * nothing runs. One that cannot be read is the daemon's to refuse, whose limits are its own.
 */
static int check_entry(const struct cli *cli, const struct options *given, int archive_fd,
                       struct err *err)
{
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    struct daemon_state daemon;

    if (archive_fd < 0 || cli->server[0] || daemon_find(cli, &daemon, NULL) < 0 || daemon.up ||
        skill_load(given->args[0], -1, &archive, &skill, NULL) < 0)
        return 0;
    return skill_entry_resolve(&skill, &archive, given->script, given->module, &entry, err);
}

static int meet_image(const struct cli *cli, const struct options *given, const cJSON *request,
                      int archive_fd, struct err *err)
{
    const struct image_need need = {.image = given->image,
                                    .path = archive_fd >= 0 ? given->args[0] : NULL,
                                    .code = verbs_text(request, "code"),
                                    .lang = verbs_text(request, "lang"),
                                    .build = given->build_image};

    return image_need_meet(cli, &need, err);
}

/* Runs it with a daemon of this machine, or a server, which is neither started nor stopped. */
static int run_by(const struct cli *cli, struct run_options *options, cJSON *request,
                  int archive_fd, struct err *err)
{
    struct daemon_use use;
    int status = CLI_FAILED;

    if (!cli->server[0] && daemon_use_begin(cli, options->given.host, &use, err))
        return CLI_FAILED;
    if (run_files_send(&options->files, cli, request, err) == 0)
        status = call_daemon(cli, options, request, archive_fd);
    run_files_finish(&options->files, cli);
    if (!cli->server[0])
        daemon_use_end(cli, &use);
    return status;
}

static int run_skill(const struct cli_globals *globals, struct run_options *options,
                     struct err *err)
{
    const struct options *given = &options->given;
    _cleanup_buf_ struct buf input = buf_init(FILES_INPUT_MAX);
    _cleanup_(cJSON_Delete) cJSON *request = cJSON_CreateObject();
    _cleanup_(skillvm_close) struct skillvm *client = NULL;
    _cleanup_fd_ int archive_fd = -1;
    struct cli cli = {0};
    struct err refused = {0};
    char hint[NEAREST_HINT_SIZE];
    const char *name;
    int status;

    if (take_given(given, &input, &refused) < 0)
        return verbs_refused(&refused);
    if (take_what(given, request, &archive_fd, err))
        return CLI_FAILED;
    status = check_what(given, request);
    if (status >= 0)
        return status;
    if ((!fill_request(request, options, &input) && err_no_memory(err)) ||
        cli_find_daemon(&cli, globals, err) || remote_open(&cli, &client, err))
        return CLI_FAILED;
    if (given->build_image && cli.server[0])
        return help_usage_error("run", "--build-image is for this machine, not for a server");
    cli.client = client;
    name = verbs_text(request, "skill");
    if (name && !cli.server[0] && daemon_lacks_skill(&cli, name, hint)) {
        (void)err_set(err, ENOENT,
                      "there is no file or folder \"%s\", and no skill of that name is "
                      "registered%s",
                      name, hint);
        return CLI_FAILED;
    }
    if (check_entry(&cli, given, archive_fd, err) < 0 ||
        meet_image(&cli, given, request, archive_fd, err) < 0)
        return CLI_FAILED;
    return run_by(&cli, options, request, archive_fd, err);
}

static int add_env(struct run_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    const char *value = equals ? equals + 1 : getenv(text);
    _cleanup_free_ char *name = strdup(text);

    if (name && equals)
        name[equals - text] = '\0';
    if (!name || !(options->env || (options->env = cJSON_CreateObject())))
        return -ENOMEM;
    if (!*name || !value)
        return -EINVAL;
    cJSON_DeleteItemFromObjectCaseSensitive(options->env, name);
    return cJSON_AddStringToObject(options->env, name, value) ? 0 : -ENOMEM;
}

/* What a host is, is the daemon's to say. */
static int add_network(struct run_options *options, const char *host)
{
    if (!options->network)
        options->network = cJSON_CreateArray();
    return options->network && cJSON_AddItemToArray(options->network, cJSON_CreateString(host))
               ? -1
               : verbs_no_memory();
}

/* A value of --file, --network or --env. -1: go on; else the exit status. */
static int take_repeated(void *ctx, const char *name, const char *value)
{
    struct run_options *options = ctx;
    struct err err = {0};

    if (strcmp(name, "file") == 0)
        return run_files_add(&options->files, value, &err) < 0 ? verbs_refused(&err) : -1;
    if (strcmp(name, "network") == 0)
        return add_network(options, value);
    if (add_env(options, value))
        return help_usage_error(
            "run", "--env %s: use NAME=value, or the NAME of a variable that is set", value);
    return -1;
}

static int check_code(const struct options *given)
{
    if (given->n_args > 0)
        return help_usage_error("run", "give --code or \"%s\", not both", given->args[0]);
    if (given->script || given->module)
        return help_usage_error("run", "--%s is for skills and does not go with --code",
                                given->script ? "script" : "module");
    if (given->input && strcmp(given->code, "-") == 0 && strcmp(given->input, "-") == 0)
        return help_usage_error("run", "--code and --input cannot both be read from standard "
                                       "input");
    return -1;
}

/* What getopt cannot know. -1: go on; else the exit status. */
static int check_options(const struct run_options *options)
{
    const struct options *given = &options->given;
    uint64_t ms;

    if (given->timeout && (duration_parse(given->timeout, &ms) || ms == 0))
        return help_usage_error("run", "--timeout %s: use an amount such as 30s or 2m",
                                given->timeout);
    if (options->network && given->no_network)
        return help_usage_error("run", "give --network or --no-network, not both");
    if (given->code)
        return check_code(given);
    if (given->n_args == 0)
        return help_usage_error("run", "name a skill: a folder, an archive, or "
                                       "NAME[@VERSION] of a registered one; or a script, or "
                                       "give --code");
    if (given->n_args > 1)
        return help_usage_error("run",
                                "\"%s\" is one argument too many; those of the skill go after "
                                "\"--\"",
                                given->args[1]);
    if (given->script && given->module)
        return help_usage_error("run", "give --script or --module, not both");
    return -1;
}

int cmd_run(struct cli_globals *globals, int argc, char **argv)
{
    struct run_options options = {.given = {.repeat = take_repeated, .ctx = &options}};
    struct options *given = &options.given;
    struct err err = {0};
    int n = 1;

    /* What follows "--" is the skill's, so getopt never sees it. */
    while (n < argc && strcmp(argv[n], "--") != 0)
        n++;
    options.args = argv + n + 1;
    options.n_args = n < argc ? argc - n - 1 : 0;

    int status = options_parse(globals, "run", verbs_find(commands, "run"), n, argv, given);
    if (status < 0)
        status = check_options(&options);
    if (status < 0) {
        cli_catch_interrupts();
        status = run_skill(globals, &options, &err);
        if (err.code)
            cli_say("%s", err.message);
        if (cli_interrupted())
            status = 128 + cli_interrupted();
    }
    run_files_finish(&options.files, NULL);
    cJSON_Delete(options.env);
    cJSON_Delete(options.network);
    return status;
}
