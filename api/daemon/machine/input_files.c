/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/input_files.h"

#include "api/skill/tar.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_MAX (8u * TAR_PATH_MAX)

int input_files_add(struct input_files *files, char *path, char *link, uint64_t bytes)
{
    struct input_file *items = NULL;

    if (path && link)
        items = reallocarray(files->items, files->n + 1, sizeof(*items));
    if (!items) {
        free(path);
        free(link);
        return -ENOMEM;
    }
    items[files->n] = (struct input_file){.path = path, .link = link, .bytes = bytes};
    files->items = items;
    files->n++;
    return 0;
}

/* A folder's "/" comes before every other character, but behind the end of a name. */
static unsigned rank_of(unsigned char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : c + 1u;
}

/* Puts what is in a folder right behind a file of its name. */
static int compare_paths(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a;
    const unsigned char *y = *(const unsigned char *const *)b;

    while (*x && *x == *y) {
        x++;
        y++;
    }
    return (int)rank_of(*x) - (int)rank_of(*y);
}

/* True when b is a, or something in it. */
static bool is_within(const char *a, const char *b)
{
    size_t len = strlen(a);

    return strncmp(a, b, len) == 0 && (b[len] == '\0' || b[len] == '/');
}

int input_files_check(const struct input_files *files, struct err *err)
{
    _cleanup_free_ const char **paths = calloc(files->n + 1, sizeof(*paths));

    if (!paths)
        return err_no_memory(err);
    for (size_t i = 0; i < files->n; i++)
        paths[i] = files->items[i].path;
    qsort(paths, files->n, sizeof(*paths), compare_paths);
    for (size_t i = 1; i < files->n; i++) {
        const char *a = paths[i - 1], *b = paths[i];

        if (strcmp(a, b) == 0)
            return err_set(err, EINVAL, "two files would have the path \"%.200s\"", a);
        if (is_within(a, b))
            return err_set(err, EINVAL, "\"%.200s\" and \"%.200s\" cannot both be files", a, b);
    }
    return 0;
}

void input_files_finish(struct input_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        (void)unlinkat(files->dir_fd, files->items[i].link, 0);
        free(files->items[i].path);
        free(files->items[i].link);
    }
    free(files->items);
    *files = (struct input_files){0};
}

struct input_stream input_stream_init(const struct input_files *files)
{
    return (struct input_stream){.files = files, .fd = -1, .head = buf_init(HEAD_MAX)};
}

/* Goes on to the header of the next file, or to the end of the stream. */
static int begin_next(struct input_stream *s, struct err *err)
{
    const struct input_file *file;
    struct tar_header header = {.type = TAR_FILE, .mode = 0644};
    int r;

    buf_clear(&s->head);
    fd_close(&s->fd);
    s->head_at = 0;
    s->at = 0;
    if (s->next == s->files->n) {
        s->zeros = TAR_TRAILER;
        s->ended = true;
        return 0;
    }
    file = &s->files->items[s->next++];
    s->fd = openat(s->files->dir_fd, file->link, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0)
        return err_set_errno(err, errno, "cannot open the input file %.200s", file->path);
    header.path = file->path;
    header.size = file->bytes;
    s->zeros = tar_padding(file->bytes);
    r = tar_put_header(&s->head, &header);
    return r < 0 ? err_set_errno(err, -r, "cannot name the input file %.200s", file->path) : 0;
}

/* Copies some bytes of the current file. 0 or -errno. */
static int read_content(struct input_stream *s, uint8_t *data, size_t size, size_t *ret_len,
                        struct err *err)
{
    const struct input_file *file = &s->files->items[s->next - 1];
    uint64_t left = file->bytes - s->at;
    size_t n = left < size ? (size_t)left : size;
    ssize_t got = fd_pread_full(s->fd, data, n, s->at);

    if (got < 0 || (size_t)got != n)
        return err_set_errno(err, got < 0 ? (int)-got : EIO,
                             "cannot read the input file %.200s", file->path);
    s->at += n;
    *ret_len = n;
    return 0;
}

int input_stream_read(struct input_stream *s, uint8_t *data, size_t size, size_t *ret_len,
                      struct err *err)
{
    size_t filled = 0;

    while (s->files && s->files->n > 0 && filled < size) {
        size_t room = size - filled, n = 0;

        if (s->head_at < s->head.len) {
            n = s->head.len - s->head_at < room ? s->head.len - s->head_at : room;
            memcpy(data + filled, s->head.data + s->head_at, n);
            s->head_at += n;
        } else if (s->head.len > 0 && s->at < s->files->items[s->next - 1].bytes) {
            int r = read_content(s, data + filled, room, &n, err);

            if (r < 0)
                return r;
        } else if (s->zeros > 0) {
            n = s->zeros < room ? s->zeros : room;
            memset(data + filled, 0, n);
            s->zeros -= n;
        } else if (s->ended) {
            break;
        } else {
            int r = begin_next(s, err);

            if (r < 0)
                return r;
        }
        filled += n;
    }
    *ret_len = filled;
    return 0;
}

void input_stream_finish(struct input_stream *s)
{
    buf_finish(&s->head);
    fd_close(&s->fd);
}
