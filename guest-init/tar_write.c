/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/tar_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tar_block.h"

#define DEPTH_MAX  64u
#define PATH_LIMIT 4095u
/* Names held at once while sorting; a directory may hold millions of hard links. */
#define NAMES_SLACK 4096u

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct names {
    char **items;
    size_t count;
    size_t cap;
};

struct walk {
    int top;
    size_t seen; /* entries of the list when the walk began */
    const struct tar_limits *limits;
    struct tar_list *list;
    size_t names_left;
    size_t path_len;
    char path[PATH_LIMIT + 1];
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_files(const void *a, const void *b)
{
    const struct tar_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

static void names_finish(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

static int names_add(struct names *names, const char *name)
{
    if (names->count == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 16;
        char **items = reallocarray(names->items, cap, sizeof(*items));

        if (!items)
            return -ENOMEM;
        names->items = items;
        names->cap = cap;
    }
    names->items[names->count] = strdup(name);
    if (!names->items[names->count])
        return -ENOMEM;
    names->count++;
    return 0;
}

static bool is_skipped(const struct walk *w, const char *name)
{
    const char *const *skip = w->path_len == 0 ? w->limits->skip : NULL;

    for (; skip && *skip; skip++)
        if (strcmp(name, *skip) == 0)
            return true;
    return false;
}

static int names_read(struct walk *w, int dir, struct names *names)
{
    int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!stream) {
        fd_close(&fd);
        w->list->truncated = true;
        return 0;
    }
    rewinddir(stream);
    while (r == 0 && (entry = readdir(stream))) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_skipped(w, name))
            continue;
        if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            continue;
        if (w->names_left == 0) {
            w->list->truncated = true;
            break;
        }
        w->names_left--;
        r = names_add(names, name);
    }
    closedir(stream);
    if (r < 0)
        return r;
    if (names->count > 1)
        qsort(names->items, names->count, sizeof(*names->items), compare_names);
    return 0;
}

static int list_add(struct walk *w, const struct stat *st)
{
    struct tar_list *list = w->list;
    bool is_folder = S_ISDIR(st->st_mode);
    uint64_t size = is_folder ? 0 : (uint64_t)st->st_size;
    const struct tar_file key = {.path = w->path};
    char *path;

    if (w->seen > 0 && bsearch(&key, list->files, w->seen, sizeof(*list->files), compare_files))
        return 0;
    if (list->count >= w->limits->files_max || size > w->limits->bytes_max - list->bytes) {
        list->truncated = true;
        return 0;
    }
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        struct tar_file *files = reallocarray(list->files, cap, sizeof(*files));

        if (!files)
            return -ENOMEM;
        list->files = files;
        list->cap = cap;
    }
    path = strdup(w->path);
    if (!path)
        return -ENOMEM;
    list->files[list->count++] = (struct tar_file){.path = path,
                                                   .dir = w->top,
                                                   .size = size,
                                                   .mtime = st->st_mtim.tv_sec,
                                                   .executable = (st->st_mode & 0100) != 0,
                                                   .is_folder = is_folder};
    list->bytes += size;
    return 0;
}

static int walk_dir(struct walk *w, int dir, unsigned depth);

/* Walks a folder at the path; one without anything listed in it may be listed itself. */
static int walk_sub(struct walk *w, int sub, const struct stat *st, unsigned depth)
{
    size_t before = w->list->count;
    int r = walk_dir(w, sub, depth);

    return r == 0 && w->limits->folders && w->list->count == before ? list_add(w, st) : r;
}

static int walk_entry(struct walk *w, int dir, const char *name, unsigned depth)
{
    _cleanup_fd_ int sub = -1;
    size_t old_len = w->path_len;
    size_t len = strlen(name);
    struct stat st;
    int r = 0;

    if (old_len + len + 1 > PATH_LIMIT) {
        w->list->truncated = true;
        return 0;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (old_len > 0)
        w->path[w->path_len++] = '/';
    memcpy(w->path + w->path_len, name, len + 1);
    w->path_len += len;
    if (S_ISREG(st.st_mode)) {
        r = list_add(w, &st);
    } else if (S_ISDIR(st.st_mode)) {
        if (depth < DEPTH_MAX)
            sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub < 0)
            w->list->truncated = true;
        else
            r = walk_sub(w, sub, &st, depth + 1);
    }
    w->path_len = old_len;
    w->path[old_len] = 0;
    return r;
}

/* Recursion is bounded by DEPTH_MAX, which also bounds the open directories. */
static int walk_dir(struct walk *w, int dir, unsigned depth)
{
    struct names names = {0};
    int r = names_read(w, dir, &names);

    for (size_t i = 0; r == 0 && i < names.count; i++)
        r = walk_entry(w, dir, names.items[i], depth);
    names_finish(&names);
    return r;
}

int tar_list_scan(int dir, const struct tar_limits *limits, struct tar_list *list)
{
    struct walk *w = malloc(sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    w->top = dir;
    w->seen = list->count;
    w->limits = limits;
    w->list = list;
    w->names_left = (size_t)limits->files_max * 2 + NAMES_SLACK;
    w->path_len = 0;
    w->path[0] = 0;
    r = walk_dir(w, dir, 0);
    free(w);
    if (list->count > 1)
        qsort(list->files, list->count, sizeof(*list->files), compare_files);
    return r;
}

void tar_list_finish(struct tar_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i].path);
    free(list->files);
    *list = (struct tar_list){0};
}

static int sink_zeros(tar_sink *sink, void *context, uint64_t len)
{
    static const uint8_t zeros[4096];
    int r = 0;

    while (r == 0 && len > 0) {
        size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

        r = sink(context, zeros, n);
        len -= n;
    }
    return r;
}

static int sink_padding(tar_sink *sink, void *context, uint64_t size)
{
    return sink_zeros(sink, context, tar_padding(size));
}

static int sink_header(tar_sink *sink, void *context, const char *name, char type,
                       const struct tar_file *file, uint64_t size)
{
    const struct tar_numbers numbers = {
        .size = size <= TAR_SIZE_MAX ? size : 0,
        .mtime_s = file->mtime > 0 ? (uint64_t)file->mtime : 0,
        .mode = file->executable ? 0755 : 0644,
    };
    struct tar_block block;

    tar_block_make(&block, type, name, "", &numbers);
    return sink(context, &block, sizeof(block));
}

static int put_records(struct buf *records, const struct tar_file *file)
{
    char number[24];
    int r = 0;

    if (strlen(file->path) > TAR_NAME_MAX)
        r = tar_pax_append(records, "path", file->path);
    if (r < 0 || file->size <= TAR_SIZE_MAX)
        return r;
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)file->size);
    return tar_pax_append(records, "size", number);
}

static int sink_pax(tar_sink *sink, void *context, const struct tar_file *file)
{
    _cleanup_buf_ struct buf records = buf_init(PATH_LIMIT + 128);
    int r = put_records(&records, file);

    if (r < 0 || records.len == 0)
        return r;
    r = sink_header(sink, context, "pax", 'x', file, records.len);
    if (r < 0)
        return r;
    r = sink(context, records.data, records.len);
    return r < 0 ? r : sink_padding(sink, context, records.len);
}

/* Opens a listed file again; -1 when it is not the regular file it was. */
static int open_listed(int dir, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                           .resolve = BENEATH};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
        fd_close(&fd);
    return fd;
}

static int sink_content(const struct tar_file *file, tar_sink *sink, void *context)
{
    _cleanup_fd_ int fd = open_listed(file->dir, file->path);
    char chunk[16384];
    uint64_t left = file->size;
    int r = 0;

    while (r == 0 && fd >= 0 && left > 0) {
        ssize_t n =
            fd_read_full(fd, chunk, left < sizeof(chunk) ? (size_t)left : sizeof(chunk));

        if (n <= 0)
            break;
        r = sink(context, chunk, (size_t)n);
        left -= (uint64_t)n;
    }
    if (r < 0)
        return r;
    r = sink_zeros(sink, context, left);
    return r < 0 ? r : sink_padding(sink, context, file->size);
}

int tar_list_stream(const struct tar_list *list, tar_sink *sink, void *context)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct tar_file *file = &list->files[i];
        int r = sink_pax(sink, context, file);

        if (r < 0)
            return r;
        r = sink_header(sink, context, file->path, file->is_folder ? '5' : '0', file,
                        file->size);
        if (r < 0)
            return r;
        if (!file->is_folder)
            r = sink_content(file, sink, context);
        if (r < 0)
            return r;
    }
    return sink_zeros(sink, context, TAR_TRAILER);
}
