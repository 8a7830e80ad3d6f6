/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define OUTPUT_NAME "output.json"
#define FILES_NAME  "files"

struct chunker {
    struct frame_writer *writer;
    uint8_t type;
    size_t len;
    uint8_t data[PROTO_CHUNK_MAX];
};

static int chunker_flush(struct chunker *c)
{
    int r = c->len > 0 ? frame_writer_send(c->writer, c->type, c->data, c->len) : 0;

    c->len = 0;
    return r;
}

static int chunker_add(void *context, const void *data, size_t len)
{
    struct chunker *c = context;
    const uint8_t *p = data;
    int r = 0;

    while (r == 0 && len > 0) {
        size_t n = sizeof(c->data) - c->len;

        n = len < n ? len : n;
        memcpy(c->data + c->len, p, n);
        c->len += n;
        p += n;
        len -= n;
        if (c->len == sizeof(c->data))
            r = chunker_flush(c);
    }
    return r;
}

static int open_output(int out_dir, uint64_t max, struct collect *c)
{
    _cleanup_fd_ int fd =
        openat(out_dir, OUTPUT_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -ENOENT;
    if ((uint64_t)st.st_size > max) {
        c->output_too_large = true;
        return -EFBIG;
    }
    c->output = fd_steal(&fd);
    c->output_size = (uint64_t)st.st_size;
    return 0;
}

int collect_open(int out_dir, const struct run *run, struct collect *ret_collect)
{
    static const char *const beside[] = {OUTPUT_NAME, FILES_NAME, NULL};
    struct tar_limits limits = {.files_max = run->files_max, .bytes_max = run->files_bytes};
    struct collect *c = ret_collect;
    int r = 0;

    *c = (struct collect){.output = -1};
    c->files_dir = openat(out_dir, FILES_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)open_output(out_dir, run->output_bytes, c);
    if (c->files_dir >= 0)
        r = tar_list_scan(c->files_dir, &limits, &c->files);
    limits.skip = beside;
    return r < 0 ? r : tar_list_scan(out_dir, &limits, &c->files);
}

int collect_open_session(int session_dir, const struct run *run, struct collect *c)
{
    const struct tar_limits limits = {
        .files_max = run->session_files, .bytes_max = run->session_bytes, .folders = true};

    c->has_session = true;
    return tar_list_scan(session_dir, &limits, &c->session);
}

void collect_finish(struct collect *c)
{
    fd_close(&c->output);
    fd_close(&c->files_dir);
    tar_list_finish(&c->files);
    tar_list_finish(&c->session);
}

static int send_output(struct collect *c, struct chunker *chunker)
{
    uint8_t data[16384];
    uint64_t left = c->output >= 0 ? c->output_size : 0;
    int r = 0;

    while (r == 0 && left > 0) {
        ssize_t n = fd_read_full(c->output, data, left < sizeof(data) ? left : sizeof(data));

        if (n <= 0)
            break;
        r = chunker_add(chunker, data, (size_t)n);
        left -= (uint64_t)n;
    }
    return r < 0 ? r : chunker_flush(chunker);
}

static struct chunker *chunker_begin(struct frame_writer *w, uint8_t type)
{
    /* Static: 64 KiB on the stack would be fresh pages, and one execution is all there is. */
    static struct chunker chunker;

    chunker.writer = w;
    chunker.type = type;
    chunker.len = 0;
    return &chunker;
}

static int send_tree(const struct tar_list *list, struct frame_writer *w, uint8_t type)
{
    struct chunker *chunker = chunker_begin(w, type);
    int r = tar_list_stream(list, chunker_add, chunker);

    return r < 0 ? r : chunker_flush(chunker);
}

int collect_send(struct collect *c, struct frame_writer *w)
{
    int r = send_output(c, chunker_begin(w, PROTO_OUTPUT));

    if (r < 0)
        return r;
    r = frame_writer_send(w, PROTO_OUTPUT, NULL, 0);
    if (r < 0)
        return r;
    r = send_tree(&c->files, w, PROTO_FILES);
    return r < 0 ? r : frame_writer_send(w, PROTO_FILES, NULL, 0);
}

int collect_send_session(struct collect *c, struct frame_writer *w)
{
    int r =
        c->has_session && !c->session.truncated ? send_tree(&c->session, w, PROTO_SESSION) : 0;

    return r < 0 ? r : frame_writer_send(w, PROTO_SESSION, NULL, 0);
}
