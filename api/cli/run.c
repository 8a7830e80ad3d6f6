/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm run`: one request to the daemon, its events as they come, an exit status. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/files.h"
#include "api/cli/progress.h"
#include "api/cli/remote.h"
#include "api/cli/run_files.h"
#include "api/cli/run_result.h"
#include "api/cli/verbs.h"
#include "api/skill/duration.h"
#include "api/skill/names.h"
#include "base/buf.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARTIFACTS_MAX (256ull << 20)
#define REQUEST_MAX   (40u << 20)

struct run_options {
    struct options given;
    const char *skill;
    struct run_files files;
    cJSON *env;  /* owned; an object, or NULL */
    cJSON *args; /* owned; an array, or NULL */
};

struct run_command {
    bool json;
    bool running; /* the skill's process was started: standard error is its own */
    struct progress progress;
    char progress_text[64];
    char id[128];   /* of the execution once the daemon has said it, else "" */
    char *result;   /* owned; its JSON */
    struct err err; /* of writing its output */
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

    (void)snprintf(run->id, sizeof(run->id), "%s", execution_id);
    if (strcmp(status, "running") == 0)
        begin_output(run);
    else
        (void)snprintf(run->progress_text, sizeof(run->progress_text), "waiting (%s)", status);
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
    int result = skillvm_open_skill(text, ret_fd, &why);

    if (result != -ENOENT || looks_like_path(text))
        return result ? err_set(err, -result, "%s", why.message) : 0;
    const char *at = strchr(text, '@');
    char *name = at ? strndup(text, (size_t)(at - text)) : strdup(text);
    bool ok = name && cJSON_AddStringToObject(request, "skill", name) &&
              (!at || cJSON_AddStringToObject(request, "version", at + 1));
    free(name);
    return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* Builds the request but for the files and the brace at its end. */
static int build_request(struct run_options *options, const struct buf *input, int *ret_fd,
                         struct buf *out, struct err *err)
{
    cJSON *request = cJSON_CreateObject();
    char *text = NULL;
    int result = request ? take_skill(options->skill, request, ret_fd, err) : -ENOMEM;

    if (result < 0)
        goto out;
    result = -ENOMEM;
    if (options->given.timeout &&
        !cJSON_AddStringToObject(request, "timeout", options->given.timeout))
        goto out;
    if (options->given.script &&
        !cJSON_AddStringToObject(request, "script", options->given.script))
        goto out;
    if (options->given.module &&
        !cJSON_AddStringToObject(request, "module", options->given.module))
        goto out;
    if (options->given.fresh && !cJSON_AddTrueToObject(request, "fresh"))
        goto out;
    if (options->env) {
        cJSON_AddItemToObject(request, "env", options->env);
        options->env = NULL;
    }
    if (options->args) {
        cJSON_AddItemToObject(request, "args", options->args);
        options->args = NULL;
    }
    text = cJSON_PrintUnformatted(request);
    if (!text)
        goto out;

    /* The input goes in as it is: no number of it is rounded here. */
    size_t len = strlen(text);
    result = buf_append(out, text, len - 1);
    if (result < 0 || !input->len)
        goto out;
    result = buf_printf(out, "%s\"input\":", len > 2 ? "," : "");
    if (result < 0)
        goto out;
    result = buf_append(out, input->data, input->len);
out:
    free(text);
    cJSON_Delete(request);
    return result == -ENOMEM || result == -E2BIG
               ? err_set(err, -result, "the request is too large for the memory there is")
               : result;
}

static void print_file(void *ctx, const char *path)
{
    (void)ctx;
    fprintf(stderr, "%s\n", path);
}

static int fetch_artifacts(const struct cli *cli, const struct run_result *result,
                           const char *dir, struct err *err)
{
    _cleanup_fd_ int fd = memfd_create("artifacts", MFD_CLOEXEC);
    struct skillvm_error error;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot make an anonymous file");
    if (result->n_files == 0 || !result->execution_id)
        return files_make_dirs(dir, err);
    if (skillvm_download(cli->client, result->execution_id, NULL, fd, ARTIFACTS_MAX, &error))
        return remote_explain(cli, &error, err);
    return files_extract(fd, dir, print_file, NULL, err);
}

/* For people: what the exit status alone would not say. */
static void print_summary(const struct run_options *options, const struct run_result *result)
{
    char shown[NAMES_SHOWN_MAX];
    const char *name = names_show(result->skill_name ? result->skill_name : "the skill", shown);

    for (size_t i = 0; i < result->warnings.len; i++)
        cli_say("%s: warning: %s", name, result->warnings.items[i]);
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

    if (run_result_parse(run->result, strlen(run->result), &result, &err)) {
        cli_say("%s", err.message);
        return CLI_FAILED;
    }
    int status = run_result_exit_status(&result);
    if (!run->json)
        print_summary(options, &result);
    if (options->given.output_dir &&
        fetch_artifacts(cli, &result, options->given.output_dir, &err)) {
        cli_say("%s", err.message);
        status = CLI_FAILED;
    }
    if (run->json && verbs_print_json(run->result) != CLI_OK)
        status = CLI_FAILED;
    run_result_finish(&result);
    return status;
}

static int call_daemon(const struct cli *cli, const struct run_options *options,
                       const char *request, int archive_fd)
{
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

    progress_begin(&run.progress);
    result = skillvm_run(cli->client, request, archive_fd, &events, &run.result, &error);
    progress_end(&run.progress);
    /* Nobody sees how it goes on. */
    if (run.id[0] && (cli_interrupted() || run.err.code))
        (void)skillvm_cancel(cli->client, run.id, NULL);
    if (cli_interrupted()) {
        status = 128 + cli_interrupted();
    } else if (result && run.err.code) {
        status = verbs_failed(&run.err);
    } else if (result < 0) {
        status = remote_failed(cli, &error);
    } else {
        status = finish_run(cli, options, &run);
    }
    skillvm_free(run.result);
    return status;
}

static int end_request(struct run_options *options, struct buf *request)
{
    int result = run_files_put(&options->files, request);

    if (result < 0)
        return result;
    result = buf_append(request, "}", 1);
    if (result < 0)
        return result;
    return buf_cstr(request) ? 0 : -ENOMEM;
}

/* Sends the files and ends the request with them. 0 or -errno with err. */
static int send_files(struct run_options *options, const struct cli *cli, struct buf *request,
                      struct err *err)
{
    int result = run_files_upload(&options->files, cli, err);

    if (result < 0)
        return result;
    result = end_request(options, request);
    return result < 0
               ? err_set(err, -result, "the request is too large for the memory there is")
               : 0;
}

static int run_skill(const struct cli_globals *globals, struct run_options *options)
{
    struct buf input = buf_init(FILES_INPUT_MAX), request = buf_init(REQUEST_MAX);
    struct daemon_use use;
    struct cli cli = {0};
    struct err err = {0};
    int archive_fd = -1;
    int status = CLI_FAILED;

    if (options->given.input && files_read_input(options->given.input, &input, &err))
        goto out;
    if (build_request(options, &input, &archive_fd, &request, &err))
        goto out;
    if (cli_find_daemon(&cli, globals, &err) || remote_open(&cli, &cli.client, &err))
        goto out;
    /* A server is neither started nor stopped. */
    if (!cli.server[0] && daemon_use_begin(&cli, options->given.host, &use, &err))
        goto out;
    if (send_files(options, &cli, &request, &err) == 0)
        status = call_daemon(&cli, options, (const char *)request.data, archive_fd);
    run_files_finish(&options->files, &cli);
    if (!cli.server[0])
        daemon_use_end(&cli, &use);
out:
    skillvm_close(cli.client);
    if (err.code)
        cli_say("%s", err.message);
    if (cli_interrupted())
        status = 128 + cli_interrupted();
    fd_close(&archive_fd);
    buf_finish(&input);
    buf_finish(&request);
    return status;
}

static int add_env(struct run_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    const char *value = equals ? equals + 1 : getenv(text);
    char *name = equals ? strndup(text, (size_t)(equals - text)) : strdup(text);
    int result = -ENOMEM;

    if (!name || !(options->env || (options->env = cJSON_CreateObject())))
        goto out;
    result = -EINVAL;
    if (!*name || !value)
        goto out;
    cJSON_DeleteItemFromObjectCaseSensitive(options->env, name);
    result = cJSON_AddStringToObject(options->env, name, value) ? 0 : -ENOMEM;
out:
    free(name);
    return result;
}

static int add_args(struct run_options *options, char **args, int n)
{
    if (n == 0)
        return 0;
    options->args = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        cJSON *item = cJSON_CreateString(args[i]);
        if (!item || !cJSON_AddItemToArray(options->args, item)) {
            cJSON_Delete(item);
            return -ENOMEM;
        }
    }
    return 0;
}

/* A value of --file or --env. -1: go on; else the exit status. */
static int take_repeated(void *ctx, const char *name, const char *value)
{
    struct run_options *options = ctx;
    struct err err = {0};

    if (strcmp(name, "file") == 0)
        return run_files_add(&options->files, value, &err) < 0 ? verbs_failed(&err) : -1;
    if (add_env(options, value))
        return help_usage_error(
            "run", "--env %s: use NAME=value, or the NAME of a variable that is set", value);
    return -1;
}

/* What getopt cannot know. -1: go on; else the exit status. */
static int check_options(const struct options *given)
{
    uint64_t ms;

    if (given->timeout && (duration_parse(given->timeout, &ms) || ms == 0))
        return help_usage_error("run", "--timeout %s: use an amount such as 30s or 2m",
                                given->timeout);
    if (given->n_args == 0)
        return help_usage_error("run", "name a skill: a folder, an archive, or "
                                       "NAME[@VERSION] of a registered one");
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
    int n = 1;

    /* What follows "--" is the skill's, so getopt never sees it. */
    while (n < argc && strcmp(argv[n], "--") != 0)
        n++;
    char **args = argv + n + 1;
    int n_args = n < argc ? argc - n - 1 : 0;

    int status = options_parse(globals, "run", verbs_find(commands, "run"), n, argv, given);
    if (status < 0)
        status = check_options(given);
    if (status >= 0)
        goto out;
    options.skill = given->args[0];
    if (add_args(&options, args, n_args)) {
        cli_say("out of memory");
        status = CLI_FAILED;
        goto out;
    }
    cli_catch_interrupts();
    status = run_skill(globals, &options);
out:
    run_files_finish(&options.files, NULL);
    cJSON_Delete(options.env);
    cJSON_Delete(options.args);
    return status;
}
