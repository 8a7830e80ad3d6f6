/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/objects.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

bool objects_is_digest(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

int objects_draft_open(int tmp_fd, struct objects_draft *ret, struct err *err)
{
    struct objects_draft draft = {.tmp_fd = tmp_fd};
    uint64_t random[2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(err, EIO, "no random bytes for a temporary name");
    (void)snprintf(draft.name, sizeof(draft.name), "draft-%016llx%016llx",
                   (unsigned long long)random[0], (unsigned long long)random[1]);
    draft.fd =
        openat(tmp_fd, draft.name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (draft.fd < 0)
        return err_set_errno(err, errno, "cannot create a temporary file");
    *ret = draft;
    return 0;
}

int objects_draft_publish(struct objects_draft *draft, int dir_fd, const char *name,
                          struct err *err)
{
    if (fsync(draft->fd) < 0)
        return err_set_errno(err, errno, "cannot write %s to disk", name);
    if (renameat(draft->tmp_fd, draft->name, dir_fd, name) < 0)
        return err_set_errno(err, errno, "cannot store %s", name);
    fd_close(&draft->fd);
    /* The name itself must survive a power loss too. */
    if (fsync(dir_fd) < 0)
        return err_set_errno(err, errno, "cannot write the folder of %s to disk", name);
    return 0;
}

void objects_draft_discard(struct objects_draft *draft)
{
    if (draft->fd < 0)
        return;
    fd_close(&draft->fd);
    (void)unlinkat(draft->tmp_fd, draft->name, 0);
}

int objects_put(int objects_fd, struct objects_draft *draft, const char *digest, bool *ret_new,
                struct err *err)
{
    int r;

    *ret_new = false;
    if (!objects_is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    if (faccessat(objects_fd, digest, F_OK, 0) == 0) {
        objects_draft_discard(draft);
        return 0;
    }
    r = objects_draft_publish(draft, objects_fd, digest, err);
    *ret_new = r == 0;
    return r;
}

static int copy_to_draft(int fd, struct objects_draft *draft, struct err *err)
{
    char block[64 * 1024];
    uint64_t at = 0;
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = fd_pread_full(fd, block, sizeof(block), at)) != 0) {
        r = n < 0 ? (int)n : fd_pwrite_full(draft->fd, block, (size_t)n, at);
        at += r == 0 ? (uint64_t)n : 0;
    }
    return r < 0 ? err_set_errno(err, -r, "cannot copy an object") : 0;
}

int objects_put_fd(int objects_fd, int tmp_fd, int fd, const char *digest, bool *ret_new,
                   struct err *err)
{
    struct objects_draft draft;
    char path[32];
    int r;

    *ret_new = false;
    if (!objects_is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    if (faccessat(objects_fd, digest, F_OK, 0) == 0)
        return 0;
    if (fsync(fd) < 0)
        return err_set_errno(err, errno, "cannot write an object to disk");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, objects_fd, digest, AT_SYMLINK_FOLLOW) == 0) {
        *ret_new = true;
        return fsync(objects_fd) < 0
                   ? err_set_errno(err, errno, "cannot write the folder of objects to disk")
                   : 0;
    }
    r = objects_draft_open(tmp_fd, &draft, err);
    if (r < 0)
        return r;
    r = copy_to_draft(fd, &draft, err);
    if (r == 0)
        r = objects_put(objects_fd, &draft, digest, ret_new, err);
    objects_draft_discard(&draft);
    return r;
}

void objects_remove(int objects_fd, const char *digest)
{
    if (objects_is_digest(digest))
        (void)unlinkat(objects_fd, digest, 0);
}

int objects_open(int objects_fd, const char *digest, struct err *err)
{
    int fd;

    if (!objects_is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    fd = openat(objects_fd, digest, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open object %s", digest);
    return fd;
}
