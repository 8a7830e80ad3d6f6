/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the verbs that speak with the daemon. */
#include "api/cli/skill_verbs.h"

#include "api/cli/client.h"
#include "api/cli/files.h"
#include "api/cli/table.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX   (64u << 20)
#define PATH_TEXT    4096u
#define PUSH_WAIT_MS 300000

static const char *text_of(const cJSON *json, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

/* Prints JSON as it came. */
static int print_body(const struct buf *body)
{
    return fd_write_full(STDOUT_FILENO, body->data, body->len) < 0 ? CLI_FAILED : CLI_OK;
}

static int keep_body(void *ctx, bool is_events, const void *data, size_t len, struct err *err)
{
    int r = buf_append(ctx, data, len);

    (void)is_events;
    return r < 0 ? err_set(err, -r, "the daemon's answer is too large") : 0;
}

static void print_warnings(const cJSON *json)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "warnings"))
    {
        if (cJSON_IsString(item))
            cli_say("warning: %s", item->valuestring);
    }
}

int skill_push(const struct cli *cli, const struct verb_options *options)
{
    struct buf body = buf_init(ANSWER_MAX);
    struct client_call call = {.path = "/v1/skills",
                               .archive_fd = -1,
                               .archive_part = "file",
                               .timeout_ms = PUSH_WAIT_MS,
                               .on_body = keep_body,
                               .ctx = &body};
    struct err err = {0};
    cJSON *json = NULL;
    int status = CLI_OK;
    int r = files_open_skill(options->args[0], &call.archive_fd, &err);

    if (r == 0)
        r = client_call(cli->socket_path, &call, NULL, &err);
    fd_close(&call.archive_fd);
    if (r == 0)
        json = cJSON_ParseWithLength((const char *)body.data, body.len);
    if (r < 0) {
        status = verbs_failed(&err);
    } else if (options->json) {
        status = print_body(&body);
    } else {
        print_warnings(json);
        printf("%s@%s  %.12s\n", text_of(json, "name"), text_of(json, "version"),
               text_of(json, "digest"));
    }
    cJSON_Delete(json);
    buf_finish(&body);
    return status;
}

int skill_list(const struct cli *cli, const struct verb_options *options)
{
    static const char *const header[] = {"NAME", "VERSION", "DIGEST", "CREATED", "DESCRIPTION"};
    struct table table = table_begin(header, 5);
    struct buf body = buf_init(ANSWER_MAX);
    const cJSON *item;
    cJSON *json;
    int status = verbs_get(cli, "/v1/skills", &body);

    if (status == 0 && options->json)
        status = print_body(&body);
    json = status == 0 && !options->json
               ? cJSON_ParseWithLength((const char *)body.data, body.len)
               : NULL;
    cJSON_ArrayForEach(item, json)
    {
        const char *digest = text_of(item, "digest"), *created = text_of(item, "created_at");
        char short_digest[13], day[17];

        (void)snprintf(short_digest, sizeof(short_digest), "%s", digest ? digest : "");
        (void)snprintf(day, sizeof(day), "%s", created ? created : "");
        table_add(&table,
                  (const char *const[]){text_of(item, "name"), text_of(item, "version"),
                                        short_digest, day, text_of(item, "description")});
    }
    if (json)
        (void)table_end(&table, 0);
    else
        buf_finish(&table.cells);
    cJSON_Delete(json);
    buf_finish(&body);
    return status;
}

/* "/v1/skills/NAME/VERSION" of a NAME[@VERSION]. 0 or an exit status. */
static int skill_path(const char *text, bool needs_version, struct buf *path)
{
    const char *at = strchr(text, '@');
    char *name = at ? strndup(text, (size_t)(at - text)) : strdup(text);
    int r = name ? 0 : -ENOMEM;

    if (!at && needs_version) {
        free(name);
        return help_usage_error("skill", "say which version: %s@VERSION, or %s@latest", text,
                                text);
    }
    if (r == 0)
        r = buf_printf(path, "/v1/skills/");
    if (r == 0)
        r = verbs_append_encoded(path, name, false);
    if (r == 0)
        r = buf_printf(path, "/");
    if (r == 0)
        r = verbs_append_encoded(path, at && at[1] ? at + 1 : "latest", false);
    free(name);
    if (r == 0 && buf_cstr(path))
        return 0;
    cli_say("the name is too long");
    return CLI_FAILED;
}

static void print_skill(const cJSON *json)
{
    static const char *const keys[] = {
        "name", "version",       "description", "digest",  "created_at",   "license",
        "lang", "compatibility", "entry_point", "timeout", "allowed_tools"};
    const cJSON *files = cJSON_GetObjectItemCaseSensitive(json, "files"), *item;
    const char *instructions = text_of(json, "instructions");

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (text_of(json, keys[i]))
            printf("%-14s %s\n", keys[i], text_of(json, keys[i]));
    }
    cJSON_ArrayForEach(item, files)
    {
        printf("%-14s %s\n", item == files->child ? "files" : "", text_of(item, "path"));
    }
    if (instructions && *instructions)
        printf("\n%s\n", instructions);
}

int skill_show(const struct cli *cli, const struct verb_options *options)
{
    struct buf path = buf_init(PATH_TEXT);
    struct buf body = buf_init(ANSWER_MAX);
    int status = skill_path(options->args[0], false, &path);

    if (status == 0)
        status = verbs_get(cli, (const char *)path.data, &body);
    if (status == 0 && options->json) {
        status = print_body(&body);
    } else if (status == 0) {
        cJSON *json = cJSON_ParseWithLength((const char *)body.data, body.len);

        print_skill(json);
        cJSON_Delete(json);
    }
    buf_finish(&path);
    buf_finish(&body);
    return status;
}

int skill_rm(const struct cli *cli, const struct verb_options *options)
{
    struct buf path = buf_init(PATH_TEXT);
    struct err err = {0};
    int status = skill_path(options->args[0], true, &path);

    if (status == 0 &&
        client_delete(cli->socket_path, (const char *)path.data, PUSH_WAIT_MS, &err) < 0)
        status = verbs_failed(&err);
    buf_finish(&path);
    return status;
}
