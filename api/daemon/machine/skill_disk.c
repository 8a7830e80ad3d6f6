/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/skill_disk.h"

#include "api/skill/disk.h"
#include "base/clock.h"
#include "base/fd.h"
#include "vmm/control.h"

#include <errno.h>
#include <fcntl.h>

/*
 * A tar from this size on pays: to mount a disk and read of it what a script looks at takes a
 * guest as long as to unpack so much (docs/performance.md).
 */
#define PAYS_FROM (128ull * 1024)

bool skill_disk_pays(const struct job *job)
{
    return job->skill.fd >= 0 && job->skill.len >= PAYS_FROM &&
           job->skill.len <= VMM_DISK_BYTES_MAX - SKILL_DISK_HEAD_MAX;
}

/* The machine is to read it, whatever becomes of that. What is stored was opened so. */
static int open_to_read(int *fd)
{
    const int flags = fcntl(*fd, F_GETFL);
    int r;

    if (flags < 0)
        return -errno;
    if ((flags & O_ACCMODE) == O_RDONLY)
        return 0;
    r = fd_reopen(*fd, O_RDONLY);
    if (r < 0)
        return r;
    fd_close(fd);
    *fd = r;
    return 0;
}

int skill_disk_make(struct job *job, const struct skill_archive *archive,
                    struct archive_spool *spool, struct err *err)
{
    _cleanup_buf_ struct buf head = buf_init(SKILL_DISK_HEAD_MAX);
    int r = skill_disk_put_head(archive, job->skill.len, clock_realtime_ns(), &head);

    if (r < 0)
        return err_set_errno(err, -r, "it does not make a file system");
    r = spool->grow(spool->ctx, head.len, err);
    if (r < 0)
        return r;
    r = fd_write_full(spool->fd, head.data, head.len);
    if (r < 0)
        return err_set_errno(err, -r, "cannot write its head");
    r = open_to_read(&spool->fd);
    if (r < 0)
        return err_set_errno(err, -r, "cannot open its head again");
    r = open_to_read(&job->skill.fd);
    if (r < 0)
        return err_set_errno(err, -r, "cannot open it again");
    job->disk.len = head.len;
    job->disk.fd = fd_steal(&spool->fd);
    return 0;
}

int skill_disk_send(const struct job *job, struct vm *vm, struct err *err)
{
    const int fds[] = {job->disk.fd, job->skill.fd};
    const uint64_t bytes[] = {job->disk.len, job->skill.len};

    return vm_send_disk(vm, fds, bytes, err);
}
