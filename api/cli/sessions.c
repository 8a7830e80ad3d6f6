/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm session`: what executions keep for each other. */
#include "api/cli/files.h"
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/table.h"
#include "api/cli/verbs.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <unistd.h>

static void print_list(const cJSON *json)
{
    static const char *const header[] = {"SESSION", "FILES", "SIZE", "CHANGED"};
    struct table table = table_begin(header, 4);
    time_t now = time(NULL);
    const cJSON *item;

    cJSON_ArrayForEach(item, json) {
        char files[SHOW_SIZE], size[SHOW_SIZE], age[SHOW_SIZE];

        (void)snprintf(files, sizeof(files), "%.0f", verbs_number(item, "files"));
        table_add(&table,
                  (const char *const[]){verbs_text(item, "id"), files,
                                        show_bytes(verbs_number(item, "bytes"), size),
                                        show_age(verbs_text(item, "updated_at"), now, age)});
    }
    (void)table_end(&table, 0);
}

static int session_list(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    char *json = NULL;
    int result = skillvm_list_sessions(cli->client, &json, &error);

    return verbs_print(cli, options, result, &error, json, print_list);
}

static void print_session(const cJSON *json)
{
    const cJSON *item;

    show_field("session", 7, verbs_text(json, "id"));
    show_field("changed", 7, verbs_text(json, "updated_at"));
    show_field("expires", 7, verbs_text(json, "expires_at"));
    cJSON_ArrayForEach(item, verbs_member(json, "files_list")) {
        char size[SHOW_SIZE], line[1200];

        (void)snprintf(line, sizeof(line), "%s (%s)", verbs_text(item, "path"),
                       show_bytes(verbs_number(item, "size_bytes"), size));
        show_field("file", 7, line);
    }
    if (cJSON_IsTrue(verbs_member(json, "truncated")))
        cli_say("it has more files than are listed");
}

static int session_show(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    char *json = NULL;
    int result = skillvm_get_session(cli->client, options->args[0], &json, &error);

    return verbs_print(cli, options, result, &error, json, print_session);
}

static int session_get(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;

    if (skillvm_download_from_session(cli->client, options->args[0], options->args[1],
                                      STDOUT_FILENO, FILES_DOWNLOAD_MAX, &error) < 0)
        return remote_failed(cli, &error);
    return CLI_OK;
}

static int session_remove(const struct cli *cli, const struct options *options)
{
    struct skillvm_error error;
    int r = options->n_args == 2
                ? skillvm_remove_session_file(cli->client, options->args[0], options->args[1],
                                              &error)
                : skillvm_remove_session(cli->client, options->args[0], &error);

    return r < 0 ? remote_failed(cli, &error) : CLI_OK;
}

const struct verb session_verbs[] = {
    {
        .name = "list",
        .args = "[-o json|table]",
        .summary = "list sessions, the one changed last first",
        .text = "Lists the sessions, the one changed last first.",
        .examples = "session list\n",
        .options = OPTION_FORMAT,
        .run = session_list,
    },
    {
        .name = "show",
        .args = "ID [-o json|table]",
        .summary = "show one, and its files",
        .text = "Shows a session and its files. It counts as used.",
        .examples = "session show chat-17\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = session_show,
    },
    {
        .name = "get",
        .args = "ID PATH",
        .summary = "print one of its files",
        .text = "Prints a file of a session to standard output.",
        .examples = "session get chat-17 report.csv > report.csv\n",
        .n_args = 2,
        .run = session_get,
    },
    {
        .name = "rm",
        .args = "ID [PATH]",
        .summary = "remove one, or one of its files",
        .text = "Removes a session with its files, or one file of it. While an execution has "
                "it that is refused.",
        .examples = "session rm chat-17\nsession rm chat-17 report.csv\n",
        .n_args = 1,
        .n_more = 1,
        .run = session_remove,
    },
    {.name = NULL},
};
