/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar reader over a scratch directory below another: nothing may appear beside it. The first
 * byte says in what pieces the rest arrives.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest-init/tar_read.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    return ftw->level == 0 ? 0 : remove(path);
}

static unsigned count_entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned count = 0;

    if (!dir)
        abort();
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *outer = scratch_folder();
    char inner[80];
    struct tar_read t;
    size_t step;
    int fd, r = 0;

    if (size < 1)
        return 0;
    step = data[0] + 1u;
    (void)snprintf(inner, sizeof(inner), "%s/root", outer);
    if (mkdir(inner, 0755) < 0)
        abort();
    fd = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tar_read_init(&t, fd, 1u << 16, 64);
    for (size_t at = 1; r == 0 && at < size; at += step)
        r = tar_read_feed(&t, data + at, step < size - at ? step : size - at, NULL);
    (void)tar_read_end(&t, NULL);
    tar_read_finish(&t);
    fd_close(&fd);
    if (count_entries(outer) != 3)
        abort();
    if (nftw(inner, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 || rmdir(inner) < 0)
        abort();
    return 0;
}
