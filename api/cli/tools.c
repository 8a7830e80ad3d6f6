/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm tools`: the skills as a model sees them, and one of them called as a model would. */
#include "api/cli/files.h"
#include "api/cli/remote.h"
#include "api/cli/run_result.h"
#include "api/cli/table.h"
#include "api/cli/verbs.h"
#include "api/json/json_walk.h"
#include "base/buf.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_SHOWN 512u
#define STDOUT_MAX      (16u << 20)

static bool is_required(const cJSON *schema, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(schema, "required")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
            return true;
    }
    return false;
}

/* "command [level]", or "…" where it takes any. */
static const char *show_arguments(const cJSON *schema, struct buf *out)
{
    const cJSON *item;

    buf_clear(out);
    cJSON_ArrayForEach(item, verbs_member(schema, "properties")) {
        (void)buf_printf(out, is_required(schema, item->string) ? "%s%s" : "%s[%s]",
                         out->len ? " " : "", item->string);
    }
    if (!cJSON_IsFalse(verbs_member(schema, "additionalProperties")))
        (void)buf_printf(out, "%s…", out->len ? " " : "");
    return buf_cstr(out);
}

static void print_list(const cJSON *json)
{
    static const char *const header[] = {"TOOL", "ARGUMENTS", "DESCRIPTION"};
    _cleanup_buf_ struct buf arguments = buf_init(ARGUMENTS_SHOWN);
    struct table table = table_begin(header, 3);
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, "tools")) {
        const char *text = verbs_text(item, "description");
        char line[256];

        (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(text ? text : "", "\n"),
                       text ? text : "");
        table_add(&table,
                  (const char *const[]){
                      verbs_text(item, "name"),
                      show_arguments(verbs_member(item, "inputSchema"), &arguments), line});
    }
    (void)table_end(&table, 0);
}

static int tools_list(const struct cli *cli, const struct options *options)
{
    static const struct options as_json = {.json = true};
    const char *format = options->n_args ? options->args[0] : "mcp";
    struct skillvm_error error;
    char *json = NULL;
    int result = skillvm_list_tools(cli->client, format, &json, &error);

    return verbs_print(cli, options->n_args ? &as_json : options, result, &error, json,
                       print_list);
}

static int on_stderr(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    return fd_write_full(STDERR_FILENO, data, len);
}

/* What the model would get: the output, else what was printed. Nothing is rounded on the way.
 */
static int print_answer(const char *json)
{
    struct json_slice result, value;
    _cleanup_buf_ struct buf text = buf_init(STDOUT_MAX);
    int r = json_text_check(json, strlen(json), &result, NULL);

    if (r < 0)
        return r;
    if (json_find(result, "output", &value) && !json_slice_is(value, "null")) {
        (void)buf_append(&text, value.data, value.len);
        (void)buf_append(&text, "\n", 1);
        r = text.error;
    } else if (json_find(result, "stdout", &value)) {
        r = json_append_decoded(&text, value);
    }
    return r < 0 ? r : fd_write_full(STDOUT_FILENO, text.data, text.len);
}

static int finish_call(bool as_json, const char *json)
{
    struct run_result result;
    struct err err = {0};
    int status;

    if (run_result_parse(json, strlen(json), &result, &err))
        return verbs_failed(&err);
    status = run_result_exit_status(&result);
    if (as_json) {
        status = verbs_print_json(json) != CLI_OK ? CLI_FAILED : status;
    } else if (print_answer(json) < 0) {
        cli_say("cannot write to standard output");
        status = CLI_FAILED;
    }
    if (!as_json && result.error)
        cli_say("%s", result.error);
    run_result_finish(&result);
    return status;
}

static int tools_call(const struct cli *cli, const struct options *options)
{
    _cleanup_buf_ struct buf arguments = buf_init(FILES_INPUT_MAX);
    char id[REMOTE_ID_SIZE] = "";
    const struct skillvm_events events = {.on_status = remote_note_id,
                                          .on_stderr = options->json ? NULL : on_stderr,
                                          .should_stop = remote_should_stop,
                                          .ctx = id};
    struct skillvm_error error;
    struct err err = {0};
    char *json = NULL;
    int result, status;

    if (options->n_args == 2 && files_read_input(options->args[1], &arguments, &err))
        return verbs_refused(&err);
    cli_catch_interrupts();
    result =
        skillvm_call_tool(cli->client, options->args[0],
                          arguments.len ? buf_cstr(&arguments) : NULL, &events, &json, &error);
    if (cli_interrupted()) {
        if (id[0])
            (void)skillvm_cancel(cli->client, id, NULL);
        status = 128 + cli_interrupted();
    } else {
        status = result < 0 ? remote_failed(cli, &error) : finish_call(options->json, json);
    }
    skillvm_free(json);
    return status;
}

const struct verb tools_verbs[] = {
    {
        .name = "list",
        .args = "[openai|anthropic|mcp]",
        .summary = "list them, or print their definitions for an API",
        .text = "Lists the skills as tools: what each is called and what it takes, [in "
                "brackets] what may be left out. With the name of an API the definitions are "
                "printed as JSON in its shape.",
        .examples = "tools list\ntools list openai > tools.json\n",
        .options = OPTION_FORMAT,
        .n_more = 1,
        .run = tools_list,
    },
    {
        .name = "call",
        .args = "TOOL [ARGUMENTS]",
        .summary = "run one",
        .text = "Runs a tool as a model would call it. ARGUMENTS is a JSON object ({}); @FILE "
                "reads a file, - standard input. Prints the skill's output, or what it printed "
                "where it has none; -o json the whole result. The exit status is that of "
                "`skillvm run`.",
        .examples = "tools call word-counter '{\"text\": \"to be or not to be\"}'\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .n_more = 1,
        .run = tools_call,
    },
    {.name = NULL},
};
