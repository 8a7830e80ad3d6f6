/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files and the files of directories given on the command line, without
 * a fuzzing engine. Arguments that begin with '-' are libFuzzer's and are ignored. Fails when
 * no file was replayed, so an empty corpus cannot pass for a test.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define INPUT_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dir, const char *name)
{
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    struct buf content = buf_init(INPUT_MAX);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    if (buf_reserve(&content, (size_t)st.st_size + 1) < 0)
        return -1;
    n = fd_read_full(fd, content.data, (size_t)st.st_size);
    if (n >= 0)
        (void)LLVMFuzzerTestOneInput(content.data, (size_t)n);
    buf_finish(&content);
    return n < 0 ? -1 : 0;
}

static int replay_path(const char *path, unsigned *count)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = replay_file(AT_FDCWD, path);
        *count += r == 0;
        return r;
    }
    while (r == 0 && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        r = replay_file(dirfd(dir), entry->d_name);
        *count += r == 0;
    }
    closedir(dir);
    return r;
}

int main(int argc, char **argv)
{
    unsigned count = 0;

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        if (replay_path(argv[i], &count) < 0) {
            fprintf(stderr, "cannot replay %s\n", argv[i]);
            return 1;
        }
    }
    if (count == 0) {
        fprintf(stderr, "no corpus file was replayed\n");
        return 1;
    }
    printf("%u inputs replayed\n", count);
    return 0;
}
