/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm exec`: executions that were, or that run. */
#include "api/cli/client.h"
#include "api/cli/files.h"
#include "api/cli/sse.h"
#include "api/cli/table.h"
#include "api/cli/verbs.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ANSWER_MAX   (128u << 20)
#define PATH_TEXT    8192u
#define FILES_MAX    (256ull << 20)
#define EVENT_MAX    (128u << 20)
#define CALL_WAIT_MS 60000

static const char *text_of(const cJSON *json, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

static int print_body(const struct buf *body)
{
    return fd_write_full(STDOUT_FILENO, body->data, body->len) < 0 ? CLI_FAILED : CLI_OK;
}

/* "/v1/executions/ID" and what follows it. False without memory. */
static bool exec_path(struct buf *path, const char *id, const char *rest, const char *file)
{
    int r = buf_printf(path, "/v1/executions/");

    if (r == 0)
        r = verbs_append_encoded(path, id, false);
    if (r == 0)
        r = buf_printf(path, "%s", rest);
    if (r == 0 && file)
        r = verbs_append_encoded(path, file, true);
    return r == 0 && buf_cstr(path);
}

/* GET of what belongs to the first argument. 0 or an exit status. */
static int get(const struct cli *cli, const struct verb_options *options, const char *rest,
               struct buf *body)
{
    struct buf path = buf_init(PATH_TEXT);
    int status = CLI_FAILED;

    if (exec_path(&path, options->args[0], rest, NULL))
        status = verbs_get(cli, (const char *)path.data, body);
    buf_finish(&path);
    return status;
}

static void print_list(const cJSON *json)
{
    static const char *const header[] = {"EXECUTION", "STATUS", "CREATED", "MS", "SKILL"};
    struct table table = table_begin(header, 5);
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "executions"))
    {
        const cJSON *skill = cJSON_GetObjectItemCaseSensitive(item, "skill");
        const char *created = text_of(item, "created_at");
        const char *name = text_of(skill, "name"), *version = text_of(skill, "version");
        char time[20], ms[32], full[512];

        (void)snprintf(time, sizeof(time), "%s", created ? created : "");
        (void)snprintf(
            ms, sizeof(ms), "%.0f",
            cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, "duration_ms")));
        (void)snprintf(full, sizeof(full), "%s@%s", name ? name : "", version ? version : "");
        table_add(&table, (const char *const[]){text_of(item, "execution_id"),
                                                text_of(item, "status"), time, ms, full});
    }
    (void)table_end(&table, 0);
    if (text_of(json, "next_cursor"))
        cli_say("there are more; --limit (up to 200), --skill and --status choose");
}

static int add_filter(struct buf *path, char *separator, const char *key, const char *value)
{
    int r;

    if (!value)
        return 0;
    r = buf_printf(path, "%c%s=", *separator, key);
    *separator = '&';
    return r < 0 ? r : verbs_append_encoded(path, value, false);
}

static int exec_list(const struct cli *cli, const struct verb_options *options)
{
    struct buf path = buf_init(PATH_TEXT);
    struct buf body = buf_init(ANSWER_MAX);
    char separator = '?';
    int status = CLI_FAILED;
    int r = buf_printf(&path, "/v1/executions");

    if (r == 0)
        r = add_filter(&path, &separator, "limit", options->limit);
    if (r == 0)
        r = add_filter(&path, &separator, "skill", options->skill);
    if (r == 0)
        r = add_filter(&path, &separator, "status", options->status);
    if (r == 0 && buf_cstr(&path))
        status = verbs_get(cli, (const char *)path.data, &body);
    else
        cli_say("the filters are too long");
    if (status == 0 && options->json) {
        status = print_body(&body);
    } else if (status == 0) {
        cJSON *json = cJSON_ParseWithLength((const char *)body.data, body.len);

        print_list(json);
        cJSON_Delete(json);
    }
    buf_finish(&path);
    buf_finish(&body);
    return status;
}

static void print_execution(const cJSON *json)
{
    const cJSON *skill = cJSON_GetObjectItemCaseSensitive(json, "skill"), *item;
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(json, "usage");
    char *output = cJSON_Print(cJSON_GetObjectItemCaseSensitive(json, "output"));

    printf("execution  %s\n", text_of(json, "execution_id"));
    printf("skill      %s@%s\n", text_of(skill, "name"), text_of(skill, "version"));
    printf("status     %s\n", text_of(json, "status"));
    if (text_of(json, "error"))
        printf("error      %s\n", text_of(json, "error"));
    printf("duration   %.0f ms, %.0f ms of them on the processor\n",
           cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "duration_ms")),
           cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(usage, "cpu_ms")));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "files_list"))
    {
        printf("file       %s\n", cJSON_GetStringValue(item));
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "warnings"))
    {
        printf("warning    %s\n", cJSON_GetStringValue(item));
    }
    if (output)
        printf("output     %s\n", output);
    free(output);
}

static int exec_show(const struct cli *cli, const struct verb_options *options)
{
    struct buf body = buf_init(ANSWER_MAX);
    int status = get(cli, options, "", &body);

    if (status == 0 && options->json) {
        status = print_body(&body);
    } else if (status == 0) {
        cJSON *json = cJSON_ParseWithLength((const char *)body.data, body.len);

        print_execution(json);
        cJSON_Delete(json);
    }
    buf_finish(&body);
    return status;
}

/* What is followed of a stream of events. */
struct follow {
    struct sse sse;
    struct buf text;
};

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *err)
{
    struct follow *f = ctx;
    int fd = strcmp(name, "stdout") == 0   ? STDOUT_FILENO
             : strcmp(name, "stderr") == 0 ? STDERR_FILENO
                                           : -1;

    if (fd < 0)
        return 0;
    buf_clear(&f->text);
    if (sse_decode_data(data, len, &f->text) < 0)
        return err_set(err, EPROTO, "the daemon sent an event that cannot be read");
    return fd_write_full(fd, f->text.data, f->text.len) < 0
               ? err_set(err, EIO, "cannot write the log")
               : 0;
}

static int on_stream(void *ctx, bool is_events, const void *data, size_t len, struct err *err)
{
    struct follow *f = ctx;

    (void)is_events;
    return sse_push(&f->sse, data, len, err);
}

static int follow_log(const struct cli *cli, const char *id)
{
    struct follow f = {.text = buf_init(EVENT_MAX)};
    struct buf path = buf_init(PATH_TEXT);
    struct client_call call = {.archive_fd = -1, .on_body = on_stream, .ctx = &f};
    struct err err = {0};
    int status = CLI_OK;

    sse_init(&f.sse, EVENT_MAX, on_event, &f);
    if (!exec_path(&path, id, "/events", NULL)) {
        status = CLI_FAILED;
    } else {
        call.path = (const char *)path.data;
        if (client_call(cli->socket_path, &call, NULL, &err) < 0)
            status = verbs_failed(&err);
    }
    sse_finish(&f.sse);
    buf_finish(&f.text);
    buf_finish(&path);
    return status;
}

static int exec_logs(const struct cli *cli, const struct verb_options *options)
{
    struct buf body = buf_init(ANSWER_MAX);
    int status;

    if (options->follow)
        return follow_log(cli, options->args[0]);
    status = get(cli, options, "/logs", &body);
    if (status == 0)
        status = print_body(&body);
    buf_finish(&body);
    return status;
}

static int exec_cancel(const struct cli *cli, const struct verb_options *options)
{
    struct buf path = buf_init(PATH_TEXT);
    struct err err = {0};
    int status = CLI_FAILED;

    if (exec_path(&path, options->args[0], "", NULL))
        status =
            client_delete(cli->socket_path, (const char *)path.data, CALL_WAIT_MS, &err) < 0
                ? verbs_failed(&err)
                : CLI_OK;
    buf_finish(&path);
    return status;
}

static void print_file(void *ctx, const char *path)
{
    (void)ctx;
    printf("%s\n", path);
}

/* Gets all files and puts them below the folder. */
static int extract_files(const struct cli *cli, const char *id, const char *dir)
{
    _cleanup_fd_ int fd = memfd_create("artifacts", MFD_CLOEXEC);
    struct buf path = buf_init(PATH_TEXT);
    struct err err = {0};
    int r = fd < 0 ? err_set_errno(&err, errno, "cannot make an anonymous file") : 0;

    if (r == 0 && !exec_path(&path, id, "/files", NULL))
        r = err_set(&err, ENOMEM, "out of memory");
    if (r == 0)
        r = client_download(cli->socket_path, (const char *)path.data, fd, FILES_MAX, &err);
    if (r == 0)
        r = files_extract(fd, dir, print_file, NULL, &err);
    buf_finish(&path);
    return r < 0 ? verbs_failed(&err) : CLI_OK;
}

static int list_files(const struct cli *cli, const struct verb_options *options)
{
    struct buf body = buf_init(ANSWER_MAX);
    int status = get(cli, options, "", &body);
    cJSON *json = status == 0 ? cJSON_ParseWithLength((const char *)body.data, body.len) : NULL;
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "files_list"))
    {
        print_file(NULL, cJSON_GetStringValue(item));
    }
    cJSON_Delete(json);
    buf_finish(&body);
    return status;
}

static int exec_files(const struct cli *cli, const struct verb_options *options)
{
    struct buf path = buf_init(PATH_TEXT);
    struct err err = {0};
    int status = CLI_OK;

    if (options->output_dir && options->n_args == 2)
        return help_usage_error("exec", "name a file or a folder for all of them, not both");
    if (options->output_dir)
        return extract_files(cli, options->args[0], options->output_dir);
    if (options->n_args == 1)
        return list_files(cli, options);
    if (!exec_path(&path, options->args[0], "/files/", options->args[1]))
        status = CLI_FAILED;
    else if (client_download(cli->socket_path, (const char *)path.data, STDOUT_FILENO,
                             FILES_MAX, &err) < 0)
        status = verbs_failed(&err);
    buf_finish(&path);
    return status;
}

static const struct verb verbs[] = {
    {"list",
     "usage: skillvm exec list [--skill NAME] [--status WORD] [-n LIMIT] [-o json|table]\n"
     "\n"
     "Lists executions, the newest first. WORD is accepted, running, success, failed, timeout "
     "or\n"
     "cancelled; LIMIT is at most 200 (50).\n"
     "\n"
     "example:\n"
     "  skillvm exec list --status failed -n 10\n",
     VERB_FORMAT | VERB_FILTER, 0, 0, exec_list},
    {"show",
     "usage: skillvm exec show ID [-o json|table]\n"
     "\n"
     "Shows an execution's result, or how far it is.\n"
     "\n"
     "example:\n"
     "  skillvm exec show exec_0123456789abcdef0123456789abcdef -o json\n",
     VERB_FORMAT, 1, 1, exec_show},
    {"logs",
     "usage: skillvm exec logs ID [-f]\n"
     "\n"
     "Prints what the skill printed so far, both streams as they came. With -f each stream "
     "goes "
     "to\n"
     "its own, and what comes is waited for until the end.\n"
     "\n"
     "example:\n"
     "  skillvm exec logs -f exec_0123456789abcdef0123456789abcdef\n",
     VERB_FOLLOW, 1, 1, exec_logs},
    {"cancel",
     "usage: skillvm exec cancel ID\n"
     "\n"
     "Ends an execution that waits or runs.\n"
     "\n"
     "example:\n"
     "  skillvm exec cancel exec_0123456789abcdef0123456789abcdef\n",
     0, 1, 1, exec_cancel},
    {"files",
     "usage: skillvm exec files ID [PATH | -d DIR]\n"
     "\n"
     "Lists the files an execution left; with PATH prints that one to standard output, with "
     "-d\n"
     "(--output-dir) puts all of them below DIR.\n"
     "\n"
     "example:\n"
     "  skillvm exec files exec_0123456789abcdef0123456789abcdef report.csv > report.csv\n",
     VERB_DIR, 1, 2, exec_files},
    {.name = NULL},
};

int cmd_exec(struct cli_globals *globals, int argc, char **argv)
{
    return verbs_main(globals, "exec", verbs, argc, argv);
}
