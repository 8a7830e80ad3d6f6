/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/pack.h"

#include "api/skill/file_names.h"
#include "api/skill/tar.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack {
    const struct archive_limits *limits;
    char root[PATH_MAX]; /* real path of the folder */
    int out_fd;
    uint64_t bytes;
    unsigned entries;
    struct buf buf;
    struct err *err;
};

static bool is_left_out(const char *name)
{
    return strcmp(name, ".git") == 0 || strcmp(name, "__pycache__") == 0 ||
           strcmp(name, ".DS_Store") == 0 || text_ends_with(name, ".swp") ||
           text_ends_with(name, "~");
}

static int write_out(const struct pack *p, const void *data, size_t len)
{
    int result = fd_write_full(p->out_fd, data, len);

    return result < 0 ? err_set_errno(p->err, -result, "cannot write the archive") : 0;
}

static int put(struct pack *p, const struct tar_header *header)
{
    if (++p->entries > p->limits->entries)
        return err_set(p->err, EFBIG, "the skill has more than %u files and folders",
                       p->limits->entries);
    buf_clear(&p->buf);
    int result = tar_put_header(&p->buf, header);
    if (result < 0)
        return err_set_errno(p->err, -result, "cannot pack \"%s\"", header->path);
    return write_out(p, p->buf.data, p->buf.len);
}

static int pack_file(struct pack *p, int dir_fd, const char *name, const char *shown_path,
                     const char *path)
{
    static const char zero[TAR_BLOCK];
    char chunk[16384];
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(p->err, errno, "cannot read \"%s\"", shown_path);
    if (!S_ISREG(st.st_mode))
        return err_set(p->err, EINVAL, "\"%s\" changed while it was read", shown_path);

    struct tar_header header = {
        .path = path,
        .type = TAR_FILE,
        .mode = st.st_mode & 0111 ? 0755 : 0644,
        .size = (uint64_t)st.st_size,
    };
    p->bytes += header.size;
    if (p->bytes > p->limits->expanded_bytes)
        return err_set(p->err, EFBIG, "the skill is larger than %llu MiB (at \"%s\")",
                       (unsigned long long)(p->limits->expanded_bytes >> 20), shown_path);
    int result = put(p, &header);
    if (result < 0)
        return result;
    for (uint64_t done = 0; done < header.size;) {
        uint64_t left = header.size - done;
        size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
        ssize_t got = fd_read_full(fd, chunk, n);
        if (got < 0)
            return err_set_errno(p->err, (int)-got, "cannot read \"%s\"", shown_path);
        if ((size_t)got != n)
            return err_set(p->err, EINVAL, "\"%s\" changed while it was read", shown_path);
        result = write_out(p, chunk, n);
        if (result < 0)
            return result;
        done += n;
    }
    return write_out(p, zero, tar_padding(header.size));
}

static int pack_link(struct pack *p, int dir_fd, const char *name, const char *shown_path,
                     const char *path)
{
    char target[NAMES_PATH_MAX + 1], full[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));
    size_t root_len = strlen(p->root);

    if (n < 0 || (size_t)n >= sizeof(target))
        return err_set(p->err, EINVAL, "cannot read the link \"%s\"", shown_path);
    target[n] = '\0';
    if (snprintf(full, sizeof(full), "%s/%s", p->root, shown_path) >= (int)sizeof(full))
        return err_set(p->err, EINVAL, "\"%s\": its path is too long", shown_path);
    if (!realpath(full, real))
        return err_set_errno(p->err, EINVAL, "\"%s\": the link to \"%s\" cannot be followed",
                             shown_path, target);
    if (target[0] == '/' || strncmp(real, p->root, root_len) != 0 ||
        (real[root_len] && real[root_len] != '/'))
        return err_set(p->err, EINVAL,
                       "\"%s\": the link to \"%s\" leaves the skill; put the file itself there",
                       shown_path, target);
    struct tar_header header = {.path = path, .target = target, .type = TAR_LINK, .mode = 0777};
    return put(p, &header);
}

/* path is the name in the tar; shown_path, its tail, the name below the folder. */
static int pack_dir(struct pack *p, int dir_fd, char *path, size_t root_len, unsigned depth);

static int pack_member(struct pack *p, int dir_fd, const char *name, char *path,
                       size_t root_len, unsigned depth)
{
    const char *shown_path = path + root_len + 1;
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set_errno(p->err, errno, "cannot read \"%s\"", shown_path);
    if (S_ISREG(st.st_mode))
        return pack_file(p, dir_fd, name, shown_path, path);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, dir_fd, name, shown_path, path);
    if (!S_ISDIR(st.st_mode))
        return err_set(p->err, EINVAL, "\"%s\": devices, pipes and sockets are refused",
                       shown_path);
    struct tar_header header = {.path = path, .type = TAR_DIR, .mode = 0755};
    int result = put(p, &header);
    if (result < 0)
        return result;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0)
        return err_set_errno(p->err, errno, "cannot read \"%s\"", shown_path);
    return pack_dir(p, fd, path, root_len, depth + 1);
}

/* Owns dir_fd. */
static int pack_dir(struct pack *p, int dir_fd, char *path, size_t root_len, unsigned depth)
{
    DIR *dir = fdopendir(dir_fd);
    size_t len = strlen(path);
    int result = 0;

    if (!dir) {
        fd_close(&dir_fd);
        return err_set_errno(p->err, ENOMEM, "cannot read \"%s\"", path);
    }
    if (depth > NAMES_DEPTH_MAX)
        result = err_set(p->err, EINVAL, "\"%s\": folders are nested too deep", path);
    while (!result) {
        errno = 0;
        const struct dirent *member = readdir(dir);
        if (!member) {
            if (errno)
                result = err_set_errno(p->err, errno, "cannot read \"%s\"", path);
            break;
        }
        const char *name = member->d_name;
        size_t name_len = strlen(name);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_left_out(name))
            continue;
        if (len + name_len + 2 > NAMES_PATH_MAX) {
            result = err_set(p->err, EINVAL, "\"%s/…\": the path is too long", path);
            break;
        }
        path[len] = '/';
        memcpy(path + len + 1, name, name_len + 1);
        result = pack_member(p, dirfd(dir), name, path, root_len, depth);
        path[len] = '\0';
    }
    closedir(dir);
    return result;
}

int pack_folder(const char *path, const struct archive_limits *limits, int out_fd,
                struct err *err)
{
    static const char trailer[TAR_TRAILER];
    struct pack p = {
        .limits = limits,
        .out_fd = out_fd,
        .buf = buf_init(64 * 1024),
        .err = err,
    };
    char name[NAMES_PATH_MAX + 1];
    struct stat st;

    if (!realpath(path, p.root))
        return err_set_errno(err, errno, "cannot open \"%s\"", path);
    int fd = open(p.root, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open \"%s\"", path);
    if (fstatat(fd, "SKILL.md", &st, 0) < 0 && fstatat(fd, "skill.md", &st, 0) < 0) {
        fd_close(&fd);
        return err_set(err, EINVAL, "\"%s\" has no SKILL.md", path);
    }
    const char *base = strrchr(p.root, '/');
    base = base && base[1] ? base + 1 : "skill";
    if (strlen(base) > NAMES_COMPONENT_MAX || !utf8_valid(base, strlen(base)) ||
        strchr(base, '\\'))
        base = "skill";
    strcpy(name, base);

    struct tar_header header = {.path = name, .type = TAR_DIR, .mode = 0755};
    int result = put(&p, &header);
    if (result < 0)
        fd_close(&fd);
    else
        result = pack_dir(&p, fd, name, strlen(name), 0);
    buf_finish(&p.buf);
    return result < 0 ? result : write_out(&p, trailer, sizeof(trailer));
}
