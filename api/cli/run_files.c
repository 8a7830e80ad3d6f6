/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/run_files.h"

#include "api/cli/remote.h"
#include "api/cli/verbs.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int run_files_add(struct run_files *files, const char *argument, struct err *err)
{
    const char *equals = strchr(argument, '=');
    const char *path = equals ? equals + 1 : argument;
    struct run_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct run_file *more;
    struct stat st;

    if (file.fd < 0 || fstat(file.fd, &st) < 0)
        return err_set_errno(err, errno, "cannot open the file \"%s\"", path);
    if (S_ISDIR(st.st_mode)) {
        fd_close(&file.fd);
        return err_set(err, EISDIR, "\"%s\" is a folder; --file takes a file", path);
    }
    file.name =
        equals ? strndup(argument, (size_t)(equals - argument)) : strdup(last_part(path));
    more = realloc(files->items, (files->n + 1) * sizeof(*more));
    if (more)
        files->items = more;
    if (!more || !file.name) {
        free(file.name);
        fd_close(&file.fd);
        return err_no_memory(err);
    }
    files->items[files->n++] = file;
    return 0;
}

/* Uploads one and notes what it is called there. 0 or -errno with err. */
static int upload(struct run_file *file, const struct cli *cli, struct err *err)
{
    struct skillvm_error error;
    char *text = NULL;
    cJSON *json;

    if (skillvm_upload(cli->client, file->fd, last_part(file->name), &text, &error) < 0)
        return remote_explain(cli, &error, err);
    json = cJSON_Parse(text);
    skillvm_free(text);
    if (verbs_text(json, "id"))
        (void)snprintf(file->id, sizeof(file->id), "%s", verbs_text(json, "id"));
    cJSON_Delete(json);
    return file->id[0]
               ? 0
               : err_set(err, EPROTO, "the daemon's answer to an upload cannot be read");
}

int run_files_upload(struct run_files *files, const struct cli *cli, cJSON *request,
                     struct err *err)
{
    cJSON *array = files->n > 0 ? cJSON_AddArrayToObject(request, "files") : NULL;

    for (size_t i = 0; i < files->n; i++) {
        struct run_file *file = &files->items[i];
        cJSON *item = cJSON_CreateObject();
        int result = upload(file, cli, err);

        (void)cJSON_AddItemToArray(array, item);
        if (result < 0)
            return result;
        if (!array || !cJSON_AddStringToObject(item, "id", file->id) ||
            !cJSON_AddStringToObject(item, "path", file->name))
            return err_no_memory(err);
    }
    return 0;
}

void run_files_finish(struct run_files *files, const struct cli *cli)
{
    char path[96];

    for (size_t i = 0; i < files->n; i++) {
        if (cli && files->items[i].id[0]) {
            (void)snprintf(path, sizeof(path), "/v1/files/%s", files->items[i].id);
            (void)skillvm_request(cli->client, "DELETE", path, NULL, NULL, NULL);
        }
        fd_close(&files->items[i].fd);
        free(files->items[i].name);
    }
    free(files->items);
    *files = (struct run_files){0};
}
