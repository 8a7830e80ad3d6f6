/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/left.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct left left_init(void)
{
    return (struct left){.fd = -1};
}

static int begin(struct left *left, const struct store *store,
                 const struct artifacts_limits *limits, struct err *err)
{
    int spool_fd;

    left->fd = store_temporary(store);
    if (left->fd < 0)
        return err_set_errno(err, -left->fd, "cannot create a temporary file");
    spool_fd = store_temporary(store);
    if (spool_fd < 0)
        return err_set_errno(err, -spool_fd, "cannot create a temporary file");
    left->artifacts = artifacts_create(left->fd, spool_fd, limits, err);
    return left->artifacts ? 0 : -ENOMEM;
}

int left_push(struct left *left, const struct store *store,
              const struct artifacts_limits *limits, const void *data, size_t len,
              struct err *err)
{
    int r = left->artifacts ? 0 : begin(left, store, limits, err);

    return r < 0 ? r : artifacts_push(left->artifacts, data, len, err);
}

int left_complete(struct left *left, struct err *err)
{
    struct stat st;
    int r = artifacts_end(left->artifacts, err);

    if (r < 0)
        return r;
    /* Before the store lock is taken: under it, where it is due, it then takes no time. */
    if (fsync(left->fd) < 0 || fstat(left->fd, &st) < 0)
        return err_set_errno(err, errno, "cannot write the files to disk");
    r = sha256_of_fd(left->fd, left->digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the files back");
    left->bytes = (uint64_t)st.st_size;
    return 0;
}

void left_finish(struct left *left)
{
    artifacts_destroy(left->artifacts);
    fd_close(&left->fd);
    *left = left_init();
}
