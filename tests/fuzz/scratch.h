/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a target that has to do with files: in memory where there is /dev/shm, made at
 * the first use, gone at the end.
 */
#ifndef SKILLVM_TESTS_FUZZ_SCRATCH_H
#define SKILLVM_TESTS_FUZZ_SCRATCH_H

#include "base/fd.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch_path[40];

static inline int scratch_remove_one(const char *path, const struct stat *st, int kind,
                                     struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void scratch_remove(void)
{
    (void)nftw(scratch_path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *scratch_folder(void)
{
    if (scratch_path[0])
        return scratch_path;
    (void)snprintf(scratch_path, sizeof(scratch_path), "%s/skillvm-fuzz-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(scratch_path) || atexit(scratch_remove) != 0)
        abort();
    return scratch_path;
}

static inline void scratch_put(const char *name, const void *data, size_t len)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", scratch_folder(), name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || fd_write_full(fd, data, len) < 0)
        abort();
}

#endif
