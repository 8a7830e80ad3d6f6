/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For skill_imports.py: reads paths of Python sources, one a line, and prints what imports_scan
 * finds in each: "file PATH", then "LEVEL MODULE NAME" lines ("-" for none) or "refused".
 * "as main " before a path: the file is run itself.
 */
#include "api/skill/imports_scan.h"
#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (8u << 20)

static int print(void *user, const struct imports_found *found)
{
    (void)user;
    if (found->kind == IMPORTS_MODULE && found->runs)
        (void)printf("%u %s %s\n", found->level, found->module[0] ? found->module : "-",
                     found->name ? found->name : "-");
    return 0;
}

static int show(const char *path, bool is_main)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = malloc(FILE_MAX);
    ssize_t len = fd < 0 || !text ? -1 : fd_read_full(fd, text, FILE_MAX);

    if (len >= 0) {
        (void)printf("file %s\n", path);
        if (imports_scan(text, (size_t)len, is_main, print, NULL) < 0)
            (void)printf("refused\n");
    }
    free(text);
    return len < 0 ? -1 : 0;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    int r = 0;

    while (r == 0 && (len = getline(&line, &room, stdin)) > 0) {
        bool is_main = strncmp(line, "as main ", 8) == 0;

        line[len - 1] = '\0';
        r = show(line + (is_main ? 8 : 0), is_main);
    }
    free(line);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
