/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input files of `skillvm run --file`: opened before anything is started, sent with the
 * request or uploaded before it when there is a daemon, and forgotten there when the run is
 * over.
 */
#ifndef SKILLVM_API_CLI_RUN_FILES_H
#define SKILLVM_API_CLI_RUN_FILES_H

#include "api/cli/cli.h"
#include "base/err.h"

#include <stddef.h>

struct cJSON;

/* As many as the daemon takes. */
#define RUN_FILES_MAX 10000u

struct run_file {
    int fd;      /* owned; -1: it is opened when it is uploaded */
    char *path;  /* owned; what to open then */
    char *name;  /* owned; what the skill finds it by */
    char id[64]; /* at the daemon, or "" */
};

struct run_files {
    struct run_file *items; /* owned */
    size_t n;
};

/*
 * Opens PATH, or of NAME=PATH the path, for another name than its last part. Of a folder it
 * notes all files in it, which it finds in a folder of that name. 0 or -errno with err.
 */
int run_files_add(struct run_files *files, const char *argument, struct err *err);
/*
 * Puts the content of small ones into the request's "files", and uploads the others and names
 * them there. 0 or -errno with err.
 */
int run_files_send(struct run_files *files, const struct cli *cli, struct cJSON *request,
                   struct err *err);
/* Removes what was uploaded from the daemon (cli NULL: none) as far as it can, and closes them.
 */
void run_files_finish(struct run_files *files, const struct cli *cli);

#endif
