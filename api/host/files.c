/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock, disk, token, status and log of one software host. It must never touch the disk's
 * content, and never write anything while another process holds the lock.
 */
#include "api/host/files.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DISK_BYTES_FIRST (UINT64_C(256) << 20) /* what a disk grows to by its first start */
#define DISK_BYTES_MORE  (UINT64_C(64) << 20)  /* what any start may add */
#define DISK_BYTES_FULL  (UINT64_C(1) << 20)   /* with less a disk counts as full */
#define STAT_BLOCK       512u

int files_path(const char *data_dir, const char *name, char *out, struct err *err)
{
    if (strlen(data_dir) + sizeof("/softhost/") + strlen(name) > FILES_PATH_MAX)
        return err_set(err, ENAMETOOLONG, "the path of the data directory is too long");
    snprintf(out, FILES_PATH_MAX, "%s/softhost/%s", data_dir, name);
    return 0;
}

int files_open(const char *data_dir, const char *name, int flags, char *path, struct err *err)
{
    int fd, r = files_path(data_dir, name, path, err);

    if (r < 0)
        return r;
    fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? err_set_errno(err, errno, "cannot open %s", path) : fd;
}

int files_make_dir(const char *data_dir, struct err *err)
{
    char path[FILES_PATH_MAX];
    int r = files_path(data_dir, "", path, err);

    if (r < 0)
        return r;
    r = fd_make_folders(path, 0700, 0700);
    return r < 0 ? err_set_errno(err, -r, "cannot make %s", path) : 0;
}

/*
 * A POSIX record lock: it names its holder, is not inherited by QEMU, and goes when the process
 * closes any descriptor of the file, so a supervisor opens it only once.
 */
static struct flock files_whole(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

int files_lock(const char *data_dir, int *ret_fd, struct err *err)
{
    char path[FILES_PATH_MAX];
    struct flock lock = files_whole(F_WRLCK);
    _cleanup_fd_ int fd = files_open(data_dir, "lock", O_RDWR | O_CREAT, path, err);

    if (fd < 0)
        return fd;
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return err_set(err, EALREADY, "a software host already runs on %s", data_dir);
        return err_set_errno(err, errno, "cannot lock %s", path);
    }
    *ret_fd = fd_steal(&fd);
    return 0;
}

pid_t files_lock_holder(const char *data_dir)
{
    char path[FILES_PATH_MAX];
    struct flock lock = files_whole(F_WRLCK);
    _cleanup_fd_ int fd = files_open(data_dir, "lock", O_RDWR, path, NULL);

    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
    if (fcntl(fd, F_GETLK, &lock) < 0)
        return -errno;
    return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

int files_check_space(const char *data_dir, uint64_t used, uint64_t available, struct err *err)
{
    uint64_t needed = used < DISK_BYTES_FIRST ? DISK_BYTES_FIRST - used : 0;

    if (needed < DISK_BYTES_MORE)
        needed = DISK_BYTES_MORE;
    if (available >= needed)
        return 0;
    return err_set(err, ENOSPC,
                   "%s has %llu MiB free, and the software host needs %llu: make room, or name "
                   "another data directory by --data",
                   data_dir, (unsigned long long)(available >> 20),
                   (unsigned long long)(needed >> 20));
}

int files_make_disk(const char *data_dir, uint64_t size_bytes, struct err *err)
{
    char path[FILES_PATH_MAX];
    _cleanup_fd_ int fd = files_open(data_dir, "disk.img", O_RDWR | O_CREAT, path, err);
    struct statvfs fs;
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0 ||
        (st.st_size == 0 && ftruncate(fd, (off_t)size_bytes) < 0))
        return err_set_errno(err, errno, "cannot make %s", path);
    return files_check_space(data_dir, (uint64_t)st.st_blocks * STAT_BLOCK,
                             (uint64_t)fs.f_bavail * fs.f_frsize, err);
}

static bool has_bytes(const char *data_dir, uint64_t bytes)
{
    struct statvfs fs;

    if (statvfs(data_dir, &fs) < 0)
        return true;
    /* What is kept back is kept for root. */
    return (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize >= bytes;
}

bool files_has_room(const char *data_dir)
{
    return has_bytes(data_dir, DISK_BYTES_MORE);
}

bool files_is_full(const char *data_dir)
{
    return !has_bytes(data_dir, DISK_BYTES_FULL);
}

int files_make_token(const char *data_dir, uint8_t *ret_token, struct err *err)
{
    char path[FILES_PATH_MAX];
    uint8_t token[WIRE_TOKEN_SIZE];
    _cleanup_fd_ int fd = -1;
    int r = files_path(data_dir, "token", path, err);

    if (r < 0)
        return r;
    if (getrandom(token, sizeof(token), 0) != (ssize_t)sizeof(token))
        return err_set_errno(err, errno, "no random numbers");
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set_errno(err, errno, "cannot replace %s", path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot make %s", path);
    r = fd_write_full(fd, token, sizeof(token));
    if (r < 0)
        return err_set_errno(err, -r, "cannot write %s", path);
    memcpy(ret_token, token, sizeof(token));
    return 0;
}

int files_write_status(const char *data_dir, const struct host_status *status)
{
    char path[FILES_PATH_MAX], temporary[FILES_PATH_MAX], text[1024], reason[HOST_REASON_MAX];
    _cleanup_fd_ int fd =
        files_open(data_dir, "status.new", O_WRONLY | O_CREAT | O_TRUNC, temporary, NULL);
    int n, r = fd < 0 ? fd : files_path(data_dir, "status", path, NULL);

    if (r < 0)
        return r;
    snprintf(reason, sizeof(reason), "%s", status->last_reason);
    for (char *c = reason; *c; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    n = snprintf(text, sizeof(text),
                 "state=%d\nqemu_pid=%d\nrestarts=%u\nboot_ms=%llu\n"
                 "memory_mib=%u\nis_full=%d\nlast_reason=%s\n",
                 (int)status->state, (int)status->qemu_pid, status->restarts,
                 (unsigned long long)status->boot_ms, status->memory_mib, status->is_full,
                 reason);
    r = fd_write_full(fd, text, (size_t)n);
    if (r < 0)
        return r;
    return rename(temporary, path) < 0 ? -errno : 0;
}

int files_open_log(const char *data_dir, uint64_t max_bytes)
{
    char path[FILES_PATH_MAX], old[FILES_PATH_MAX];
    struct stat st;
    int r = files_path(data_dir, "log", path, NULL);

    if (r < 0)
        return r;
    r = files_path(data_dir, "log.old", old, NULL);
    if (r < 0)
        return r;
    if (stat(path, &st) == 0 && (uint64_t)st.st_size > max_bytes)
        rename(path, old);
    return files_open(data_dir, "log", O_WRONLY | O_CREAT | O_APPEND, path, NULL);
}
