/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fresh temporary directory for a test, and small helpers on files in it.
 */
#ifndef SKILLVM_TESTS_UNIT_GUEST_TREE_H
#define SKILLVM_TESTS_UNIT_GUEST_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

struct tree {
    char path[64];
    int fd;
};

static inline void tree_make(struct tree *t)
{
    (void)snprintf(t->path, sizeof(t->path), "/tmp/skillvm-guest-XXXXXX");
    assert_non_null(mkdtemp(t->path));
    t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->fd >= 0);
}

static inline int tree_remove_one(const char *path, const struct stat *st, int kind,
                                  struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void tree_remove(struct tree *t)
{
    fd_close(&t->fd);
    assert_int_equal(nftw(t->path, tree_remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void tree_write(struct tree *t, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

/* The content of a file; "-" when it cannot be opened. Valid until the next call. */
static inline const char *tree_read(struct tree *t, const char *path)
{
    static char text[8192];
    _cleanup_fd_ int fd = openat(t->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return "-";
    n = fd_read_full(fd, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = 0;
    return text;
}

#endif
