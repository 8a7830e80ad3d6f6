/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/run_files.h"

#include "api/cli/remote.h"
#include "api/cli/verbs.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What comes with the request; a larger file is uploaded, as are all past the sum, which leaves
 * a request's 17 MiB half to its input. */
#define CONTENT_MAX   49152
#define CONTENTS_MAX  (8u << 20)
#define CHARACTER_MAX 6u /* of JSON: \\u0000 */

/* As deep as the daemon takes it. */
#define DEPTH_MAX 32u

/* Takes over what file owns, on failure too. */
static int append(struct run_files *files, struct run_file file, struct err *err)
{
    struct run_file *more = NULL;

    if (files->n == RUN_FILES_MAX)
        (void)err_set(
            err, EFBIG,
            "there are more than %u input files; put them into an archive and give that",
            RUN_FILES_MAX);
    else if (file.name && (file.path || file.fd >= 0))
        more = reallocarray(files->items, files->n + 1, sizeof(*more));
    if (!more) {
        free(file.path);
        free(file.name);
        fd_close(&file.fd);
        return files->n == RUN_FILES_MAX ? -EFBIG : err_no_memory(err);
    }
    files->items = more;
    files->items[files->n++] = file;
    return 0;
}

static int add_folder(struct run_files *files, const char *path, const char *name,
                      unsigned depth, struct err *err);

/* A link is what it leads to, but no folder: it could lead into itself. */
static int add_member(struct run_files *files, const char *folder, const char *below,
                      const char *member, unsigned depth, struct err *err)
{
    _cleanup_free_ char *path = NULL, *name = NULL;
    struct stat st;

    if (asprintf(&path, "%s/%s", folder, member) < 0 ||
        asprintf(&name, "%s/%s", below, member) < 0)
        return err_no_memory(err);
    if (lstat(path, &st) < 0)
        return err_set_errno(err, errno, "cannot open \"%s\"", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(files, path, name, depth + 1, err);
    if (stat(path, &st) < 0)
        return err_set_errno(err, errno, "cannot open the file \"%s\"", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "\"%s\" is neither a file nor a folder", path);
    return append(
        files, (struct run_file){.fd = -1, .path = steal_ptr(&path), .name = steal_ptr(&name)},
        err);
}

static int add_folder(struct run_files *files, const char *path, const char *name,
                      unsigned depth, struct err *err)
{
    struct dirent **members = NULL;
    int n = depth < DEPTH_MAX ? scandir(path, &members, NULL, alphasort) : -1, r = 0;

    if (depth == DEPTH_MAX)
        return err_set(err, EINVAL, "\"%s\": folders are nested too deep", path);
    if (n < 0)
        return err_set_errno(err, errno, "cannot read the folder \"%s\"", path);
    for (int i = 0; i < n; i++) {
        const char *member = members[i]->d_name;

        if (r == 0 && strcmp(member, ".") != 0 && strcmp(member, "..") != 0)
            r = add_member(files, path, name, member, depth, err);
        free(members[i]);
    }
    free(members);
    return r;
}

/* The last part of a path, which the caller frees; of one such as ".." that of where it leads.
 */
static char *name_of(const char *path)
{
    const char *last = basename(path);
    _cleanup_free_ char *real = NULL;

    if (*last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0)
        return strdup(last);
    real = realpath(path, NULL);
    return real ? strdup(basename(real)) : NULL;
}

int run_files_add(struct run_files *files, const char *argument, struct err *err)
{
    const char *equals = strchr(argument, '=');
    const char *path = equals ? equals + 1 : argument;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *name = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "cannot open the file \"%s\"", path);
    name = equals ? strdup(argument) : name_of(path);
    if (name && equals)
        name[equals - argument] = '\0';
    if (!name)
        return err_no_memory(err);
    if (S_ISDIR(st.st_mode))
        return add_folder(files, path, name, 0, err);
    return append(files, (struct run_file){.fd = fd_steal(&fd), .name = steal_ptr(&name)}, err);
}

static int open_file(struct run_file *file, struct err *err)
{
    if (file->fd < 0)
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    return file->fd < 0 ? err_set_errno(err, errno, "cannot open the file \"%s\"", file->path)
                        : 0;
}

/* Whether its content went into the item: it is small, and there is room for it. */
static bool add_content(const struct run_file *file, cJSON *item, size_t *room)
{
    unsigned char text[CONTENT_MAX / 3 * 4 + 5], data[CONTENT_MAX + 1];
    struct stat st;
    size_t cost;
    ssize_t n;

    if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CONTENT_MAX)
        return false;
    cost = ((size_t)st.st_size + 2) / 3 * 4 + CHARACTER_MAX * strlen(file->name);
    if (cost > *room)
        return false;
    n = fd_pread_full(file->fd, data, sizeof(data), 0);
    if (n < 0 || n > st.st_size)
        return false;
    (void)EVP_EncodeBlock(text, data, (int)n);
    *room -= cost;
    return cJSON_AddStringToObject(item, "name", file->name) &&
           cJSON_AddStringToObject(item, "base64", (const char *)text);
}

/* Uploads one and notes what it is called there. 0 or -errno with err. */
static int upload(struct run_file *file, const struct cli *cli, cJSON *item, struct err *err)
{
    struct skillvm_error error;
    char *text = NULL;
    cJSON *json;

    if (skillvm_upload(cli->client, file->fd, basename(file->name), &text, &error) < 0)
        return remote_explain(cli, &error, err);
    json = cJSON_Parse(text);
    skillvm_free(text);
    if (verbs_text(json, "id"))
        (void)snprintf(file->id, sizeof(file->id), "%s", verbs_text(json, "id"));
    cJSON_Delete(json);
    if (!file->id[0])
        return err_set(err, EPROTO, "the daemon's answer to an upload cannot be read");
    return cJSON_AddStringToObject(item, "id", file->id) &&
                   cJSON_AddStringToObject(item, "path", file->name)
               ? 0
               : err_no_memory(err);
}

int run_files_send(struct run_files *files, const struct cli *cli, cJSON *request,
                   struct err *err)
{
    const cJSON *input = verbs_member(request, "input");
    /* It is text as it was given. */
    bool is_large = input && input->valuestring && strlen(input->valuestring) > CONTENTS_MAX;
    size_t room = is_large ? 0 : CONTENTS_MAX;
    cJSON *array = files->n > 0 ? cJSON_AddArrayToObject(request, "files") : NULL;

    for (size_t i = 0; i < files->n; i++) {
        struct run_file *file = &files->items[i];
        cJSON *item = cJSON_CreateObject();
        int r = open_file(file, err);

        if (!item || !cJSON_AddItemToArray(array, item))
            return err_no_memory(err);
        if (r == 0 && !add_content(file, item, &room))
            r = upload(file, cli, item, err);
        fd_close(&file->fd);
        if (r < 0)
            return r;
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
        free(files->items[i].path);
        free(files->items[i].name);
    }
    free(files->items);
    *files = (struct run_files){0};
}
