/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/drain.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MARK "draining"

static void set(struct daemon *d, bool is_draining)
{
    if (engine_is_draining(d->engine) == is_draining)
        return;
    engine_set_draining(d->engine, is_draining);
    cluster_set_draining(d->cluster, is_draining);
    log_info("skillvmd", "draining=%s", is_draining ? "yes" : "no");
}

void drain_restore(struct daemon *d)
{
    if (d->cluster && faccessat(d->dir_fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        set(d, true);
}

static int keep(const struct daemon *d, bool is_draining)
{
    _cleanup_fd_ int fd = -1;

    if (is_draining) {
        fd = openat(d->dir_fd, MARK, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -errno;
    } else if (unlinkat(d->dir_fd, MARK, 0) < 0 && errno != ENOENT) {
        return -errno;
    }
    return fsync(d->dir_fd) < 0 ? -errno : 0;
}

int drain_wish(struct daemon *d, enum node_wish wish, struct node_drain *ret, struct err *err)
{
    int r = wish == NODE_WISH_LOOK ? 0 : keep(d, wish == NODE_WISH_DRAIN);
    unsigned waiting, running;

    if (r < 0)
        return err_set_errno(err, -r, "cannot keep in the data folder that it is drained");
    if (wish != NODE_WISH_LOOK)
        set(d, wish == NODE_WISH_DRAIN);
    engine_count(d->engine, &waiting, &running);
    *ret = (struct node_drain){
        .is_draining = engine_is_draining(d->engine), .running = running, .waiting = waiting};
    return 0;
}
