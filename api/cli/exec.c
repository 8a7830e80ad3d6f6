/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm exec`: executions that were, or that run. */
#include "api/cli/files.h"
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/table.h"
#include "api/cli/verbs.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_list(const cJSON *json)
{
    static const char *const header[] = {"EXECUTION", "STATUS", "AGE", "TOOK", "SKILL"};
    struct table table = table_begin(header, 5);
    time_t now = time(NULL);
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, "executions")) {
        char age[SHOW_SIZE], took[SHOW_SIZE], skill[VERBS_SKILL_SIZE];

        table_add(&table, (const char *const[]){
                              verbs_text(item, "execution_id"), verbs_text(item, "status"),
                              show_age(verbs_text(item, "created_at"), now, age),
                              show_ms(verbs_number(item, "duration_ms"), took),
                              verbs_skill(verbs_member(item, "skill"), skill)});
    }
    (void)table_end(&table, 0);
    if (verbs_text(json, "next_cursor"))
        cli_say("there are more: --cursor %s", verbs_text(json, "next_cursor"));
}

static int exec_list(const struct cli *cli, const struct options *options)
{
    struct skillvm_filter filter = {
        .skill = options->skill, .status = options->status, .cursor = options->cursor};
    struct skillvm_error error;
    char *json = NULL, *end;
    unsigned long limit = options->limit ? strtoul(options->limit, &end, 10) : 0;
    int result;

    if (options->limit && (*end || limit == 0 || limit > 200))
        return help_usage_error("exec", "--limit is 1 to 200, not \"%s\"", options->limit);
    filter.limit = (unsigned)limit;
    result = skillvm_list_executions(cli->client, &filter, &json, &error);
    return verbs_print(cli, options, result, &error, json, print_list);
}

static void print_execution(const cJSON *json)
{
    const cJSON *item;
    const cJSON *usage = verbs_member(json, "usage");
    char *output = cJSON_Print(verbs_member(json, "output"));

    char skill[VERBS_SKILL_SIZE], took[SHOW_SIZE], used[SHOW_SIZE], line[128];

    (void)snprintf(line, sizeof(line), "%s, %s of the processor's",
                   show_ms(verbs_number(json, "duration_ms"), took),
                   show_ms(verbs_number(usage, "cpu_ms"), used));
    show_field("execution", 9, verbs_text(json, "execution_id"));
    show_field("skill", 9, verbs_skill(verbs_member(json, "skill"), skill));
    show_field("status", 9, verbs_text(json, "status"));
    if (verbs_text(json, "error"))
        show_field("error", 9, verbs_text(json, "error"));
    show_field("duration", 9, line);
    cJSON_ArrayForEach(item, verbs_member(json, "files_list")) {
        show_field("file", 9, cJSON_GetStringValue(item));
    }
    cJSON_ArrayForEach(item, verbs_member(json, "warnings")) {
        show_field("warning", 9, cJSON_GetStringValue(item));
    }
    if (output)
        show_field("output", 9, output);
    free(output);
}

static int exec_show(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    char *json = NULL;
    int result = skillvm_get_execution(cli->client, options->args[0], &json, &error);

    return verbs_print(cli, options, result, &error, json, print_execution);
}

static int print_stdout(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    return fd_write_full(STDOUT_FILENO, data, len);
}

static int print_stderr(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    return fd_write_full(STDERR_FILENO, data, len);
}

static int exec_logs(const struct cli *cli, const struct options *options)
{
    static const struct skillvm_events events = {.on_stdout = print_stdout,
                                                 .on_stderr = print_stderr};
    struct skillvm_error error;
    char *text = NULL;
    size_t len = 0;
    int result = options->follow
                     ? skillvm_follow(cli->client, options->args[0], &events, NULL, &error)
                     : skillvm_get_logs(cli->client, options->args[0], &text, &len, &error);

    if (result < 0)
        return remote_failed(cli, &error);
    result = fd_write_full(STDOUT_FILENO, text, len);
    skillvm_free(text);
    return result < 0 ? CLI_FAILED : CLI_OK;
}

static int exec_cancel(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;

    if (skillvm_cancel(cli->client, options->args[0], &error) < 0)
        return remote_failed(cli, &error);
    return CLI_OK;
}

static void print_file(void *ctx, const char *path)
{
    cJSON *array = ctx;

    if (array)
        cJSON_AddItemToArray(array, cJSON_CreateString(path));
    else
        puts(path);
}

/* Gets all files and puts them below the folder; says their paths as print_file does. */
static int extract_files(const struct cli *cli, const char *id, const char *dir, cJSON *array)
{
    struct err err = {0};

    if (files_fetch(cli, id, dir, print_file, array, &err) < 0)
        return verbs_failed(&err);
    return CLI_OK;
}

static int list_files(const struct cli *cli, const char *id, cJSON *array)
{
    struct skillvm_error error;
    char *text = NULL;
    const cJSON *item;
    cJSON *json;

    if (skillvm_get_execution(cli->client, id, &text, &error) < 0)
        return remote_failed(cli, &error);
    json = cJSON_Parse(text);
    skillvm_free(text);
    cJSON_ArrayForEach(item, verbs_member(json, "files_list")) {
        if (cJSON_IsString(item))
            print_file(array, item->valuestring);
    }
    cJSON_Delete(json);
    return CLI_OK;
}

static int exec_files(const struct cli *cli, const struct options *options)
{
    const char *id = options->args[0];
    struct skillvm_error error;
    cJSON *array;
    int status;

    if (options->output_dir && options->n_args == 2)
        return help_usage_error("exec", "name a file or a folder for all of them, not both");
    if (options->n_args == 2) {
        if (skillvm_download(cli->client, id, options->args[1], STDOUT_FILENO,
                             FILES_DOWNLOAD_MAX, &error) < 0)
            return remote_failed(cli, &error);
        return CLI_OK;
    }
    array = options->json ? cJSON_CreateArray() : NULL;
    status = options->output_dir ? extract_files(cli, id, options->output_dir, array)
                                 : list_files(cli, id, array);
    if (status == CLI_OK && options->json)
        return verbs_print_tree(array);
    cJSON_Delete(array);
    return status;
}

const struct verb exec_verbs[] = {
    {
        .name = "list",
        .args = "[options]",
        .summary = "list executions, the newest first",
        .text = "Lists executions, the newest first.",
        .examples = "exec list --status failed -n 10\n",
        .options = OPTION_FORMAT | OPTION_FILTER,
        .run = exec_list,
    },
    {
        .name = "show",
        .args = "ID",
        .summary = "show a result",
        .text = "Shows an execution's result, or how far it is.",
        .examples = "exec show exec_0123456789abcdef0123456789abcdef -o json\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = exec_show,
    },
    {
        .name = "logs",
        .args = "ID [-f]",
        .summary = "print what it printed; -f follows",
        .text = "Prints what the skill printed so far, both streams as they came. With -f each "
                "stream goes to its own, and what comes is waited for until the end.",
        .examples = "exec logs -f exec_0123456789abcdef0123456789abcdef\n",
        .options = OPTION_FOLLOW,
        .n_args = 1,
        .run = exec_logs,
    },
    {
        .name = "cancel",
        .args = "ID",
        .summary = "end it",
        .text = "Ends an execution that waits or runs.",
        .examples = "exec cancel exec_0123456789abcdef0123456789abcdef\n",
        .n_args = 1,
        .run = exec_cancel,
    },
    {
        .name = "files",
        .args = "ID [PATH]",
        .summary = "list its files, print one, or extract all",
        .text = "Lists the files that an execution left; with PATH prints that one to standard "
                "output, with -d puts all of them below DIR.",
        .examples =
            "exec files exec_0123456789abcdef0123456789abcdef report.csv > report.csv\n",
        .options = OPTION_DIR | OPTION_FORMAT,
        .n_args = 1,
        .n_more = 1,
        .run = exec_files,
    },
    {.name = NULL},
};
