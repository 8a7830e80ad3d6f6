/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define SKILL_UID 65534u
/* Holds out, tmp and shm: one superblock, so that one size limit covers all the skill writes.
 */
#define WORK       "/run/work"
#define INODES_MIN 16384u
/* A file costs about this much of the memory limit, which is what really bounds their number.
 */
#define BYTES_PER_INODE 8192u

void sandbox_path(const struct sandbox *sb, const char *path, char *ret_path)
{
    (void)snprintf(ret_path, SANDBOX_PATH_MAX, "%s%s", sb->config->root, path);
}

static int make_dir(const struct sandbox *sb, const char *path, mode_t mode, struct err *err)
{
    char full[SANDBOX_PATH_MAX];

    sandbox_path(sb, path, full);
    if (mkdir(full, mode) < 0)
        return errno == EEXIST ? 0 : err_set_errno(err, errno, "cannot make %s", full);
    /* mkdir(2) applies the umask; the modes here are meant as they are. */
    return chmod(full, mode) < 0 ? err_set_errno(err, errno, "cannot set mode of %s", full) : 0;
}

static int make_dirs(const struct sandbox *sb, struct err *err)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = {
        {"/sandbox", 0755},    {"/sandbox/packages", 0755}, {"/sandbox/skill", 0755},
        {"/sandbox/in", 0755}, {"/sandbox/out", 0755},      {"/tmp", 01777},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(dirs) / sizeof(dirs[0]); i++)
        r = make_dir(sb, dirs[i].path, dirs[i].mode, err);
    return r;
}

/*
 * /sandbox is a tmpfs of root's: the skill cannot write there. What it can write to (in, out,
 * /tmp, /dev/shm) is one tmpfs bound to four places; its limits are set by sandbox_limit.
 */
static int mount_all(const struct sandbox *sb, struct err *err)
{
    static const struct {
        const char *path;
        mode_t mode;
    } work[] = {
        {WORK "/in", 0755}, {WORK "/out", 0755}, {WORK "/tmp", 01777}, {WORK "/shm", 01777}};
    static const char *const binds[][2] = {{"/sandbox/skill", "/sandbox/scripts"},
                                           {WORK "/in", "/sandbox/in"},
                                           {WORK "/out", "/sandbox/out"},
                                           {WORK "/tmp", "/tmp"},
                                           {WORK "/shm", "/dev/shm"}};
    unsigned long flags = MS_NOSUID | MS_NODEV;
    int r = 0;

    if (mount("sandbox", "/sandbox", "tmpfs", flags, "mode=0755") < 0)
        return err_set_errno(err, errno, "cannot mount /sandbox");
    if (mkdir(WORK, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot make " WORK);
    if (mount("work", WORK, "tmpfs", flags, "mode=0700") < 0)
        return err_set_errno(err, errno, "cannot mount " WORK);
    for (size_t i = 0; r == 0 && i < sizeof(work) / sizeof(work[0]); i++)
        r = make_dir(sb, work[i].path, work[i].mode, err);
    if (r < 0)
        return r;
    r = make_dirs(sb, err);
    if (r < 0)
        return r;
    r = make_dir(sb, "/sandbox/scripts", 0755, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]); i++)
        if (mount(binds[i][0], binds[i][1], NULL, MS_BIND, NULL) < 0)
            return err_set_errno(err, errno, "cannot bind %s to %s", binds[i][0], binds[i][1]);
    return 0;
}

static int make_link(const struct sandbox *sb, const char *to, const char *name,
                     struct err *err)
{
    char path[SANDBOX_PATH_MAX];

    sandbox_path(sb, name, path);
    if (symlink(to, path) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot make %s", path);
    return 0;
}

static int give_folder(const struct sandbox *sb, const char *path, struct err *err)
{
    char full[SANDBOX_PATH_MAX];

    sandbox_path(sb, path, full);
    if (sb->config->isolated && chown(full, SKILL_UID, SKILL_UID) < 0)
        return err_set_errno(err, errno, "cannot give %s to the skill", full);
    return 0;
}

static int give_folders(const struct sandbox *sb, struct err *err)
{
    static const char *const paths[] = {"/sandbox/in", "/sandbox/out", "/sandbox/out/files"};
    int r = make_dir(sb, "/sandbox/out/files", 0755, err);

    for (size_t i = 0; r == 0 && i < sizeof(paths) / sizeof(paths[0]); i++)
        r = give_folder(sb, paths[i], err);
    return r;
}

static int open_at(const struct sandbox *sb, const char *path, int flags, int *ret_fd,
                   struct err *err)
{
    char full[SANDBOX_PATH_MAX];
    int fd;

    sandbox_path(sb, path, full);
    fd = open(full, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", full);
    *ret_fd = fd;
    return 0;
}

static int open_pipe(int *ret_read, int *ret_write, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "cannot make a pipe");
    *ret_read = fds[0];
    *ret_write = fds[1];
    /* Only the read end: the skill must see the plain blocking pipe any program expects. */
    return fd_set_nonblock(fds[0], true) < 0 ? err_set(err, EIO, "cannot set up a pipe") : 0;
}

static int open_streams(struct sandbox *sb, struct err *err)
{
    int r =
        open_at(sb, "/sandbox/input.json", O_WRONLY | O_CREAT | O_TRUNC, &sb->input_write, err);

    if (r < 0)
        return r;
    /*
     * Standard input is the file itself, opened before it has content: a waiting interpreter
     * already holds it, at offset 0, when the input arrives.
     */
    r = open_at(sb, "/sandbox/input.json", O_RDONLY, &sb->input_read, err);
    if (r < 0)
        return r;
    r = open_pipe(&sb->out_read, &sb->out_write, err);
    if (r < 0)
        return r;
    r = open_pipe(&sb->err_read, &sb->err_write, err);
    if (r < 0)
        return r;
    /* The skill's own, so that it may open them again by name: /dev/stderr, /dev/stdout. */
    if (sb->config->isolated && (fchown(sb->out_write, SKILL_UID, SKILL_UID) < 0 ||
                                 fchown(sb->err_write, SKILL_UID, SKILL_UID) < 0))
        return err_set_errno(err, errno, "cannot give the skill its streams");
    return 0;
}

int sandbox_open(struct sandbox *sb, const struct sandbox_config *config, struct err *err)
{
    int r;

    *sb = (struct sandbox){.config = config,
                           .cgroup = CGROUP_NONE,
                           .packages_dir = -1,
                           .skill_dir = -1,
                           .in_dir = -1,
                           .out_dir = -1,
                           .session_dir = -1,
                           .input_write = -1,
                           .input_read = -1,
                           .out_read = -1,
                           .out_write = -1,
                           .err_read = -1,
                           .err_write = -1};
    r = config->isolated ? mount_all(sb, err) : make_dirs(sb, err);
    if (r < 0)
        return r;
    if (config->isolated)
        r = cgroup_open("/sys/fs/cgroup", "skill", &sb->cgroup, err);
    else
        r = make_link(sb, "skill", "/sandbox/scripts", err);
    if (r < 0)
        return r;
    /* The name that skills written for Skillbox look in. */
    r = make_link(sb, "in", "/sandbox/input", err);
    if (r < 0)
        return r;
    r = give_folders(sb, err);
    if (r < 0)
        return r;
    r = open_at(sb, "/sandbox/packages", O_RDONLY | O_DIRECTORY, &sb->packages_dir, err);
    if (r < 0)
        return r;
    r = open_at(sb, "/sandbox/skill", O_RDONLY | O_DIRECTORY, &sb->skill_dir, err);
    if (r < 0)
        return r;
    r = open_at(sb, "/sandbox/in", O_RDONLY | O_DIRECTORY, &sb->in_dir, err);
    if (r < 0)
        return r;
    r = open_at(sb, "/sandbox/out", O_RDONLY | O_DIRECTORY, &sb->out_dir, err);
    return r < 0 ? r : open_streams(sb, err);
}

/* Its content is where all that the skill writes is, within the same limits. */
static int bind_session(const struct sandbox *sb, struct err *err)
{
    int r = make_dir(sb, WORK "/session", 0755, err);

    if (r < 0)
        return r;
    if (mount(WORK "/session", "/sandbox/session", NULL, MS_BIND, NULL) < 0)
        return err_set_errno(err, errno, "cannot bind /sandbox/session");
    return 0;
}

int sandbox_add_session(struct sandbox *sb, struct err *err)
{
    static const char path[] = "/sandbox/session";
    int r = make_dir(sb, path, 0755, err);

    if (r == 0 && sb->config->isolated)
        r = bind_session(sb, err);
    if (r < 0)
        return r;
    r = give_folder(sb, path, err);
    return r < 0 ? r : open_at(sb, path, O_RDONLY | O_DIRECTORY, &sb->session_dir, err);
}

/* Its number, which the kernel chose. */
static int find_disk(dev_t *ret, struct err *err)
{
    _cleanup_fd_ int fd = open("/sys/class/block/vdb/dev", O_RDONLY | O_CLOEXEC);
    char text[32] = "";
    unsigned major, minor;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return err_set_errno(err, errno, "the disk of a skill");
    if (sscanf(text, "%u:%u", &major, &minor) != 2)
        return err_set(err, EIO, "the disk of a skill has no number");
    *ret = makedev(major, minor);
    return 0;
}

static int mount_disk(const char *node, struct err *err)
{
    /* The second is what had the first's content before. */
    if (mount(node, "/sandbox/skill", "erofs", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0 ||
        mount("/sandbox/skill", "/sandbox/scripts", NULL, MS_BIND, NULL) < 0)
        return err_set_errno(err, errno, "cannot mount the disk of the skill");
    return 0;
}

int sandbox_mount_skill(const struct sandbox *sb, struct err *err)
{
    static const char node[] = "/dev/skill";
    dev_t disk = 0;
    int r;

    if (!sb->config->isolated)
        return err_set(err, ENOTSUP, "no disks without a machine");
    r = find_disk(&disk, err);
    if (r < 0)
        return r;
    if (mknod(node, S_IFBLK | 0600, disk) < 0)
        return err_set_errno(err, errno, "cannot make %s", node);
    r = mount_disk(node, err);
    /* It is there for the mount alone. */
    (void)unlink(node);
    return r;
}

void sandbox_close_skill_ends(struct sandbox *sb)
{
    fd_close(&sb->input_read);
    fd_close(&sb->out_write);
    fd_close(&sb->err_write);
}

void sandbox_close(struct sandbox *sb)
{
    sandbox_close_skill_ends(sb);
    cgroup_close(&sb->cgroup);
    fd_close(&sb->packages_dir);
    fd_close(&sb->skill_dir);
    fd_close(&sb->in_dir);
    fd_close(&sb->out_dir);
    fd_close(&sb->session_dir);
    fd_close(&sb->input_write);
    fd_close(&sb->out_read);
    fd_close(&sb->err_read);
}

void sandbox_make_for_skill(const struct sandbox *sb, bool for_skill)
{
    const unsigned id = for_skill ? SKILL_UID : 0;

    if (!sb->config->isolated)
        return;
    (void)setfsgid(id);
    (void)setfsuid(id);
}

int sandbox_limit(struct sandbox *sb, const struct run *run, struct err *err)
{
    uint64_t inodes = run->memory_bytes / BYTES_PER_INODE;
    struct statfs there;
    char options[96];

    if (!sb->config->isolated)
        return 0;
    if (statfs(WORK, &there) < 0)
        return err_set_errno(err, errno, "cannot measure the writable space");
    /*
     * Half of the memory beside the input files: what the skill writes lives in it and counts
     * against its cgroup, so a larger share would end a skill that fills its disk by the OOM
     * killer instead of ENOSPC. The input files were written before, and count for nobody.
     */
    (void)snprintf(
        options, sizeof(options), "size=%llu,nr_inodes=%llu",
        (unsigned long long)(run->memory_bytes / 2 +
                             (there.f_blocks - there.f_bfree) * (uint64_t)there.f_bsize),
        (unsigned long long)((inodes > INODES_MIN ? inodes : INODES_MIN) + there.f_files -
                             there.f_ffree));
    if (mount(NULL, WORK, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return err_set_errno(err, errno, "cannot limit the writable space");
    return cgroup_limit(&sb->cgroup, run->memory_bytes, run->pids_max, err);
}
