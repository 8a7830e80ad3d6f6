/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders: reading and writing, what is told of them, names, links, attributes and
 * locks.
 */
#include "tests/calls/calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FOLDER_ENTRIES 300
#define BIG            (5LL << 30)

static int make_file(const char *name, const char *text)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd >= 0 && write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return -1;
    return fd;
}

static int files_plain(void)
{
    char text[8] = "";
    int fd = make_file("a", "content");

    TRY(fd);
    CHECK(open("a", O_CREAT | O_EXCL | O_RDWR, 0644) < 0 && errno == EEXIST);
    TRY(lseek(fd, 3, SEEK_SET));
    CHECK(read(fd, text, sizeof(text)) == 4 && memcmp(text, "tent", 4) == 0);
    TRY(close(fd));
    fd = open("a", O_WRONLY | O_APPEND);
    TRY(fd);
    CHECK(write(fd, "!", 1) == 1 && lseek(fd, 0, SEEK_CUR) == 8);
    return 0;
}

static int files_pread(void)
{
    char text[8] = "";
    int fd = make_file("a", "content");

    TRY(fd);
    CHECK(pwrite(fd, "C", 1, 0) == 1 && pread(fd, text, 7, 0) == 7);
    CHECK(strcmp(text, "Content") == 0);
    return 0;
}

static int files_vectors(void)
{
    char one[4] = "ab";
    char two[4] = "cd";
    struct iovec parts[] = {{one, 2}, {two, 2}};
    int fd = make_file("a", "");

    TRY(fd);
    CHECK(writev(fd, parts, 2) == 4 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK(readv(fd, parts, 2) == 4 && memcmp(two, "cd", 2) == 0);
    CHECK(pwritev2(fd, parts, 2, 0, RWF_APPEND) == 4);
    CHECK(preadv2(fd, parts, 2, 4, 0) == 4 && memcmp(one, "ab", 2) == 0);
    return 0;
}

static int files_tmpfile(void)
{
    char name[64];
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);

    TRY(fd);
    CHECK(write(fd, "x", 1) == 1);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    TRY(linkat(AT_FDCWD, name, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    return access("named", R_OK) < 0 ? -errno : 0;
}

static int files_linkat_empty(void)
{
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);

    TRY(fd);
    return linkat(fd, "", AT_FDCWD, "named", AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int files_direct(void)
{
    int fd = open("a", O_CREAT | O_RDWR | O_DIRECT, 0644);
    void *block = NULL;

    TRY(fd);
    TRY_ERROR(posix_memalign(&block, 4096, 4096));
    memset(block, 'x', 4096);
    return write(fd, block, 4096) < 0 ? -errno : 0;
}

static int files_path(void)
{
    int folder = open(".", O_PATH | O_DIRECTORY);
    int fd;

    TRY(folder);
    fd = openat(folder, "a", O_CREAT | O_RDWR, 0644);
    TRY(fd);
    CHECK(read(folder, &fd, 1) < 0 && errno == EBADF);
    return faccessat(folder, "a", R_OK, 0) < 0 ? -errno : 0;
}

static int files_truncate(void)
{
    struct stat st;
    int fd = make_file("a", "content");

    TRY(fd);
    TRY(ftruncate(fd, 3));
    TRY(truncate("a", 5));
    TRY(fstat(fd, &st));
    CHECK(st.st_size == 5);
    return 0;
}

static int files_holes(void)
{
    int fd = make_file("a", "");

    TRY(fd);
    TRY(fallocate(fd, 0, 0, 65536));
    TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 32768));
    CHECK(pwrite(fd, "x", 1, 60000) == 1);
    CHECK(lseek(fd, 0, SEEK_DATA) >= 32768 && lseek(fd, 0, SEEK_HOLE) == 0);
    return 0;
}

static int files_big(void)
{
    struct stat st;
    int fd = make_file("a", "");

    TRY(fd);
    TRY(ftruncate(fd, BIG));
    CHECK(pwrite(fd, "x", 1, BIG - 1) == 1 && fstat(fd, &st) == 0);
    CHECK(st.st_size == BIG && st.st_blocks < 100);
    return 0;
}

static int files_stat(void)
{
    struct stat st;
    int fd = make_file("a", "content");

    TRY(fd);
    TRY(fstat(fd, &st));
    CHECK(S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1);
    TRY(symlink("a", "l"));
    TRY(lstat("l", &st));
    CHECK(S_ISLNK(st.st_mode));
    return stat("l", &st) < 0 ? -errno : 0;
}

static int files_statx(void)
{
    struct statx st;
    int fd = make_file("a", "content");

    TRY(fd);
    TRY(statx(AT_FDCWD, "a", 0, STATX_ALL, &st));
    CHECK(st.stx_mask & STATX_BTIME);
    CHECK(st.stx_mtime.tv_sec > 1000000000);
    return 0;
}

static int files_statvfs(void)
{
    struct statvfs st;

    TRY(statvfs(".", &st));
    CHECK(st.f_bavail > 0 && st.f_favail > 0);
    return 0;
}

static int files_access(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    TRY(access("a", R_OK | W_OK));
    return syscall(SYS_faccessat2, AT_FDCWD, "a", R_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int files_chmod(void)
{
    struct stat st;
    int fd = make_file("a", "x");

    TRY(fd);
    TRY(chmod("a", 0600));
    TRY(fchmod(fd, 0640));
    TRY(fchmodat(AT_FDCWD, "a", 0400, 0));
    TRY(fstat(fd, &st));
    CHECK((st.st_mode & 07777) == 0400);
    return 0;
}

static int files_fchmodat2(void)
{
    TRY(make_file("a", "x"));
    return syscall(452, AT_FDCWD, "a", 0600, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int files_chown_self(void)
{
    TRY(make_file("a", "x"));
    return chown("a", getuid(), getgid()) < 0 ? -errno : 0;
}

static int files_chown_other(void)
{
    TRY(make_file("a", "x"));
    return chown("a", 1, 1) < 0 ? -errno : 0;
}

static int files_times(void)
{
    const struct timespec times[] = {{1000000000, 123456789}, {1000000000, 987654321}};
    struct stat st;

    TRY(make_file("a", "x"));
    TRY(utimensat(AT_FDCWD, "a", times, 0));
    TRY(stat("a", &st));
    CHECK(st.st_mtim.tv_sec == 1000000000 && st.st_mtim.tv_nsec == 987654321);
    return 0;
}

static int files_folders(void)
{
    char name[16];
    int seen = 0;
    DIR *dir;

    TRY(mkdir("d", 0700));
    TRY(chdir("d"));
    for (int i = 0; i < FOLDER_ENTRIES; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        TRY(mkdirat(AT_FDCWD, name, 0700));
    }
    dir = opendir(".");
    CHECK(dir);
    while (readdir(dir))
        seen++;
    (void)closedir(dir);
    CHECK(seen == FOLDER_ENTRIES + 2);
    CHECK(rmdir("../d") < 0 && errno == ENOTEMPTY);
    return rmdir("0") < 0 ? -errno : 0;
}

static int files_chdir(void)
{
    char here[256];
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    TRY(fd);
    TRY(chdir("/"));
    CHECK(getcwd(here, sizeof(here)) && strcmp(here, "/") == 0);
    TRY(fchdir(fd));
    CHECK(getcwd(here, sizeof(here)) && strlen(here) > 1);
    return 0;
}

static int files_umask(void)
{
    struct stat st;
    int fd;

    (void)umask(077);
    fd = open("a", O_CREAT | O_RDWR, 0666);
    TRY(fd);
    TRY(fstat(fd, &st));
    CHECK((st.st_mode & 0777) == 0600);
    return 0;
}

static int files_rename(void)
{
    TRY(make_file("a", "x"));
    TRY(rename("a", "b"));
    TRY(make_file("c", "y"));
    TRY(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_EXCHANGE));
    CHECK(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_NOREPLACE) < 0 && errno == EEXIST);
    return unlinkat(AT_FDCWD, "b", 0) < 0 ? -errno : 0;
}

static int files_whiteout(void)
{
    TRY(make_file("a", "x"));
    return renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT) < 0 ? -errno : 0;
}

static int files_links(void)
{
    char text[8] = "";
    struct stat st;

    TRY(make_file("a", "x"));
    TRY(link("a", "b"));
    TRY(stat("a", &st));
    CHECK(st.st_nlink == 2);
    TRY(symlink("a", "l"));
    CHECK(readlink("l", text, sizeof(text)) == 1 && text[0] == 'a');
    CHECK(open("l", O_RDONLY | O_NOFOLLOW) < 0 && errno == ELOOP);
    return unlink("l") < 0 ? -errno : 0;
}

static int files_mkfifo(void)
{
    return mkfifo("f", 0600) < 0 ? -errno : 0;
}

static int files_device(void)
{
    return mknod("d", S_IFCHR | 0600, makedev(1, 3)) < 0 ? -errno : 0;
}

static int files_openat2(void)
{
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
    long fd;

    TRY(make_file("a", "x"));
    fd = syscall(SYS_openat2, AT_FDCWD, "a", &how, sizeof(how));
    TRY(fd);
    fd = syscall(SYS_openat2, AT_FDCWD, "../a", &how, sizeof(how));
    CHECK(fd < 0 && errno == EXDEV);
    return 0;
}

static int files_copy_range(void)
{
    int from = make_file("a", "content");
    int to = make_file("b", "");
    loff_t at = 0;

    TRY(from);
    TRY(to);
    TRY(copy_file_range(from, &at, to, NULL, 7, 0));
    CHECK(lseek(to, 0, SEEK_END) == 7);
    return 0;
}

static int files_clone_range(void)
{
    int from = make_file("a", "content");
    int to = make_file("b", "");

    TRY(from);
    TRY(to);
    return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
}

static int files_sync(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    TRY(fsync(fd));
    TRY(fdatasync(fd));
    TRY(syncfs(fd));
    sync();
    return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) < 0 ? -errno : 0;
}

static int files_advice(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    TRY_ERROR(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ? -EINVAL : 0;
}

static int files_readahead(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    return readahead(fd, 0, 4096) < 0 ? -errno : 0;
}

static int xattr(const char *name)
{
    char value[8] = "";

    TRY(make_file("a", "x"));
    TRY(setxattr("a", name, "v", 1, 0));
    CHECK(getxattr("a", name, value, sizeof(value)) == 1 && value[0] == 'v');
    TRY(listxattr("a", NULL, 0));
    return removexattr("a", name) < 0 ? -errno : 0;
}

static int files_xattr(void)
{
    return xattr("user.name");
}

static int files_xattr_trusted(void)
{
    return xattr("trusted.name");
}

static int files_acl(void)
{
    /* Version 2; owner, group and others, as the mode has them already. */
    const unsigned char acl[] = {2,    0,    0, 0, 1,    0,    6,    0,    0xff, 0xff,
                                 0xff, 0xff, 4, 0, 4,    0,    0xff, 0xff, 0xff, 0xff,
                                 32,   0,    4, 0, 0xff, 0xff, 0xff, 0xff};

    TRY(make_file("a", "x"));
    return setxattr("a", "system.posix_acl_access", acl, sizeof(acl), 0) < 0 ? -errno : 0;
}

/* A lock that was taken is refused to another process. */
static int locks_refused(int (*take)(int))
{
    pid_t pid;
    int fd = make_file("a", "x");

    TRY(fd);
    TRY(take(fd));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        int own = open("a", O_RDWR);

        probe_child_end(own >= 0 && take(own) < 0 && (errno == EAGAIN || errno == EACCES));
    }
    return probe_child_wait(pid);
}

static int take_flock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB);
}

static int take_posix(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &lock);
}

static int take_description(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock);
}

static int files_flock(void)
{
    return locks_refused(take_flock);
}

static int files_lock(void)
{
    return locks_refused(take_posix);
}

static int files_lock_description(void)
{
    return locks_refused(take_description);
}

static int files_lease(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    return fcntl(fd, F_SETLEASE, F_WRLCK) < 0 ? -errno : 0;
}

static int files_notify(void)
{
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    TRY(fd);
    return fcntl(fd, F_NOTIFY, DN_CREATE) < 0 ? -errno : 0;
}

static struct handle {
    struct file_handle head;
    char more[MAX_HANDLE_SZ];
} handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};

static int files_handle(void)
{
    int mount;

    TRY(make_file("a", "x"));
    return name_to_handle_at(AT_FDCWD, "a", &handle.head, &mount, 0) < 0 ? -errno : 0;
}

static int files_open_handle(void)
{
    TRY_PROBE(files_handle());
    return open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY) < 0 ? -errno : 0;
}

static int files_descriptors(void)
{
    int fd = make_file("a", "x");

    TRY(fd);
    TRY(dup(fd));
    CHECK(dup2(fd, 100) == 100 && dup3(fd, 101, O_CLOEXEC) == 101);
    CHECK(fcntl(fd, F_DUPFD_CLOEXEC, 102) == 102 && fcntl(102, F_GETFD) == FD_CLOEXEC);
    TRY(syscall(SYS_close_range, 100, 101, 0));
    CHECK(fcntl(101, F_GETFD) < 0 && errno == EBADF);
    return 0;
}

static int files_flags(void)
{
    int flags = 0;
    int fd = make_file("a", "x");

    TRY(fd);
    return ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 ? -errno : 0;
}

static const struct probe probes[] = {
    PROBE("open read write lseek", files_plain),
    PROBE("pread pwrite", files_pread),
    PROBE("readv writev preadv2 pwritev2", files_vectors),
    PROBE("O_TMPFILE", files_tmpfile),
    PROBE("linkat AT_EMPTY_PATH", files_linkat_empty),
    PROBE("O_DIRECT", files_direct),
    PROBE("O_PATH", files_path),
    PROBE("truncate ftruncate", files_truncate),
    PROBE("fallocate PUNCH_HOLE SEEK_HOLE", files_holes),
    PROBE("sparse files over 4 GiB", files_big),
    PROBE("stat fstat lstat", files_stat),
    PROBE("statx", files_statx),
    PROBE("statvfs", files_statvfs),
    PROBE("access faccessat2", files_access),
    PROBE("chmod fchmod fchmodat", files_chmod),
    PROBE("fchmodat2", files_fchmodat2),
    PROBE("chown to oneself", files_chown_self),
    PROBE("chown to another", files_chown_other),
    PROBE("utimensat", files_times),
    PROBE("mkdir rmdir getdents64", files_folders),
    PROBE("chdir fchdir getcwd", files_chdir),
    PROBE("umask", files_umask),
    PROBE("rename renameat2", files_rename),
    PROBE("renameat2 RENAME_WHITEOUT", files_whiteout),
    PROBE("link symlink readlink unlink", files_links),
    PROBE("mkfifo", files_mkfifo),
    PROBE("mknod of a device", files_device),
    PROBE("openat2", files_openat2),
    PROBE("copy_file_range", files_copy_range),
    PROBE("ioctl FICLONE", files_clone_range),
    PROBE("fsync fdatasync syncfs sync_file_range", files_sync),
    PROBE("posix_fadvise", files_advice),
    PROBE("readahead", files_readahead),
    PROBE("user extended attributes", files_xattr),
    PROBE("trusted extended attributes", files_xattr_trusted),
    PROBE("POSIX ACLs", files_acl),
    PROBE("flock", files_flock),
    PROBE("fcntl F_SETLK", files_lock),
    PROBE("fcntl F_OFD_SETLK", files_lock_description),
    PROBE("fcntl F_SETLEASE", files_lease),
    PROBE("fcntl F_NOTIFY", files_notify),
    PROBE("name_to_handle_at", files_handle),
    PROBE("open_by_handle_at", files_open_handle),
    PROBE("dup dup2 dup3 close_range", files_descriptors),
    PROBE("ioctl FS_IOC_GETFLAGS", files_flags),
};

const struct probe_list calls_files = PROBE_LIST(probes);
