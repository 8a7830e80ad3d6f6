/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/tar_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

void tar_read_init(struct tar_read *t, int dir, uint64_t bytes_max, uint64_t entries_max)
{
    *t = (struct tar_read){.dir = dir,
                           .bytes_max = bytes_max,
                           .entries_max = entries_max,
                           .file = -1,
                           .parent = -1};
}

static void forget_pax(struct tar_read *t)
{
    free(t->pax_path);
    free(t->pax_link);
    t->pax_path = NULL;
    t->pax_link = NULL;
    t->has_pax_size = false;
}

void tar_read_finish(struct tar_read *t)
{
    forget_pax(t);
    free(t->pax);
    free(t->parent_path);
    t->pax = NULL;
    t->parent_path = NULL;
    fd_close(&t->file);
    fd_close(&t->parent);
}

static int open_beneath(int dir, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode, .resolve = BENEATH};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

/*
 * Reduces a path to its plain form in place: no "." parts, no doubled or trailing slashes.
 * False for an absolute path, a ".." part or one that is too long. "" means the root itself.
 */
static bool path_normalize(char *path)
{
    char *to = path;
    const char *from = path;

    if (path[0] == '/' || strlen(path) > TAR_PATH_MAX)
        return false;
    while (*from) {
        size_t len = (size_t)(strchrnul(from, '/') - from);

        if (len == 2 && from[0] == '.' && from[1] == '.')
            return false;
        if (len > 0 && !(len == 1 && from[0] == '.')) {
            if (to != path)
                *to++ = '/';
            memmove(to, from, len);
            to += len;
        }
        from += len;
        while (*from == '/')
            from++;
    }
    *to = 0;
    return true;
}

/* Makes path and its parents below dir, each part opened without following links. */
static int make_dirs(int dir, const char *path, int *ret_fd)
{
    _cleanup_fd_ int at = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    char part[TAR_PATH_MAX + 1];

    if (at < 0)
        return -errno;
    while (*path) {
        size_t len = (size_t)(strchrnul(path, '/') - path);
        int next;

        memcpy(part, path, len);
        part[len] = 0;
        if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
            return -errno;
        next = open_beneath(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (next < 0)
            return next;
        fd_close(&at);
        at = next;
        path += len;
        while (*path == '/')
            path++;
    }
    *ret_fd = fd_steal(&at);
    return 0;
}

/* Opens (and makes) the parent of path; *ret_name points at the last part inside path. */
static int open_parent(struct tar_read *t, char *path, const char **ret_name)
{
    char *slash = strrchr(path, '/');
    const char *parent = "";
    char *copy;
    int fd = -1;
    int r;

    if (slash) {
        *slash = 0;
        parent = path;
        *ret_name = slash + 1;
    } else {
        *ret_name = path;
    }
    if (t->parent >= 0 && strcmp(t->parent_path, parent) == 0)
        return 0;
    copy = strdup(parent);
    if (!copy)
        return -ENOMEM;
    r = make_dirs(t->dir, parent, &fd);
    if (r < 0) {
        free(copy);
        return r;
    }
    fd_close(&t->parent);
    free(t->parent_path);
    t->parent = fd;
    t->parent_path = copy;
    return 0;
}

/* The entry's path: the pax one, else prefix and name. Owned by the caller; NULL without
 * memory. */
static char *header_path(struct tar_read *t)
{
    char name[TAR_NAME_SIZE];
    char *path = t->pax_path;

    if (path) {
        t->pax_path = NULL;
        return path;
    }
    tar_block_path(&t->block, name);
    return strdup(name);
}

static int make_file(struct tar_read *t, char *path, mode_t mode)
{
    const char *name;
    int fd;
    int r = open_parent(t, path, &name);

    if (r < 0)
        return r;
    fd = open_beneath(t->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                      mode & 0111 ? 0755 : 0644);
    if (fd < 0)
        return fd;
    t->file = fd;
    return 0;
}

static int make_link(struct tar_read *t, char *path, const char *target)
{
    const char *name;
    int r = open_parent(t, path, &name);

    if (r < 0)
        return r;
    return symlinkat(target, t->parent, name) < 0 ? -errno : 0;
}

static int make_link_from_header(struct tar_read *t, char *path)
{
    char *target = t->pax_link;
    int r;

    if (target)
        t->pax_link = NULL;
    else
        target = strndup(t->block.target, sizeof(t->block.target));
    if (!target)
        return -ENOMEM;
    r = target[0] ? make_link(t, path, target) : -EINVAL;
    free(target);
    return r;
}

static int make_dir(struct tar_read *t, const char *path)
{
    int fd = -1;
    int r = make_dirs(t->dir, path, &fd);

    if (r < 0)
        return r;
    fd_close(&fd);
    return 0;
}

static int make_entry(struct tar_read *t, char type, char *path, uint64_t mode)
{
    if (!path_normalize(path))
        return -EINVAL;
    if (type == '5')
        return make_dir(t, path);
    if (path[0] == 0)
        return -EISDIR;
    if (type == '2')
        return make_link_from_header(t, path);
    return make_file(t, path, (mode_t)mode);
}

static int begin_pax(struct tar_read *t, char type, uint64_t size, struct err *err)
{
    if (size > TAR_PAX_MAX)
        return err_set(err, EPROTO, "tar: pax header of %llu bytes", (unsigned long long)size);
    free(t->pax);
    t->pax = malloc(size + 1);
    if (!t->pax)
        return err_set_errno(err, ENOMEM, "tar");
    t->pax_len = 0;
    t->kind = type;
    return 0;
}

static int begin_entry(struct tar_read *t, char type, uint64_t size, uint64_t mode,
                       struct err *err)
{
    char *path;
    int r;

    if (type == 0)
        type = '0';
    if (type != '0' && type != '2' && type != '5')
        return err_set(err, EPROTO, "tar: entry of unsupported type 0x%02x", (uint8_t)type);
    if (t->has_pax_size)
        size = t->pax_size;
    if (type != '0')
        size = 0;
    if (++t->entries > t->entries_max || size > t->bytes_max - t->bytes)
        return err_set(err, E2BIG, "tar: too many entries or bytes");
    t->bytes += size;
    path = header_path(t);
    if (!path)
        return err_set_errno(err, ENOMEM, "tar");
    r = make_entry(t, type, path, mode);
    if (r < 0)
        r = err_set_errno(err, -r, "tar: cannot make '%s'", path);
    free(path);
    forget_pax(t);
    if (r < 0)
        return r;
    t->kind = type;
    t->at = 0;
    t->left = size;
    t->pad = (uint32_t)tar_padding(size);
    return 0;
}

static int take_header(struct tar_read *t, struct err *err)
{
    struct tar_numbers numbers;
    char type = t->block.type;
    int r;

    if (tar_block_is_zero(&t->block)) {
        t->zero_blocks++;
        return 0;
    }
    if (t->zero_blocks > 0)
        return err_set(err, EPROTO, "tar: data after the end mark");
    r = tar_block_read(&t->block, &numbers);
    if (r < 0)
        return err_set(err, EPROTO,
                       r == -EBADMSG ? "tar: bad header checksum"
                                     : "tar: bad number in a header");
    if (type != 'x' && type != 'g')
        return begin_entry(t, type, numbers.size, numbers.mode, err);
    r = begin_pax(t, type, numbers.size, err);
    if (r < 0)
        return r;
    t->left = numbers.size;
    t->pad = (uint32_t)tar_padding(numbers.size);
    return 0;
}

static int pax_text(const struct tar_pax *record, char **text)
{
    if (record->value_len == 0 || record->value_len > TAR_PATH_MAX ||
        memchr(record->value, 0, record->value_len))
        return -EINVAL;
    free(*text);
    *text = strndup(record->value, record->value_len);
    return *text ? 0 : -ENOMEM;
}

static int take_record(struct tar_read *t, const struct tar_pax *record)
{
    if (tar_pax_is(record, "path"))
        return pax_text(record, &t->pax_path);
    if (tar_pax_is(record, "linkpath"))
        return pax_text(record, &t->pax_link);
    if (!tar_pax_is(record, "size"))
        return 0;
    t->has_pax_size = true;
    return tar_pax_number(record, &t->pax_size);
}

static int parse_pax(struct tar_read *t)
{
    const char *at = t->pax;
    size_t left = t->pax_len;
    struct tar_pax record;
    int r;

    while ((r = tar_pax_next(&at, &left, &record)) > 0) {
        r = take_record(t, &record);
        if (r < 0)
            return r;
    }
    return r;
}

static int end_entry(struct tar_read *t, struct err *err)
{
    char kind = t->kind;
    int r;

    t->kind = 0;
    fd_close(&t->file);
    if (kind != 'x')
        return 0;
    r = parse_pax(t);
    return r < 0 ? err_set_errno(err, -r, "tar: malformed pax header") : 0;
}

static int take_data(struct tar_read *t, const uint8_t *data, size_t len, struct err *err)
{
    int r;

    if (t->kind == '0') {
        r = fd_pwrite_full(t->file, data, len, t->at);
        t->at += len;
        if (r < 0)
            return err_set_errno(err, -r, "tar: cannot write a file");
    } else {
        memcpy(t->pax + t->pax_len, data, len);
        t->pax_len += len;
    }
    t->left -= len;
    return 0;
}

int tar_read_feed(struct tar_read *t, const void *data, size_t len, struct err *err)
{
    const uint8_t *p = data;

    while (len > 0) {
        size_t n;
        int r = 0;

        if (t->left > 0) {
            n = len < t->left ? len : (size_t)t->left;
            r = take_data(t, p, n, err);
        } else if (t->pad > 0) {
            n = len < t->pad ? len : t->pad;
            t->pad -= (uint32_t)n;
        } else {
            n = TAR_BLOCK - t->block_len;
            n = len < n ? len : n;
            memcpy((uint8_t *)&t->block + t->block_len, p, n);
            t->block_len += n;
            if (t->block_len == TAR_BLOCK) {
                t->block_len = 0;
                r = take_header(t, err);
            }
        }
        if (r == 0 && t->kind && t->left == 0)
            r = end_entry(t, err);
        if (r < 0)
            return r;
        p += n;
        len -= n;
    }
    return 0;
}

int tar_read_end(const struct tar_read *t, struct err *err)
{
    if (t->left > 0 || t->pad > 0 || t->block_len > 0)
        return err_set(err, EPROTO, "tar: stream ends inside an entry");
    if (t->entries > 0 && t->zero_blocks == 0)
        return err_set(err, EPROTO, "tar: stream without an end mark");
    return 0;
}
