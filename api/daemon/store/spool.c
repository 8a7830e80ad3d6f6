/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/spool.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

int spool_open_nameless(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char name[32];
    uint64_t random;

    if (fd >= 0)
        return fd;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
        return -errno;
    /* File systems without O_TMPFILE: a name for a moment. */
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    (void)snprintf(name, sizeof(name), "spool-%016llx", (unsigned long long)random);
    fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    (void)unlinkat(dir_fd, name, 0);
    return fd;
}

struct spool spool_init(int dir_fd, uint64_t max)
{
    return (struct spool){
        .dir_fd = dir_fd, .fd = -1, .memory = buf_init(SPOOL_MEMORY_MAX), .max = max};
}

int spool_hash(struct spool *s)
{
    s->sha = sha256_create();
    return s->sha ? 0 : -ENOMEM;
}

void spool_digest(struct spool *s, char ret_hex[SHA256_HEX_SIZE])
{
    sha256_hex(s->sha, ret_hex);
}

int spool_to_fd(struct spool *s)
{
    int fd, r;

    if (s->fd >= 0)
        return s->fd;
    fd = spool_open_nameless(s->dir_fd);
    if (fd < 0)
        return fd;
    r = fd_pwrite_full(fd, s->memory.data, s->memory.len, 0);
    if (r < 0) {
        fd_close(&fd);
        return r;
    }
    buf_finish(&s->memory);
    s->fd = fd;
    return fd;
}

static int append_to_fd(struct spool *s, const void *data, size_t len)
{
    int r = spool_to_fd(s);

    return r < 0 ? r : fd_pwrite_full(s->fd, data, len, s->size);
}

int spool_append(struct spool *s, const void *data, size_t len)
{
    int r;

    if (len > s->max - s->size)
        return -EFBIG;
    if (s->fd < 0 && len <= SPOOL_MEMORY_MAX - s->memory.len)
        r = buf_append(&s->memory, data, len);
    else
        r = append_to_fd(s, data, len);
    if (r < 0)
        return r;
    if (s->sha)
        sha256_update(s->sha, data, len);
    s->size += len;
    return 0;
}

int spool_view(struct spool *s, const char **ret_data)
{
    void *map;

    if (s->fd < 0) {
        const char *text = buf_cstr(&s->memory);

        if (!text)
            return -ENOMEM;
        *ret_data = text;
        return 0;
    }
    if (!s->map && s->size > 0) {
        map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);
        if (map == MAP_FAILED)
            return -errno;
        s->map = map;
        s->map_len = (size_t)s->size;
    }
    *ret_data = s->map ? s->map : "";
    return 0;
}

void spool_release(struct spool *s, int *ret_fd, struct buf *ret_memory)
{
    *ret_fd = s->fd > 0 ? fd_steal(&s->fd) : -1;
    *ret_memory = s->memory;
    s->memory = buf_init(0);
    spool_finish(s);
}

void spool_finish(struct spool *s)
{
    if (s->map)
        (void)munmap(s->map, s->map_len);
    s->map = NULL;
    if (s->fd > 0)
        fd_close(&s->fd);
    s->fd = -1;
    buf_finish(&s->memory);
    sha256_destroy(s->sha);
    s->sha = NULL;
}
